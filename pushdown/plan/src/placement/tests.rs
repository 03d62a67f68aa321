use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

/// The ids of replicas, as Kubernetes names pods.
fn ids(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("gw-{index}")).collect()
}

/// Replicas with these cores.
fn with_cores(cores: &[f64]) -> Placement {
    let ids = ids(cores.len());
    Placement::new(ids.iter().map(String::as_str).zip(cores.iter().copied()))
}

/// Equal replicas.
fn equal(count: usize) -> Placement {
    with_cores(&vec![2.0; count])
}

/// Hashes of different objects.
fn hashes(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(|object| Digest::new(&object.to_le_bytes()).first_u64())
}

/// Counts by index.
fn counts(choices: impl IntoIterator<Item = usize>, replicas: usize) -> Vec<u64> {
    let mut counts = vec![0; replicas];
    for choice in choices {
        counts[choice] += 1;
    }
    counts
}

/// A change of this test places all cached samples anew: no version of a reader may differ. The list was also computed by a program in
/// another language from the definition.
#[test]
fn rankings_never_change() {
    const EXPECTED: [[usize; 5]; 20] = [
        [1, 2, 3, 4, 0],
        [3, 1, 0, 2, 4],
        [3, 1, 0, 2, 4],
        [2, 1, 3, 0, 4],
        [2, 3, 0, 1, 4],
        [1, 3, 0, 2, 4],
        [2, 0, 1, 4, 3],
        [3, 1, 2, 0, 4],
        [3, 1, 0, 4, 2],
        [0, 3, 1, 2, 4],
        [0, 1, 3, 4, 2],
        [4, 3, 1, 2, 0],
        [3, 1, 0, 2, 4],
        [2, 3, 0, 4, 1],
        [2, 3, 4, 1, 0],
        [1, 3, 0, 2, 4],
        [3, 1, 0, 2, 4],
        [2, 3, 0, 1, 4],
        [3, 2, 4, 0, 1],
        [0, 2, 3, 1, 4],
    ];
    let placement = with_cores(&[4.0, 4.0, 4.2, 8.0, 1.0]);
    let found: Vec<Vec<usize>> = (0..20)
        .map(|object: u64| placement.ranking(object.wrapping_mul(0x0123_4567_89ab_cdef)))
        .collect();
    assert_eq!(found, EXPECTED);
}

#[test]
fn weights_are_rounded_to_powers() {
    let weights = |cores: &[f64]| -> Vec<f64> {
        let placement = with_cores(cores);
        placement.replicas.iter().map(|replica| replica.weight).collect()
    };
    assert_eq!(weights(&[3.0, 3.1, 2.9]), [1.0; 3]);
    assert_eq!(weights(&[1.0, 1.5]), [0.8, 1.25]);
    // Unknown cores count as the mean of the others.
    let unknown = [f64::NAN, f64::INFINITY, 0.0, -1.0];
    assert_eq!(weights(&unknown), [1.0; 4]);
    assert_eq!(
        weights(&[unknown[0], 1.0, 1.5, unknown[2]]),
        [1.0, 0.8, 1.25, 1.0]
    );
    let extreme = with_cores(&[f64::MAX, f64::MIN_POSITIVE, f64::MAX]);
    assert_eq!(extreme.assign(&[1, 2, 3], &[], |_| true).len(), 3);
    assert!(extreme.fraction(1) <= 0.0);
}

#[test]
fn first_choices_follow_the_weights() {
    const COUNT: u64 = 100_000;
    for cores in [
        &[2.0][..],
        &[2.0; 8],
        &[1.0, 2.0, 4.0],
        &[4.0, 8.0, 8.0, 16.0],
        &[0.1, 0.1, 0.2],
    ] {
        let placement = with_cores(cores);
        let found = counts(
            hashes(COUNT).filter_map(|hash| placement.first_choice(hash)),
            cores.len(),
        );
        for (index, count) in found.into_iter().enumerate() {
            let ratio = float(count) / float(COUNT) / placement.fraction(index);
            assert!(
                (ratio - 1.0).abs() < 0.03,
                "expected 1, found {ratio} of {cores:?}"
            );
        }
    }
}

/// Gateways cache the objects with the lowest hashes, and these have to be on all replicas.
#[test]
fn low_hashes_are_on_all_replicas() {
    let placement = equal(8);
    let low = hashes(100_000).map(|hash| hash >> 10);
    let found = counts(low.filter_map(|hash| placement.first_choice(hash)), 8);
    assert!(
        found.iter().all(|count| (12_000..13_000).contains(count)),
        "{found:?}"
    );
}

