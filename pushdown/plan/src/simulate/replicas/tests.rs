use std::num::NonZeroUsize;

use super::{
    super::{ReadAhead, SampleCost, SimulatedEpoch, epoch_with_replicas},
    *,
};
use crate::Tiers;

/// Mean seconds of a sample on one core of a gateway.
const GATEWAY_SECONDS: f64 = 0.01;

/// A gateway with this many cores. Everything else is fast.
const fn tiers(gateway_cores: f64) -> Tiers {
    Tiers {
        gateway_cores,
        background_seconds: 0.0,
        link_bytes_per_second: f64::INFINITY,
        paths: None,
        host_cores: 64.0,
        trainer_seconds: 0.0,
        shared: false,
    }
}

/// Samples that take the gateway 0.5 to 1.5 times the mean.
fn samples(count: usize) -> Vec<SampleCost> {
    let cost = |sample: usize| SampleCost {
        is_plain: false,
        gateway_seconds: GATEWAY_SECONDS * (0.5 + float(mix(!(sample as u64)) >> 32) / float(1 << 32)),
        bytes: 1.0,
        host_seconds: 0.0,
    };
    (0..count).map(cost).collect()
}

fn equal(count: usize) -> Replicas {
    Replicas::with_cores(&vec![1.0; count])
}

/// The reader's defaults, for batches of this size.
const fn read_ahead(batch_samples: usize, replicas: usize) -> ReadAhead {
    ReadAhead::for_replicas(NonZeroUsize::new(batch_samples).unwrap(), replicas)
}

fn epoch(replicas: &Replicas, count: usize, read_ahead: ReadAhead) -> SimulatedEpoch {
    epoch_with_replicas(&tiers(f64::NAN), replicas, &samples(count), read_ahead)
}

/// Samples per second as a multiple of those of one core.
fn speedup(replicas: &Replicas, count: usize, read_ahead: ReadAhead) -> f64 {
    GATEWAY_SECONDS * float(count as u64) / epoch(replicas, count, read_ahead).seconds
}

#[test]
fn eight_replicas_compute_eight_times_as_much() {
    const COUNT: usize = 20_000;
    let one = speedup(&equal(1), COUNT, read_ahead(64, 1));
    assert!((0.99..=1.0).contains(&one), "expected 1, found {one}");
    let eight = speedup(&equal(8), COUNT, read_ahead(64, 8));
    assert!(eight >= 0.95 * 8.0 * one, "expected 7.6, found {eight}");
    // One sample per replica in flight is not enough.
    let few = ReadAhead {
        batches_in_flight: NonZeroUsize::MIN,
        ..read_ahead(8, 8)
    };
    let few = speedup(&equal(8), COUNT, few);
    assert!(few < 5.0, "expected less than 5, found {few}");
}

#[test]
fn a_slow_replica_does_not_hold_up_the_others() {
    const COUNT: usize = 20_000;
    let cores = [1.0, 1.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0];
    let weighted = speedup(&Replicas::with_cores(&cores), COUNT, read_ahead(64, 8));
    assert!(weighted >= 0.95 * 7.5, "expected 7.1, found {weighted}");
    // With the samples of an equal replica it has more in flight, and what is beyond its limit goes to the others.
    let equal_fractions = Replicas::new(equal(8).placement, &cores);
    let capped = speedup(&equal_fractions, COUNT, read_ahead(64, 8));
    assert!(capped < weighted, "expected less than {weighted}, found {capped}");
    let effective_cores = Tiers::effective_cores(cores.map(|cores| (cores, 0.125)));
    assert!(
        capped > 1.5 * effective_cores,
        "expected more than {effective_cores}, found {capped}"
    );
}

#[test]
fn a_replica_with_few_cores_does_not_wait_for_one_with_many() {
    let cores = [8.0, 2.0, 1.0, 1.0, 4.0];
    let replicas = Replicas::with_cores(&cores);
    let found = speedup(&replicas, 20_000, read_ahead(128, 5));
    let fractions = (0..cores.len()).map(|index| replicas.placement.fraction(index));
    let effective_cores = Tiers::effective_cores(cores.into_iter().zip(fractions));
    assert!(
        found >= 0.95 * effective_cores && found <= 16.0,
        "expected {effective_cores}, found {found}"
    );
}

#[test]
fn a_million_samples_on_32_replicas() {
    const COUNT: usize = 1_000_000;
    let read_ahead = read_ahead(256, 32);
    assert_eq!(read_ahead.max_samples_in_flight(), 1_024);
    let found = epoch(&equal(32), COUNT, read_ahead);
    let speedup = GATEWAY_SECONDS * float(COUNT as u64) / found.seconds;
    assert!(speedup >= 0.97 * 32.0, "expected 31, found {speedup}");
    let ratio = found.first_choice_ratio;
    assert!(ratio >= 0.96, "expected 0.96, found {ratio}");
}

/// Stored objects pass replicas as well if there is one address.
#[test]
fn stored_objects_are_spread_over_the_replicas() {
    let objects: Vec<SampleCost> = samples(2_000)
        .into_iter()
        .map(|sample| SampleCost {
            is_plain: true,
            ..sample
        })
        .collect();
    let values = samples(2_000);
    let mixed: Vec<SampleCost> = objects
        .iter()
        .zip(&values)
        .flat_map(|(object, value)| [*object, *value])
        .collect();
    let seconds = |replicas: usize| {
        let read_ahead = read_ahead(64, replicas);
        epoch_with_replicas(&tiers(f64::NAN), &equal(replicas), &mixed, read_ahead).seconds
    };
    let (one, four) = (seconds(1), seconds(4));
    assert!(four < 0.3 * one, "expected a quarter of {one} s, found {four} s");
}

/// The rows of the table in docs/PLANNER.md.
#[test]
fn the_table_of_the_page_is_current() {
    const PAGE: &str = include_str!("../../../../../docs/PLANNER.md");
    const COUNT: usize = 100_000;
    for (replicas, batch_samples) in [
        (1, 64),
        (2, 64),
        (4, 64),
        (8, 64),
        (32, 64),
        (32, 256),
        (32, 1_024),
    ] {
        let read_ahead = read_ahead(batch_samples, replicas);
        let found = epoch(&equal(replicas), COUNT, read_ahead);
        let speedup = GATEWAY_SECONDS * float(COUNT as u64) / found.seconds;
        let row = format!(
            "| {replicas} | {batch_samples} | {} | {:.2} | {:.2} |",
            read_ahead.max_samples_in_flight() / replicas as u64,
            speedup / float(replicas as u64),
            found.first_choice_ratio
        );
        assert!(
            PAGE.contains(&row),
            "expected this row in docs/PLANNER.md:\n{row}"
        );
    }
}
