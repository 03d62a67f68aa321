mod bounds;
mod laws;
mod pins;
mod restarts;
mod simulated_cache;

use sha2::{Digest, Sha256};

use self::simulated_cache::{Cache, Job, VALUE_BYTES};
use super::*;

/// The part of the capacity that a tenant can pin.
const PIN_RATIO: f64 = 0.5;
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// The hash of the path of an object, here of a number.
pub(super) fn object_hash(object: u64) -> u64 {
    let digest = Sha256::digest(object.to_le_bytes());
    digest
        .iter()
        .take(8)
        .fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

fn set_id(number: u8) -> SetId {
    SetId([number; 16])
}

fn job(set: u8, tenant: &'static str, epochs: u32) -> Job {
    Job {
        set,
        tenant,
        hints: Some(Hints {
            epochs,
            samples: 10_000,
        }),
        objects: 10_000,
        per_second: 100,
        saved_seconds: 0.01,
    }
}

fn assert_near(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() <= 0.03 * expected,
        "expected {expected}, found {found}"
    );
}

/// The number of objects is an estimate: less than all of those announced may be counted.
fn assert_near_all(ratio: f64) {
    assert!((0.9..=1.0).contains(&ratio), "{ratio}");
}

#[test]
fn the_first_epoch_of_the_only_job_fills_the_cache() {
    // 1 MB of values, for room of 7.2 MB.
    let mut cache = Cache::new(2_000_000, 6_000_000);
    assert_eq!(cache.read(&[job(0, "a", 2)]), [0]);
    assert_near_all(cache.ratio(0));
    assert_eq!(cache.read(&[job(0, "a", 1)]), [10_000]);
    // For room of 1.8 MB, too, and if nothing is announced: then the quota grows with each value.
    for hints in [job(0, "a", 2).hints, None] {
        let job = Job {
            hints,
            ..job(0, "a", 2)
        };
        let mut cache = Cache::new(1_000_000, 1_000_000);
        assert_eq!(cache.read(&[job]), [0]);
        assert_near_all(cache.ratio(0));
        assert_eq!(cache.read(&[job]), [10_000], "{hints:?}");
    }
}

#[test]
fn the_announced_ratio_is_that_of_later_epochs() {
    for samples in [0, 10_000] {
        let hints = Some(Hints { epochs: 3, samples });
        let job = Job {
            hints,
            ..job(0, "a", 3)
        };
        let mut cache = Cache::new(0, 300_000);
        cache.read(&[job]);
        let ratio = cache.ratio(0);
        assert!(
            (0.15..0.29).contains(&ratio),
            "{ratio} with {samples} samples announced"
        );
        let hits = cache.read(&[job])[0];
        assert!(
            f64::from(hits) >= 0.97 * ratio * 10_000.0,
            "{hits} hits, announced {ratio}"
        );
        let hits = cache.read(&[job])[0];
        assert!(
            (2_500..2_900).contains(&hits),
            "{hits} hits with a room for 2,700"
        );
    }
}

/// The number of objects is not announced and large: values of about the free capacity are admitted before the first
/// reallocation, and the quota is all of it.
#[test]
fn an_unknown_set_writes_no_more_than_what_is_free() {
    let job = Job {
        hints: Some(Hints {
            epochs: 2,
            samples: 0,
        }),
        objects: 50_000,
        per_second: 10_000,
        ..job(0, "a", 2)
    };
    let mut cache = Cache::new(0, 1_000_000);
    cache.read(&[job]);
    let written = cache.cached.len() as u64 * VALUE_BYTES;
    assert!((700_000..=1_000_000).contains(&written), "{written}");
    assert_near(cache.bytes(0), 900_000.0);
}

/// Nobody knows yet whether its values are used again, but there is space for them.
#[test]
fn one_epoch_of_one_job_is_cached_while_there_is_space() {
    let mut cache = Cache::new(2_000_000, 0);
    assert_eq!(cache.read(&[job(0, "a", 1)]), [0]);
    assert_eq!(cache.read(&[job(0, "a", 1)]), [10_000]);
    // After half an hour the second job is no evidence any more, and the set still has its quota.
    for _ in 0..60 {
        cache.now += REALLOCATION_INTERVAL;
        cache.reallocate();
    }
    assert_eq!(cache.read(&[job(0, "a", 1)]), [10_000]);
}

#[test]
fn evidence_of_reuse_decides_when_space_is_short() {
    // Room for 1.8 of the sets, which two jobs read once.
    let mut cache = Cache::new(0, 2_000_000);
    cache.read(&[job(0, "a", 1)]);
    cache.read(&[job(1, "a", 1)]);
    assert_near(cache.bytes(0) + cache.bytes(1), 1_800_000.0);
    // A set that is read twice gets its space at once, from the one that has been unused for longest.
    let before = cache.bytes(1);
    assert_eq!(cache.read(&[job(2, "a", 2)]), [0]);
    assert_near_all(cache.ratio(2));
    assert!(cache.bytes(1) >= 0.5 * before, "{} of {before}", cache.bytes(1));
    assert_eq!(cache.read(&[job(2, "a", 1)]), [10_000]);
    // Another one that is read only once gets nothing, even if it saves more: others hold what is left.
    let other = Job {
        saved_seconds: 10.0,
        ..job(3, "a", 1)
    };
    for _ in 0..3 {
        cache.request(&other, object_hash(0));
        cache.now += REALLOCATION_INTERVAL;
        cache.reallocate();
        assert_near(cache.bytes(2), 1_000_000.0);
    }
    assert_near(cache.bytes(0) + cache.bytes(1), 800_000.0);
    assert!(cache.bytes(3) < 1_000.0, "{}", cache.bytes(3));
}