#[test]
fn a_new_replica_moves_few_samples_and_only_to_itself() {
    const COUNT: u64 = 50_000;
    let first_choices = |count: usize| -> Vec<usize> {
        let placement = equal(count);
        hashes(COUNT)
            .filter_map(|hash| placement.first_choice(hash))
            .collect()
    };
    let mut before = first_choices(1);
    for count in 2..=32 {
        let after = first_choices(count);
        let pairs = before.iter().zip(&after);
        let moved: Vec<usize> = pairs
            .filter(|(before, after)| before != after)
            .map(|(_, after)| *after)
            .collect();
        assert!(moved.iter().all(|to| *to == count - 1));
        let ratio = float(moved.len() as u64) / float(COUNT);
        let expected = 1.0 / float(count as u64);
        assert!(
            (0.9 * expected..1.1 * expected).contains(&ratio),
            "expected {expected}, found {ratio} with {count} replicas"
        );
        before = after;
    }
}

#[test]
fn a_lost_replica_moves_only_its_own_samples() {
    let placement = equal(8);
    let mut moved_to = Vec::new();
    for hash in hashes(1_000) {
        let ranking = placement.ranking(hash);
        let left = placement.first_choice_among(hash, |index| index != 3).unwrap();
        if ranking[0] == 3 {
            assert_eq!(left, ranking[1]);
            moved_to.push(left);
        } else {
            assert_eq!(left, ranking[0]);
        }
    }
    // They go to all others.
    let found = counts(moved_to, 8);
    assert_eq!(found.iter().filter(|count| **count > 0).count(), 7, "{found:?}");
}

/// The ratio of samples at their first choice, while batches of 64 samples are placed and the oldest 64 leave.
fn first_choice_ratio(placement: &Placement, samples_in_flight: usize) -> f64 {
    const BATCH_SAMPLES: usize = 64;
    const BATCHES: usize = 400;
    let mut in_flight = VecDeque::new();
    let mut loads = vec![0; placement.len()];
    let (mut first_choices, mut placed) = (0, 0);
    let all: Vec<u64> = hashes((BATCH_SAMPLES * BATCHES) as u64).collect();
    for (batch, hashes) in all.chunks(BATCH_SAMPLES).enumerate() {
        while in_flight.len() + BATCH_SAMPLES > samples_in_flight {
            loads[in_flight.pop_front().unwrap()] -= 1;
        }
        let assigned = placement.assign(hashes, &loads, |_| true);
        for (hash, index) in hashes.iter().zip(assigned) {
            loads[index] += 1;
            in_flight.push_back(index);
            // The first batches find no others in flight.
            if batch >= 2 * samples_in_flight / BATCH_SAMPLES {
                placed += 1;
                first_choices += u64::from(placement.first_choice(*hash) == Some(index));
            }
        }
    }
    float(first_choices) / float(placed)
}

#[test]
fn nearly_all_samples_are_at_their_first_choice() {
    let ratio = first_choice_ratio(&equal(32), 1_024);
    assert!(ratio >= 0.96, "expected 0.96, found {ratio}");
    let ratio = first_choice_ratio(&equal(3), 256);
    assert!(ratio >= 0.99, "expected 0.99, found {ratio}");
}

#[test]
fn a_reader_with_few_samples_uses_few_replicas() {
    let placement = equal(8);
    let counted = [0, 31, 64, 255, 256, u64::MAX].map(|samples| placement.count_for(samples));
    assert_eq!(counted, [1, 1, 2, 7, 8, 8]);
    assert_eq!(placement.subset(7, 3, |_| true), placement.ranking(7)[..3]);
    assert_eq!(placement.subset(7, 9, |_| true).len(), 8);
    // The next ones stand in for those that are not usable.
    let first = placement.ranking(7)[0];
    assert_eq!(
        placement.subset(7, 3, |index| index != first),
        placement.ranking(7)[1..4]
    );
    // Data sets are spread over all replicas.
    let used = counts(
        hashes(1_000).flat_map(|data_set| placement.subset(data_set, 2, |_| true)),
        8,
    );
    assert!(used.iter().all(|count| *count > 200), "{used:?}");
}

