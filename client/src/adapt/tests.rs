use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::*;
use crate::order::Place;
use classes::tests::objects;

fn came(adapter: &Adapter, stored: Option<u64>, stage: u8) {
    let came = Came {
        stage,
        bytes: 30_000,
        seconds: 0.04,
    };
    adapter.gateway(stored, Split::At(stage), came);
}

/// The two sides told apart, from what a reader would see of 128 samples.
#[test]
fn two_batches_make_a_plan() {
    let pipeline = Pipeline::parse("decode | resize(100, 100)").unwrap();
    let adapter = Adapter::new(&pipeline, &objects(&[4_000_000; 256]), 64, 2, 1.0).unwrap();
    adapter.gateway_cores(8.0, Some(2.0));
    let traffic = Traffic {
        down: AtomicU64::new(0),
        ..Traffic::default()
    };
    for _ in 0..2 {
        assert!(adapter.decision().is_none());
        for position in 0..64 {
            let place = Place { position, index: 0 };
            let stored = Some(4_000_000);
            match adapter.assignment().stage(place, stored) {
                0 => {
                    let mut on_its_way = adapter.asked(&traffic);
                    on_its_way.found(stored);
                    traffic.down.fetch_add(4_000_000, Relaxed);
                    std::thread::sleep(Duration::from_millis(2));
                    drop(on_its_way);
                    let ran = StepTiming {
                        steps: 0..2,
                        time: Duration::from_millis(40),
                    };
                    adapter.host(stored, &[ran]);
                }
                stage => came(&adapter, stored, stage),
            }
        }
        adapter.batch_done(128, &traffic);
    }
    let planned = adapter.decision().unwrap();
    assert!(planned.decision.plan.shares[0][1] > 0.5, "{planned}");
    assert!(planned.samples_per_second() >= planned.plainly());
}

/// Those of other batches that have begun go before the samples that a plan is made for.
#[test]
fn a_plan_is_made_for_what_has_not_begun() {
    let pipeline = Pipeline::parse("decode | resize(100, 100)").unwrap();
    let adapter = Adapter::new(&pipeline, &objects(&[4_000_000; 256]), 64, 2, 1.0).unwrap();
    adapter.gateway_cores(8.0, None);
    let stored = Some(4_000_000);
    let ran = StepTiming {
        steps: 0..2,
        time: Duration::from_millis(40),
    };
    adapter.host(stored, &[ran]);
    came(&adapter, stored, 2);
    let rules = |left: usize| {
        let traffic = Traffic::default();
        adapter.batch_done(left, &traffic);
        adapter.batch_done(left, &traffic);
        let rules = adapter.decision().unwrap().decision.rules;
        (rules.samples_left, rules.in_flight.bytes)
    };
    let near = |found: (f64, f64), expected: (f64, f64)| {
        let apart = (found.0 - expected.0).abs() + (found.1 - expected.1).abs();
        assert!(apart < 1e-3, "{found:?}, expected {expected:?}");
    };
    near(rules(128), (128.0, 0.0));
    let splits = [Split::At(0), Split::At(0), Split::At(2), Split::Full];
    let awaited = adapter.awaits(splits.iter().map(|split| (stored, *split)));
    near(rules(128), (124.0, 8_060_000.0));
    awaited.ended(0);
    awaited.ended(0);
    near(rules(128), (124.0, 4_060_000.0));
    awaited.goes(1, Split::At(2));
    // What has come goes nowhere.
    awaited.goes(0, Split::At(0));
    near(rules(128), (124.0, 90_000.0));
    // All have begun: the plan is one for the next epoch.
    near(rules(4), (256.0, 90_000.0));
    drop(awaited);
    near(rules(4), (4.0, 0.0));
    near(rules(0), (256.0, 0.0));
}

/// A value of 30,000 bytes is never made of an object that may have fewer.
#[test]
fn sizes_that_no_listing_tells_are_learned() {
    let pipeline = Pipeline::parse("decode | resize(100, 100)").unwrap();
    let mut objects = objects(&[0; 256]);
    for object in &mut objects {
        object.bytes = None;
    }
    let adapter = Adapter::new(&pipeline, &objects, 64, 2, 1.0).unwrap();
    let pushed = || {
        let assignment = adapter.assignment();
        let place = |index: usize| Place {
            position: index as u64,
            index,
        };
        (0..64)
            .filter(|index| assignment.stage(place(*index), None) > 0)
            .count()
    };
    assert_eq!(pushed(), 0, "any object may be smaller");
    let ran = [StepTiming {
        steps: 0..2,
        time: Duration::from_millis(40),
    }];
    let before = adapter.assignment();
    adapter.host(Some(30_000), &ran);
    assert_eq!(pushed(), 32);
    assert_eq!(
        before.stage(
            Place {
                position: 1,
                index: 0
            },
            None
        ),
        0,
        "a batch keeps its ways"
    );
    adapter.gateway_cores(8.0, None);
    came(&adapter, None, 2);
    let plan = || {
        let traffic = Traffic::default();
        adapter.batch_done(128, &traffic);
        adapter.batch_done(128, &traffic);
        adapter.decision().unwrap().decision
    };
    let decision = plan();
    assert!((decision.classes[0].candidates[0].bytes - 30_000.0).abs() < 1e-6);
    assert!(decision.plan.shares[0][1] > 0.5 && pushed() > 32, "{decision:?}");
    adapter.host(Some(29_999), &ran);
    assert_eq!(pushed(), 0, "with the plan that is in force, too");
    adapter.host(Some(240_001), &ran);
    let decision = plan();
    assert!((decision.classes[0].candidates[0].bytes - 100_000.0).abs() < 1e-6);
    assert!(
        decision.plan.shares[0][1] < 1e-9,
        "no plan is made that is not kept to: {decision:?}"
    );
    assert_eq!(pushed(), 0);
}