/// It takes a quarter of it at once, and the rest as slowly as others give up theirs.
#[test]
fn a_set_with_evidence_that_does_not_fit_does_not_take_all_at_once() {
    let mut cache = Cache::new(0, 1_000_000);
    cache.read(&[job(0, "a", 1)]);
    cache.reallocate();
    let before = cache.bytes(0);
    assert_near(before, 900_000.0);
    let large = Job {
        objects: 100_000,
        hints: Some(Hints {
            epochs: 2,
            samples: 100_000,
        }),
        ..job(1, "a", 2)
    };
    cache.request(&large, object_hash(0));
    assert_near(cache.bytes(1), 225_000.0);
    assert_near(cache.bytes(0), before - 225_000.0);
    for expected in [337_500.0, 168_750.0] {
        cache.now += REALLOCATION_INTERVAL;
        cache.reallocate();
        assert_near(cache.bytes(0), expected);
        assert_near(cache.bytes(1), 900_000.0 - expected);
    }
}

/// Between reallocations a set with evidence that grows while its objects are counted takes space step by step.
#[test]
fn a_set_of_unknown_size_displaces_others_as_it_grows() {
    let mut cache = Cache::new(0, 1_200_000);
    let fast = |job: Job| Job {
        per_second: 10_000,
        hints: None,
        ..job
    };
    cache.read(&[fast(job(0, "a", 0))]);
    assert_near_all(cache.ratio(0));
    // Two tenants.
    let jobs = [fast(job(1, "a", 0)), fast(job(1, "b", 0))];
    cache.read(&jobs);
    assert_eq!(cache.read(&jobs), [10_000, 10_000]);
    assert!(cache.bytes(0) <= 130_000.0, "{}", cache.bytes(0));
}

#[test]
fn jobs_at_the_same_time_share_values() {
    let mut cache = Cache::new(8_000_000, 0);
    let jobs = [job(0, "a", 1); 4];
    let hits: u32 = cache.read(&jobs).iter().sum();
    assert!(hits > 20_000, "{hits} of at most 30,000");
}

#[test]
fn values_that_are_cheaper_to_compute_are_not_cached() {
    let cheap = Job {
        saved_seconds: -0.001,
        ..job(0, "a", 9)
    };
    let mut cache = Cache::new(2_000_000, 0);
    cache.read(&[
        cheap,
        Job {
            set: 1,
            tenant: "b",
            ..cheap
        },
    ]);
    assert!(cache.cached.is_empty());
    // Also a set that was worth it until now.
    let mut cache = Cache::new(8_000_000, 0);
    cache.read(&[job(0, "a", 9)]);
    for _ in 0..2 {
        cache.quotas.observe_value(set_id(0), 0, VALUE_BYTES, -99.0);
    }
    assert!((0..10_000).all(|object| cache.quotas.placement(set_id(0), object_hash(object)).is_none()));
}

/// Falls by half per interval; what becomes free goes to the better set at once.
#[test]
fn quotas_move_slowly_to_better_sets() {
    let mut cache = Cache::new(0, 1_000_000);
    cache.read(&[job(0, "a", 9)]);
    cache.read(&[job(0, "a", 9)]);
    assert_near(cache.bytes(0), 900_000.0);
    let better = Job {
        set: 1,
        saved_seconds: 10.0,
        ..job(1, "a", 9)
    };
    let mut expected = 900_000.0;
    cache.reallocate();
    for _ in 0..4 {
        for object in 0..10 {
            cache.request(&better, object_hash(object));
        }
        cache.now += REALLOCATION_INTERVAL;
        cache.reallocate();
        expected /= 2.0;
        assert_near(cache.bytes(0), expected);
        assert_near(cache.bytes(1), 900_000.0 - expected);
    }
}

#[test]
fn tenants_share_fairly_and_use_what_others_leave() {
    let mut cache = Cache::new(0, 1_000_000);
    let good = Job {
        saved_seconds: 0.1,
        ..job(0, "a", 9)
    };
    let fair = [good, job(1, "b", 9)];
    cache.read(&fair);
    cache.read(&fair);
    assert_near(cache.bytes(0), 450_000.0);
    assert_near(cache.bytes(1), 450_000.0);
    // The other tenant is gone.
    for _ in 0..20 {
        cache.read(&[good]);
    }
    assert_near(cache.bytes(0), 900_000.0);
}

#[test]
fn a_lie_costs_only_the_liar() {
    let liar = Job {
        hints: Some(Hints {
            epochs: u32::MAX,
            samples: u64::MAX,
        }),
        ..job(0, "liar", 9)
    };
    // In the same set, an honest reader's announcement counts.
    let mut cache = Cache::new(0, 2_000_000);
    let jobs = [job(0, "a", 9), liar];
    cache.read(&jobs);
    let hits: u32 = cache.read(&jobs).iter().sum();
    assert!(hits > 15_000, "{hits}");
    // In a set of its own, the liar gets nothing.
    let mut cache = Cache::new(0, 2_000_000);
    let jobs = [job(0, "a", 9), Job { set: 1, ..liar }];
    cache.read(&jobs);
    let hits = cache.read(&jobs);
    assert!(hits[0] > 6_500 && hits[1] == 0, "{hits:?}");
}
