//! A simulated reader of a gateway with a result cache, over several epochs.

use std::collections::BTreeSet;

use super::*;

const EPOCH_SAMPLES: u32 = 640;
const BATCH: u32 = 64;
/// Seconds of all steps, on either side.
const STEP_SECONDS: f64 = 0.010;
const HIT_SECONDS: f64 = 2e-4;
const GATEWAY_CORES: f64 = 0.5;

/// What an epoch took, and how many of its samples were requested from the gateway and found in its cache.
#[derive(Debug, Clone, Copy, Default)]
struct EpochCounts {
    seconds: f64,
    pushed: u32,
    hits: u32,
}

/// The multiple of an irrational number modulo 1: evenly spread, and independent of others.
fn fraction(sample: u32, ratio: f64) -> f64 {
    (f64::from(sample) * ratio).fract()
}

/// Reads these epochs. The gateway caches the objects with hashes below `cached_ratio`, and announces it. `later_epochs`: what the
/// planner knows of later epochs, by epoch.
fn read(cached_ratio: f64, later_epochs: &[u32]) -> Vec<EpochCounts> {
    let step = |output_bytes| StepCost {
        output_bytes,
        macs: 0,
        needs_model: false,
    };
    let mut replanner = Replanner::new(&[step(None), step(Some(1_000))], &[(1.0, OBJECT_BYTES)], 1.0);
    replanner.set_gateway_cores(GATEWAY_CORES);
    replanner.set_cached_ratios([(2, cached_ratio)]);
    let mut cached = BTreeSet::new();
    let mut batches = 0;
    let epoch = |later: &u32| {
        let mut counts = EpochCounts::default();
        let (mut gateway_seconds, mut host_seconds) = (0.0, 0.0);
        for first in (0..EPOCH_SAMPLES).step_by(BATCH as usize) {
            let routes = replanner
                .decision()
                .map(|decision| (decision.sides.clone(), decision.plan.fractions.clone()));
            for sample in first..first + BATCH {
                let hash_fraction = fraction(sample, 0.732_050_807_568_877);
                let pushed_ratio = routes.as_ref().map_or(0.5, |(sides, fractions)| {
                    let side = sides.iter().position(|upper| hash_fraction < *upper).unwrap();
                    fractions[side][1] / fractions[side].iter().sum::<f64>()
                });
                if fraction(sample, 0.618_033_988_749_895) >= pushed_ratio {
                    host_seconds += STEP_SECONDS;
                    replanner.observe_host_seconds(0, 0, 2, STEP_SECONDS);
                    continue;
                }
                counts.pushed += 1;
                if cached.contains(&sample) {
                    counts.hits += 1;
                    gateway_seconds += HIT_SECONDS;
                    replanner.observe_cache_hit(2, hash_fraction, HIT_SECONDS);
                } else {
                    gateway_seconds += STEP_SECONDS;
                    replanner.observe_gateway_seconds(0, 2, STEP_SECONDS);
                    replanner.observe_cache_miss(2, hash_fraction);
                    if hash_fraction < cached_ratio {
                        cached.insert(sample);
                    }
                }
            }
            batches += 1;
            let left = EPOCH_SAMPLES - first - BATCH;
            let (left, later) = if left == 0 {
                replanner.next_epoch(f64::from(EPOCH_SAMPLES));
                (EPOCH_SAMPLES, later.saturating_sub(1))
            } else {
                (left, *later)
            };
            let rules = Rules {
                samples_left: f64::from(left),
                later: LaterEpochs {
                    count: f64::from(later),
                    samples: f64::from(EPOCH_SAMPLES),
                },
                ..RULES
            };
            replanner.next_batch(SetupCosts::default(), &rules);
        }
        counts.seconds = f64::max(gateway_seconds / GATEWAY_CORES, host_seconds);
        counts
    };
    let epochs = later_epochs.iter().map(epoch).collect();
    assert!(batches >= 10);
    epochs
}

fn total(epochs: &[EpochCounts]) -> f64 {
    epochs.iter().map(|epoch| epoch.seconds).sum()
}

/// The numbers of later epochs that a planner knows, of `epochs` epochs.
fn known(epochs: u32) -> Vec<u32> {
    (0..epochs).rev().collect()
}

#[test]
fn a_known_number_of_epochs_is_not_read_slower() {
    let plain = STEP_SECONDS * f64::from(EPOCH_SAMPLES);
    for cached_ratio in [0.3, 1.0] {
        for epochs in [2_u32, 3, 10, 40] {
            let known = read(cached_ratio, &known(epochs));
            let unknown = read(cached_ratio, &vec![0; epochs as usize]);
            let uncached = read(0.0, &vec![0; epochs as usize]);
            assert!(
                total(&known) <= total(&unknown) * 1.03 && total(&unknown) <= total(&uncached) * 1.01,
                "{cached_ratio}, {epochs} epochs: {known:?} {unknown:?} {uncached:?}"
            );
            // An epoch that is planned by itself is never slower than plain reading.
            for epoch in unknown {
                assert!(epoch.seconds <= plain, "{epoch:?}");
            }
        }
    }
}

/// Idle time of the gateway fills the cache. In the end at least 97 % of what it was announced to have are hits.
#[test]
fn a_cache_fills_epoch_by_epoch() {
    for cached_ratio in [0.3, 1.0] {
        let epochs = read(cached_ratio, &known(12));
        let last = epochs[11];
        assert!(
            f64::from(last.hits) >= 0.97 * cached_ratio * f64::from(EPOCH_SAMPLES),
            "{epochs:?}"
        );
        assert!(
            epochs.windows(2).all(|pair| pair[1].hits >= pair[0].hits),
            "{epochs:?}"
        );
    }
}

/// Without an announcement, several epochs are planned as one.
#[test]
fn an_announcement_is_what_a_first_epoch_invests_for() {
    let one = read(0.0, &[0; 3]);
    let three = read(0.0, &[2, 1, 0]);
    for (one, three) in one.iter().zip(&three) {
        assert_eq!(one.pushed, three.pushed);
        assert!((one.seconds - three.seconds).abs() < 1e-9);
    }
}
