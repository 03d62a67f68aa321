//! What the table of sets forgets, and what the status page shows of it.

use super::*;

#[test]
fn unused_sets_expire() {
    let mut cache = Cache::new(8_000_000, 0);
    cache.read(&[job(0, "a", 2)]);
    // A reader plans another epoch.
    cache.now += DAY;
    cache.reallocate();
    assert_near_all(cache.ratio(0));
    cache.now += Duration::from_mins(1);
    cache.reallocate();
    assert!(cache.quotas.sets.is_empty() && cache.quotas.snapshot(cache.now).is_empty());
}

#[test]
fn the_number_of_sets_is_bounded() {
    let mut cache = Cache::new(8_000_000, 0);
    cache.read(&[job(0, "a", 2)]);
    for number in 1..20_000_u128 {
        cache.now += Duration::from_millis(1);
        let id = SetId((number << 64).to_le_bytes());
        cache
            .quotas
            .observe_request(id, &Tenant::default(), 0, None, cache.now);
        assert!(cache.quotas.sets.len() <= MAX_SETS);
    }
    // Sets without a quota are forgotten first.
    assert_near_all(cache.ratio(0));
}

#[test]
fn the_snapshot_says_who_uses_what() {
    let mut cache = Cache::new(2_000_000, 6_000_000);
    cache.read(&[
        job(1, "a", 2),
        Job {
            hints: None,
            ..job(1, "b", 0)
        },
    ]);
    let statuses = cache.quotas.snapshot(cache.now);
    let text = serde_json::to_value(&statuses).unwrap();
    assert_eq!(statuses.len(), 1);
    assert_eq!(text[0]["set"], "01".repeat(16));
    assert_eq!(text[0]["tenants"], serde_json::json!(["a", "b"]));
    assert_eq!(text[0]["requests"], 20_000);
    assert_eq!(text[0]["saved_seconds_per_hit"], 0.01);
}