#[test]
fn without_usable_replicas_nothing_is_assigned() {
    let none = with_cores(&[]);
    assert!(none.is_empty());
    assert!(none.ranking(1).is_empty());
    assert_eq!(none.first_choice(1), None);
    assert_eq!(none.count_for(1_000), 0);
    assert!(none.assign(&[1, 2], &[], |_| true).is_empty());
    assert!(equal(3).assign(&[1, 2], &[], |_| false).is_empty());
    assert_eq!(equal(3).assign(&[1, 2], &[], |index| index == 1), [1, 1]);
    assert!(equal(3).assign(&[], &[5, 5, 5], |_| true).is_empty());
}

#[test]
fn samples_over_the_limit_go_to_their_second_choice() {
    let placement = equal(4);
    let hash = 11;
    let ranking = placement.ranking(hash);
    // Of 40 samples each replica takes at most 11 and 1.25 standard deviations of 3.2, rounded up: 15.
    let mut in_flight = vec![8; 4];
    in_flight[ranking[0]] = 14;
    assert_eq!(
        placement.assign(&[hash; 2], &in_flight, |_| true),
        [ranking[0], ranking[1]]
    );
    // The second choice is the next usable one.
    assert_eq!(
        placement.assign(&[hash], &in_flight, |index| index != ranking[0]),
        [ranking[1]]
    );
    in_flight[ranking[0]] = 20;
    assert_eq!(
        placement.assign(&[hash], &in_flight, |index| index != ranking[1]),
        [ranking[2]]
    );
}

/// Numbers of cores of up to 12 replicas, with unknown ones.
fn any_cores() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(prop_oneof![9 => 0.1..64.0, 1 => Just(f64::NAN)], 1..12)
}

proptest! {
    #[test]
    fn the_order_of_the_list_does_not_matter(
        (cores, order) in any_cores().prop_flat_map(|cores| {
            let order: Vec<usize> = (0..cores.len()).collect();
            (Just(cores), Just(order).prop_shuffle())
        }),
        object_hashes in prop::collection::vec(any::<u64>(), 1..50),
    ) {
        let ids = ids(cores.len());
        let listed = with_cores(&cores);
        let shuffled = Placement::new(order.iter().map(|index| (ids[*index].as_str(), cores[*index])));
        let as_listed = |indices: Vec<usize>| -> Vec<usize> {
            indices.into_iter().map(|index| order[index]).collect()
        };
        for hash in &object_hashes {
            prop_assert_eq!(as_listed(shuffled.ranking(*hash)), listed.ranking(*hash));
        }
        let assigned = listed.assign(&object_hashes, &[], |_| true);
        prop_assert_eq!(as_listed(shuffled.assign(&object_hashes, &[], |_| true)), assigned);
    }

    #[test]
    fn rankings_name_each_replica_once(cores in any_cores(), hash: u64) {
        let placement = with_cores(&cores);
        let mut ranking = placement.ranking(hash);
        prop_assert_eq!(placement.first_choice(hash), ranking.first().copied());
        ranking.sort_unstable();
        prop_assert_eq!(ranking, (0..cores.len()).collect::<Vec<_>>());
        let sum: f64 = (0..cores.len()).map(|index| placement.fraction(index)).sum();
        prop_assert!((sum - 1.0).abs() < 1e-9);
    }

    #[test]
    fn no_replica_exceeds_its_limit(
        (cores, in_flight, usable) in any_cores().prop_flat_map(|cores| {
            let count = cores.len();
            (Just(cores), prop::collection::vec(0_u64..200, count), prop::collection::vec(any::<bool>(), count))
        }),
        object_hashes in prop::collection::vec(any::<u64>(), 0..300),
    ) {
        let placement = with_cores(&cores);
        let assigned = placement.assign(&object_hashes, &in_flight, |index| usable[index]);
        if !usable.contains(&true) {
            prop_assert!(assigned.is_empty());
            return Ok(());
        }
        prop_assert_eq!(assigned.len(), object_hashes.len());
        prop_assert!(assigned.iter().all(|index| usable[*index]));
        let indices = || (0..cores.len()).filter(|index| usable[*index]);
        let usable_fraction: f64 = indices().map(|index| placement.fraction(index)).sum();
        let total = indices().map(|index| in_flight[index]).sum::<u64>() + object_hashes.len() as u64;
        let added = counts(assigned, cores.len());
        for index in indices().filter(|index| added[*index] > 0) {
            let part = placement.fraction(index) / usable_fraction * float(total);
            let limit = 1.1 * part + 1.25 * part.sqrt();
            let load = float(in_flight[index] + added[index]);
            prop_assert!(load < limit + 1.0, "expected at most {limit} samples, found {load}");
        }
    }
}
