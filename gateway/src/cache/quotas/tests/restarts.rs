//! What a restart leaves of the quotas.

use std::time::{SystemTime, UNIX_EPOCH};

use super::*;

const CLOCK: SystemTime = UNIX_EPOCH;

/// The same cache in another process, `pause` later, with room for these bytes. Its memory is empty.
fn restarted(cache: &Cache, memory_bytes: u64, disk_bytes: u64, pause: Duration) -> Cache {
    let json = cache.quotas.save(cache.now, CLOCK).to_json().unwrap();
    let saved = SavedQuotas::from_json(&json).unwrap();
    let mut later = Cache::new(memory_bytes, disk_bytes);
    later.now = saved.resumed_at(CLOCK + pause);
    assert_eq!(later.now, cache.now + pause);
    later.quotas.resume(saved, later.now);
    let is_on_disk =
        |(id, hash): &&(SetId, u64)| cache.quotas.placement(*id, *hash) == Some(CacheLevel::Disk);
    later.cached = cache.cached.iter().filter(is_on_disk).copied().collect();
    later.reallocated_at(later.now);
    later
}

#[test]
fn sets_have_their_quotas_at_once() {
    let mut cache = Cache::new(0, 2_000_000);
    cache.read(&[job(0, "a", 1)]);
    let mut cache = restarted(&cache, 0, 2_000_000, Duration::from_secs(20));
    assert_near(cache.bytes(0), 1_000_000.0);
    assert_near_all(cache.ratio(0));
    // Another set does not get what is theirs, before the first reallocation and after some of them.
    cache.read(&[job(1, "a", 1)]);
    assert_near(cache.bytes(0) + cache.bytes(1), 1_800_000.0);
    assert_near_all(cache.ratio(0));
}

#[test]
fn no_value_of_a_set_that_fits_is_lost() {
    let mut cache = Cache::new(0, 2_000_000);
    cache.read(&[job(0, "a", 1)]);
    for _ in 0..3 {
        cache = restarted(&cache, 0, 2_000_000, Duration::from_hours(2));
        let other = Job {
            objects: 5_000,
            hints: None,
            ..job(1, "b", 1)
        };
        cache.read(&[other]);
        assert_eq!(cache.read(&[job(0, "a", 1)]), [10_000]);
    }
}

#[test]
fn what_was_in_memory_is_computed_again() {
    let mut cache = Cache::new(500_000, 2_000_000);
    cache.read(&[job(0, "a", 1)]);
    let mut cache = restarted(&cache, 500_000, 2_000_000, Duration::ZERO);
    let ratio = cache.ratio(0);
    assert!((0.45..0.6).contains(&ratio), "{ratio}");
    let hits = cache.read(&[job(0, "a", 1)])[0];
    assert!((5_000..6_000).contains(&hits), "{hits}");
    assert_eq!(cache.read(&[job(0, "a", 1)]), [10_000]);
}

#[test]
fn with_less_space_each_set_has_less() {
    let mut cache = Cache::new(0, 4_000_000);
    cache.read(&[job(0, "a", 1), job(1, "b", 1)]);
    let cache = restarted(&cache, 0, 1_000_000, Duration::ZERO);
    assert_near(cache.bytes(0), 450_000.0);
    assert_near(cache.bytes(1), 450_000.0);
}

#[test]
fn a_set_that_was_unused_for_the_expiry_has_no_quota() {
    let mut cache = Cache::new(0, 2_000_000);
    cache.read(&[job(0, "a", 2)]);
    let mut cache = restarted(&cache, 0, 2_000_000, DAY + HOUR);
    cache.reallocate();
    assert!(cache.quotas.sets.is_empty());
}

#[test]
fn damaged_quotas_are_refused() {
    let mut cache = Cache::new(0, 2_000_000);
    cache.read(&[job(0, "a", 1)]);
    let json = cache.quotas.save(cache.now, CLOCK).to_json().unwrap();
    let text = String::from_utf8(json.clone()).unwrap();
    assert!(SavedQuotas::from_json(&json).is_some());
    assert!(SavedQuotas::from_json(&json[..json.len() / 2]).is_none());
    for (part, damage) in [
        ("\"version\":1", "\"version\":2"),
        // Not in the order of the sample.
        ("\"objects\":[", "\"objects\":[18446744073709551614,"),
    ] {
        assert!(text.contains(part), "{part}");
        let damaged = text.replacen(part, damage, 1);
        assert!(SavedQuotas::from_json(damaged.as_bytes()).is_none(), "{damage}");
    }
}

#[test]
fn saved_files_keep_the_names_of_their_first_version() {
    let mut cache = Cache::new(0, 2_000_000);
    cache.read(&[job(0, "a", 1)]);
    let json = cache.quotas.save(cache.now, CLOCK).to_json().unwrap();
    let saved: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let set = saved["sets"].as_object().unwrap().values().next().unwrap();
    let quota = &set["share"];
    assert!(quota["bytes"]["disk"].as_f64() > Some(0.0), "{set}");
    for name in ["memory", "total", "has_grown", "is_full"] {
        assert!(quota.get(name).is_some(), "{name}: {quota}");
    }
}
