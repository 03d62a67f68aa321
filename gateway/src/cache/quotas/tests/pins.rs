//! What tenants pin, and what is left for others.

use std::time::{SystemTime, UNIX_EPOCH};

use super::*;

const LEASE: Duration = Duration::from_hours(48);

/// Pins a set after a first request, which announces its size.
fn pin(cache: &mut Cache, job: &Job, keep: Duration) {
    cache.request(job, object_hash(0));
    let tenant = Tenant::from_access_key(Some(job.tenant));
    cache.quotas.pin(set_id(job.set), &tenant, keep, cache.now);
}

fn pinned_bytes(cache: &Cache, set: u8) -> f64 {
    cache.quotas.sets[&set_id(set)].leases.bytes()
}

/// Room for 1.8 sets, which others have and use.
fn cache_of_others() -> Cache {
    let mut cache = Cache::new(0, 2_000_000);
    for _ in 0..2 {
        cache.read(&[job(0, "a", 9), job(1, "b", 9)]);
    }
    assert_near(cache.bytes(0) + cache.bytes(1), 1_800_000.0);
    cache
}

#[test]
fn a_pin_takes_its_part_at_once_and_no_more() {
    let mut cache = cache_of_others();
    // All values have 1 MB, and half of the capacity are 0.9 MB.
    let large = job(2, "c", 1);
    pin(&mut cache, &large, LEASE);
    assert_near(pinned_bytes(&cache, 2), 900_000.0);
    assert_near(cache.bytes(0) + cache.bytes(1), 900_000.0);
    cache.read(&[large]);
    assert!(cache.ratio(2) > 0.8, "{}", cache.ratio(2));
    // What is stored stays, although the others ask again and again.
    for _ in 0..3 {
        cache.read(&[job(0, "a", 9), job(1, "b", 9)]);
    }
    let hits = cache.read(&[large])[0];
    assert!(hits > 8_500, "{hits} of 10,000");
    // Another set of this tenant gets nothing of the others'.
    pin(&mut cache, &job(3, "c", 1), LEASE);
    assert!(pinned_bytes(&cache, 3) < 1.0, "{}", pinned_bytes(&cache, 3));
}

#[test]
fn values_that_are_cheaper_to_compute_can_be_pinned() {
    let cheap = Job {
        saved_seconds: -0.001,
        objects: 5_000,
        hints: None,
        ..job(0, "a", 1)
    };
    let mut cache = Cache::new(0, 2_000_000);
    pin(&mut cache, &cheap, LEASE);
    cache.read(&[cheap]);
    let hits = cache.read(&[cheap])[0];
    assert!(hits > 4_900, "{hits} of 5,000");
}

#[test]
fn all_tenants_together_pin_no_more_than_the_capacity() {
    let mut cache = Cache::new(0, 1_000_000);
    for (set, tenant) in [(0, "a"), (1, "b"), (2, "c")] {
        pin(&mut cache, &job(set, tenant, 1), LEASE);
    }
    assert_near(pinned_bytes(&cache, 0), 450_000.0);
    assert_near(pinned_bytes(&cache, 1), 450_000.0);
    assert!(pinned_bytes(&cache, 2) < 1.0, "{}", pinned_bytes(&cache, 2));
}

/// Their leases cover the same values, and each lasts for itself.
#[test]
fn two_tenants_pin_one_set() {
    let mut cache = Cache::new(0, 2_000_000);
    let small = |tenant| Job {
        objects: 4_000,
        hints: Some(Hints {
            epochs: 1,
            samples: 4_000,
        }),
        ..job(0, tenant, 1)
    };
    pin(&mut cache, &small("a"), HOUR);
    pin(&mut cache, &small("b"), LEASE);
    assert_near(pinned_bytes(&cache, 0), 400_000.0);
    let pins = serde_json::to_value(cache.quotas.pins(cache.now)).unwrap();
    assert_eq!(pins[0]["tenant"], "a");
    assert_eq!(
        (&pins[1]["bytes"], &pins[1]["sets"]),
        (&serde_json::json!(400_000.0), &serde_json::json!(1))
    );
    cache.now += HOUR;
    cache.quotas.end_leases(cache.now);
    assert_near(pinned_bytes(&cache, 0), 400_000.0);
    assert_eq!(cache.quotas.pins(cache.now).len(), 1);
}

#[test]
fn after_its_lease_a_set_is_an_ordinary_one() {
    let mut cache = Cache::new(0, 2_000_000);
    pin(&mut cache, &job(0, "a", 1), LEASE);
    cache.read(&[job(0, "a", 1)]);
    // Unused for longer than the expiry.
    cache.now += Duration::from_hours(47);
    cache.reallocate();
    assert!(pinned_bytes(&cache, 0) > 800_000.0);
    cache.read(&[job(1, "b", 9)]);
    assert!(cache.bytes(0) > 800_000.0, "{}", cache.bytes(0));
    cache.now += HOUR;
    cache.quotas.end_leases(cache.now);
    assert!(cache.quotas.pinned_bytes() < 1.0);
    cache.reallocate();
    assert!(cache.bytes(0) < 1.0, "{}", cache.bytes(0));
}

/// In memory they would be lost.
#[test]
fn pinned_values_are_on_the_disk_and_survive_a_restart() {
    let small = Job {
        objects: 5_000,
        hints: Some(Hints {
            epochs: 2,
            samples: 5_000,
        }),
        ..job(0, "a", 2)
    };
    let mut cache = Cache::new(1_000_000, 2_000_000);
    pin(&mut cache, &small, LEASE);
    cache.read(&[small]);
    let level = |cache: &Cache, object| cache.quotas.placement(set_id(0), object_hash(object));
    assert!((0..5_000).all(|object| level(&cache, object) == Some(CacheLevel::Disk)));
    let json = cache.quotas.save(cache.now, UNIX_EPOCH).to_json().unwrap();
    let saved = SavedQuotas::from_json(&json).unwrap();
    let mut later = Cache::new(1_000_000, 2_000_000);
    later.now = saved.resumed_at(UNIX_EPOCH + HOUR);
    later.quotas.resume(saved, later.now);
    assert_near(pinned_bytes(&later, 0), 500_000.0);
    later.quotas.end_leases(cache.now + LEASE);
    assert!(later.quotas.pinned_bytes() < 1.0);
}

#[test]
fn files_of_earlier_versions_have_no_pins() {
    let mut cache = Cache::new(0, 2_000_000);
    cache.read(&[job(0, "a", 1)]);
    let json = cache.quotas.save(cache.now, SystemTime::now()).to_json().unwrap();
    let text = String::from_utf8(json).unwrap();
    let earlier = text.replace(",\"leases\":[]", "");
    assert!(earlier.len() < text.len(), "{text}");
    assert!(SavedQuotas::from_json(earlier.as_bytes()).is_some());
}
