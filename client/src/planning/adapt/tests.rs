mod replay;

use std::{sync::atomic::Ordering::Relaxed, time::Duration};

use pushdown::{StepTiming, wire::Split};
use tokio::time::advance;

use super::*;
use crate::order::SampleRef;
use size_classes::tests::objects;

fn receive(adapter: &Adapter, stored: Option<u64>, stage: u8) {
    let value = ReceivedValue {
        stage,
        bytes: 30_000,
        seconds: 0.04,
    };
    adapter.observe(Event::ValueReceived {
        stored,
        requested: Split::At(stage),
        value,
    });
}

/// Both steps of a pipeline ran on the host.
fn run_steps(adapter: &Adapter, stored: u64) {
    let ran = StepTiming {
        steps: 0..2,
        time: Duration::from_millis(40),
    };
    adapter.observe(Event::HostStepsRan {
        stored: Some(stored),
        ran: vec![ran],
    });
}

fn state_cores(adapter: &Adapter, batches: Option<f64>) {
    adapter.observe(Event::RequestAnswered(GatewayCpus {
        cores: Some(8.0),
        batches,
        ..GatewayCpus::default()
    }));
}

fn end_batch(adapter: &Adapter, samples_left: usize) {
    adapter.observe(adapter.batch_end(samples_left));
}

/// Reads a stored object in that time.
async fn read(adapter: &Adapter, stored: u64, time: Duration) {
    let mut read = adapter.begin_read();
    read.on_headers(Some(stored));
    adapter.traffic.received_bytes.fetch_add(stored, Relaxed);
    advance(time).await;
}

/// Costs at the gateway and on the host, from what a reader observes of 128 samples.
#[tokio::test(start_paused = true)]
async fn two_batches_make_a_plan() {
    let pipeline = Pipeline::parse("decode | resize(100, 100)").unwrap();
    let adapter = Adapter::new(&pipeline, &objects(&[4_000_000; 256]), 64, 2, 1.0).unwrap();
    state_cores(&adapter, Some(2.0));
    for _ in 0..2 {
        assert!(adapter.plan_report().is_none());
        for position in 0..64 {
            let sample = SampleRef {
                position,
                index: 0,
                is_padding: false,
            };
            match adapter.assignment().stage(sample, Some(4_000_000)) {
                0 => {
                    read(&adapter, 4_000_000, Duration::from_millis(2)).await;
                    run_steps(&adapter, 4_000_000);
                }
                stage => receive(&adapter, Some(4_000_000), stage),
            }
        }
        end_batch(&adapter, 128);
    }
    let planned = adapter.plan_report().unwrap();
    assert!(planned.decision.plan.shares[0][1] > 0.5, "{planned}");
    assert!(planned.samples_per_second() >= planned.plain_samples_per_second());
}

/// Samples of other batches that have begun are read first.
#[test]
fn a_plan_covers_the_samples_that_have_not_begun() {
    let pipeline = Pipeline::parse("decode | resize(100, 100)").unwrap();
    let adapter = Adapter::new(&pipeline, &objects(&[4_000_000; 256]), 64, 2, 1.0).unwrap();
    state_cores(&adapter, None);
    let stored = Some(4_000_000);
    run_steps(&adapter, 4_000_000);
    receive(&adapter, stored, 2);
    let rules = |left: usize| {
        end_batch(&adapter, left);
        end_batch(&adapter, left);
        let rules = adapter.plan_report().unwrap().decision.rules;
        (rules.samples_left, rules.in_flight.bytes)
    };
    let near = |found: (f64, f64), expected: (f64, f64)| {
        let apart = (found.0 - expected.0).abs() + (found.1 - expected.1).abs();
        assert!(apart < 1e-3, "{found:?}, expected {expected:?}");
    };
    near(rules(128), (128.0, 0.0));
    let splits = [Split::At(0), Split::At(0), Split::At(2), Split::Full];
    let in_flight = adapter.track_batch(splits.iter().map(|split| (stored, *split)));
    near(rules(128), (124.0, 8_060_000.0));
    in_flight.end(0);
    in_flight.end(0);
    near(rules(128), (124.0, 4_060_000.0));
    in_flight.reroute(1, Split::At(2));
    // A sample that has arrived is not rerouted.
    in_flight.reroute(0, Split::At(0));
    near(rules(128), (124.0, 90_000.0));
    // All have begun: the plan is for the next epoch.
    near(rules(4), (256.0, 90_000.0));
    drop(in_flight);
    near(rules(4), (4.0, 0.0));
    near(rules(0), (256.0, 0.0));
}

/// A value of 30,000 bytes is never requested from an object that may have fewer.
#[test]
fn sizes_without_a_listing_are_learned() {
    let pipeline = Pipeline::parse("decode | resize(100, 100)").unwrap();
    let objects = Objects::from_keys("b", ["k"; 256]);
    let adapter = Adapter::new(&pipeline, &objects, 64, 2, 1.0).unwrap();
    let pushed = || {
        let assignment = adapter.assignment();
        let sample = |index: usize| SampleRef {
            position: index as u64,
            index,
            is_padding: false,
        };
        (0..64)
            .filter(|index| assignment.stage(sample(*index), None) > 0)
            .count()
    };
    assert_eq!(pushed(), 0, "any object may be smaller");
    let before = adapter.assignment();
    run_steps(&adapter, 30_000);
    assert_eq!(pushed(), 32);
    assert_eq!(
        before.stage(
            SampleRef {
                position: 1,
                index: 0,
                is_padding: false
            },
            None
        ),
        0,
        "a batch keeps its routes"
    );
    state_cores(&adapter, None);
    receive(&adapter, None, 2);
    let plan = || {
        end_batch(&adapter, 128);
        end_batch(&adapter, 128);
        adapter.plan_report().unwrap().decision
    };
    let decision = plan();
    assert!((decision.classes[0].candidates[0].bytes - 30_000.0).abs() < 1e-6);
    assert!(decision.plan.shares[0][1] > 0.5 && pushed() > 32, "{decision:?}");
    run_steps(&adapter, 29_999);
    assert_eq!(pushed(), 0, "the plan in force is bounded, too");
    run_steps(&adapter, 240_001);
    let decision = plan();
    assert!((decision.classes[0].candidates[0].bytes - 100_000.0).abs() < 1e-6);
    assert!(
        decision.plan.shares[0][1] < 1e-9,
        "no plan exceeds the bound: {decision:?}"
    );
    assert_eq!(pushed(), 0);
}
