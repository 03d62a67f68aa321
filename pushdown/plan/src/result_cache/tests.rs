use proptest::prelude::*;

use super::*;

fn assert_near(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() < 1e-9,
        "expected {expected}, found {found}"
    );
}

#[test]
fn without_observations_nothing_is_cached() {
    let cache = ResultCache::new(3);
    assert_eq!(cache.sides(), [1.0]);
    for stage in 0..5 {
        assert_near(cache.hits(stage, 0.0, 1.0).ratio, 0.0);
        assert_near(cache.hits(stage, 0.0, 1.0).later_ratio, 0.0);
        assert!(!cache.has_hits(stage));
    }
    // Invalid observations are ignored.
    let mut cache = cache;
    cache.announce([(0, 0.5), (9, 0.5), (1, f64::NAN)]);
    cache.observe(0, 0.1, Some(1.0));
    cache.observe(9, 0.1, None);
    assert_eq!(cache, ResultCache::new(3));
}

#[test]
fn an_announcement_divides_objects_into_sides() {
    let mut cache = ResultCache::new(5);
    cache.announce([(3, 0.25), (5, 1.0)]);
    assert_eq!(cache.sides(), [0.25, 1.0]);
    // Nothing was requested yet: the announcement counts.
    assert_near(cache.hits(3, 0.0, 0.25).ratio, 1.0);
    assert_near(cache.hits(3, 0.25, 1.0).ratio, 0.0);
    assert_near(cache.hits(3, 0.0, 1.0).ratio, 0.25);
    assert_near(cache.hits(5, 0.25, 1.0).ratio, 1.0);
    assert_near(cache.hits(4, 0.0, 0.25).ratio, 0.0);
    cache.announce([(1, 0.001), (2, 0.5), (3, 0.51), (4, 0.995), (5, 7.0)]);
    assert_eq!(cache.sides(), [0.5, 1.0], "small sides are not told apart");
    let many = (1..=5).zip([0.1, 0.2, 0.3, 0.4, 0.5]);
    cache.announce(many);
    assert_eq!(cache.sides(), [0.1, 0.2, 0.3, 1.0]);
    // A stage between two bounds covers a part of its side.
    assert_near(cache.hits(5, 0.3, 1.0).later_ratio, 0.2 / 0.7);
    cache.announce([]);
    assert_eq!(cache.sides(), [1.0]);
}

/// The announced part is computed in the first epoch, and is a hit in the second.
#[test]
fn observations_correct_an_announcement() {
    let mut cache = ResultCache::new(2);
    cache.announce([(2, 0.5)]);
    let epoch = |cache: &mut ResultCache, hit_seconds: Option<f64>| {
        for sample in 0..128_u32 {
            let hash_fraction = f64::from(sample) / 128.0;
            let cached = hit_seconds.filter(|_| hash_fraction < 0.5);
            cache.observe(2, hash_fraction, cached);
        }
    };
    epoch(&mut cache, None);
    let first = cache.hits(2, 0.0, 0.5);
    assert_near(first.ratio, 0.0);
    assert_near(first.later_ratio, 1.0);
    assert_near(first.seconds, ASSUMED_HIT_SECONDS);
    cache.next_epoch(128.0);
    assert_near(cache.hits(2, 0.0, 0.5).ratio, 1.0);
    epoch(&mut cache, Some(0.003));
    assert_near(cache.hits(2, 0.0, 0.5).ratio, 1.0);
    assert_near(cache.hits(2, 0.5, 1.0).ratio, 0.0);
    assert_near(cache.hits(2, 0.0, 1.0).seconds, 0.003);
    // The gateway restarted without its cache: one batch of 64 suffices to notice.
    epoch(&mut cache, None);
    assert!(cache.hits(2, 0.0, 0.5).ratio < 0.2, "{cache:?}");
}

/// A few trials at a stage fill a few entries only.
#[test]
fn trials_do_not_fill_a_cache() {
    let mut cache = ResultCache::new(1);
    cache.announce([(1, 1.0)]);
    for _ in 0..10 {
        cache.observe(1, 0.5, None);
    }
    cache.next_epoch(1_000.0);
    assert_near(cache.hits(1, 0.0, 1.0).ratio, 0.01);
    // Without requests, the end of an epoch changes nothing.
    let before = cache.clone();
    cache.next_epoch(1_000.0);
    assert_eq!(cache, before);
}

proptest! {
    #[test]
    fn sides_cover_all_hashes_and_ratios_are_ratios(
        ratios in prop::collection::vec(-0.5..1.5_f64, 1..8),
        seen in prop::collection::vec((0_usize..9, 0.0..1.0_f64, prop::option::of(0.0..0.1_f64)), 0..50),
    ) {
        let mut cache = ResultCache::new(ratios.len());
        cache.announce(ratios.iter().copied().enumerate().map(|(index, ratio)| (index + 1, ratio)));
        for (stage, hash_fraction, hit_seconds) in seen {
            cache.observe(stage, hash_fraction, hit_seconds);
        }
        cache.next_epoch(20.0);
        let sides = cache.sides();
        prop_assert!(sides.len() <= MAX_SIDES);
        prop_assert_eq!(sides.last(), Some(&1.0));
        let mut lower = 0.0;
        for upper in sides {
            prop_assert!(upper > lower);
            for stage in 0..=ratios.len() {
                let hits = cache.hits(stage, lower, upper);
                prop_assert!((0.0..=1.0).contains(&hits.ratio), "{:?}", hits);
                prop_assert!((hits.ratio..=1.0).contains(&hits.later_ratio), "{:?}", hits);
                prop_assert!(hits.seconds.is_finite() && hits.seconds >= 0.0);
            }
            lower = upper;
        }
    }
}
