mod cropped;
mod replay;
mod two_paths;

use std::{sync::atomic::Ordering::Relaxed, time::Duration};

use pushdown::{
    StepTiming,
    plan::{Candidate, Stage},
    wire::CacheStatus,
};
use tokio::time::advance;

use super::*;
use crate::{epoch::order::SampleRef, measure::GatewayCpus};
use size_classes::tests::objects;

fn receive(adapter: &Adapter, stored: Option<u64>, steps: usize) {
    let stage = Stage::after(steps);
    let value = ReceivedValue {
        stage,
        bytes: 30_000,
        seconds: 0.04,
        cache: CacheStatus::Computed,
    };
    adapter.observe(Event::ValueReceived {
        stored,
        requested: stage,
        value,
        hash_fraction: 0.5,
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
        is_cropped: false,
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
    adapter.observe(adapter.batch_end(SamplesLeft {
        samples: samples_left,
        later_epochs: 0,
    }));
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
            match adapter
                .assignment()
                .stage(sample, Some(4_000_000), || 0.5)
                .steps()
            {
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
    assert!(planned.decision.plan.fractions[0][1] > 0.5, "{planned}");
    assert!(planned.samples_per_second() >= planned.plain_samples_per_second());
}

/// Floats are larger than these objects, pixels are not.
#[tokio::test(start_paused = true)]
async fn pixels_are_pushed_where_floats_do_not_fit() {
    let pipeline = Pipeline::parse("decode | resize(100, 100) | to_float").unwrap();
    let stored = 90_000;
    let adapter = Adapter::new(&pipeline, &objects(&[stored; 256]), 64, 2, 1.0).unwrap();
    state_cores(&adapter, Some(2.0));
    for _ in 0..2 {
        for position in 0..64 {
            let sample = SampleRef {
                position,
                index: 0,
                is_padding: false,
            };
            match adapter.assignment().stage(sample, Some(stored), || 0.5).steps() {
                0 => {
                    read(&adapter, stored, Duration::from_millis(100)).await;
                    run_steps(&adapter, stored);
                    let ran = StepTiming {
                        steps: 2..3,
                        time: Duration::from_micros(100),
                    };
                    adapter.observe(Event::HostStepsRan {
                        stored: Some(stored),
                        is_cropped: false,
                        ran: vec![ran],
                    });
                }
                stage => receive(&adapter, Some(stored), stage),
            }
        }
        end_batch(&adapter, 128);
    }
    let decision = adapter.plan_report().unwrap().decision;
    let pushed = decision.classes[0]
        .candidates
        .iter()
        .position(|split| split.stage == Stage::After(2));
    assert!(decision.plan.fractions[0][pushed.unwrap()] > 0.5, "{decision:?}");
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
    let stages = [Stage::Object, Stage::Object, Stage::After(2), Stage::After(2)];
    let in_flight = adapter.track_batch(stages.iter().map(|stage| (stored, *stage)));
    near(rules(128), (124.0, 8_060_000.0));
    in_flight.end(0);
    in_flight.end(0);
    near(rules(128), (124.0, 4_060_000.0));
    in_flight.reroute(1, Stage::After(2));
    // A sample that has arrived is not rerouted.
    in_flight.reroute(0, Stage::Object);
    near(rules(128), (124.0, 90_000.0));
    // All have begun: the plan is for the next epoch.
    near(rules(4), (256.0, 90_000.0));
    drop(in_flight);
    near(rules(4), (4.0, 0.0));
    near(rules(0), (256.0, 0.0));
}

/// A value that was not computed for this request costs the gateway little, and its steps cost as much as before.
#[test]
fn seconds_of_cached_values_are_no_step_costs() {
    let pipeline = Pipeline::parse("decode | resize(100, 100)").unwrap();
    let planned = |hits: &[CacheStatus]| {
        let adapter = Adapter::new(&pipeline, &objects(&[4_000_000; 256]), 64, 2, 1.0).unwrap();
        state_cores(&adapter, None);
        run_steps(&adapter, 4_000_000);
        receive(&adapter, Some(4_000_000), 2);
        for cache in hits {
            adapter.observe(Event::ValueReceived {
                stored: Some(4_000_000),
                requested: Stage::After(2),
                value: ReceivedValue {
                    stage: Stage::After(2),
                    bytes: 30_000,
                    seconds: 0.001,
                    cache: *cache,
                },
                hash_fraction: 0.5,
            });
        }
        end_batch(&adapter, 128);
        end_batch(&adapter, 128);
        let decision = adapter.plan_report().unwrap().decision;
        decision.classes[0].candidates[1]
    };
    let expected = planned(&[]);
    for cache in [
        CacheStatus::Memory,
        CacheStatus::Disk,
        CacheStatus::Shared,
        CacheStatus::Prefix,
    ] {
        let found = planned(&[cache; 4]);
        let steps = |split: &Candidate| (split.gateway_seconds, split.host_seconds);
        assert_eq!(steps(&found), steps(&expected), "{cache:?}");
        // Four of five values cost what a hit does.
        assert!((found.hits.ratio - 0.8).abs() < 1e-9, "{cache:?}: {found:?}");
        assert!((found.hits.seconds - 0.001).abs() < 1e-6, "{cache:?}: {found:?}");
    }
    let computed = planned(&[CacheStatus::Computed; 4]);
    assert!(computed.gateway_seconds < expected.gateway_seconds && computed.hits.ratio <= 0.0);
}

/// Half of the objects are cached, and the gateway is slow: it is asked for those only.
#[test]
fn an_announced_ratio_divides_objects_into_sides() {
    let pipeline = Pipeline::parse("decode | resize(100, 100)").unwrap();
    let adapter = Adapter::new(&pipeline, &objects(&[4_000_000; 256]), 64, 2, 1.0).unwrap();
    adapter.observe(Event::RequestAnswered(GatewayCpus {
        cores: Some(0.05),
        ..GatewayCpus::default()
    }));
    let announce = |text: &str| adapter.observe(Event::CachedRatiosAnnounced(text.parse().unwrap()));
    announce("2=0.5");
    run_steps(&adapter, 4_000_000);
    for (hash_fraction, cache, seconds) in
        [(0.2, CacheStatus::Disk, 1e-4), (0.7, CacheStatus::Computed, 0.04)]
    {
        adapter.observe(Event::ValueReceived {
            stored: Some(4_000_000),
            requested: Stage::After(2),
            value: ReceivedValue {
                stage: Stage::After(2),
                bytes: 30_000,
                seconds,
                cache,
            },
            hash_fraction,
        });
    }
    end_batch(&adapter, 128);
    end_batch(&adapter, 128);
    let plan = adapter.plan_report().unwrap();
    assert_eq!(plan.decision.sides, [0.5, 1.0]);
    let fractions = &plan.decision.plan.fractions;
    assert!(fractions[0][1] > 0.45 && fractions[1][1] < 0.1, "{plan}");
    let text = plan.to_string();
    assert!(text.contains("larger objects, cached at stage 2: "), "{text}");
    assert!(text.contains("larger objects, not cached: "), "{text}");
    let sample = SampleRef {
        position: 1,
        index: 1,
        is_padding: false,
    };
    let stage = |hash_fraction: f64| {
        adapter
            .assignment()
            .stage(sample, Some(4_000_000), || hash_fraction)
    };
    assert_eq!((stage(0.1), stage(0.9)), (Stage::After(2), Stage::Object));
    // A gateway that restarted without its cache announces nothing.
    announce("");
    end_batch(&adapter, 64);
    assert_eq!(adapter.plan_report().unwrap().decision.sides, [1.0]);
}

/// A gateway that has all values in its cache never runs a step for this reader.
#[test]
fn a_filled_cache_is_used_without_any_computed_value() {
    let pipeline = Pipeline::parse("decode | resize(100, 100)").unwrap();
    let adapter = Adapter::new(&pipeline, &objects(&[4_000_000; 256]), 64, 2, 1.0).unwrap();
    state_cores(&adapter, None);
    run_steps(&adapter, 4_000_000);
    adapter.observe(Event::ValueReceived {
        stored: Some(4_000_000),
        requested: Stage::After(2),
        value: ReceivedValue {
            stage: Stage::After(2),
            bytes: 30_000,
            seconds: 0.0,
            cache: CacheStatus::Memory,
        },
        hash_fraction: 0.5,
    });
    end_batch(&adapter, 128);
    end_batch(&adapter, 128);
    let plan = adapter.plan_report().unwrap();
    assert!(plan.decision.plan.fractions[0][1] > 0.9, "{plan}");
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
            .filter(|index| assignment.stage(sample(*index), None, || 0.5) > Stage::Object)
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
            None,
            || 0.5
        ),
        Stage::Object,
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
    assert!(
        decision.plan.fractions[0][1] > 0.5 && pushed() > 32,
        "{decision:?}"
    );
    run_steps(&adapter, 29_999);
    assert_eq!(pushed(), 0, "the plan in force is bounded, too");
    run_steps(&adapter, 240_001);
    let decision = plan();
    assert!((decision.classes[0].candidates[0].bytes - 100_000.0).abs() < 1e-6);
    assert!(
        decision.plan.fractions[0][1] < 1e-9,
        "no plan exceeds the bound: {decision:?}"
    );
    assert_eq!(pushed(), 0);
}

#[test]
fn values_that_never_fit_are_a_reason_to_read_plainly() {
    let reason = |pipeline: &str, sizes: &[u64], max_expand| {
        let pipeline = Pipeline::parse(pipeline).unwrap();
        let objects = objects(sizes);
        let adapter = Adapter::new(&pipeline, &objects, 64, 2, max_expand).unwrap();
        adapter.reason_to_read_plainly(&objects)
    };
    let known = "decode | resize(100, 100)";
    assert_eq!(
        reason(known, &[300, 29_999], 1.0).unwrap(),
        "values are too large: expected at most 1 times the bytes of their objects (max_expand), found 30000 bytes for objects of \
         at most 29999 bytes"
    );
    assert_eq!(reason(known, &[300, 30_000], 1.0), None, "one of them fits");
    assert_eq!(reason(known, &[300, 29_999], 1.1), None);
    assert_eq!(reason(known, &[], 1.0), None, "nothing is read");
    assert_eq!(
        reason("decode", &[300], 1.0),
        None,
        "the size of the value is unknown"
    );
}
