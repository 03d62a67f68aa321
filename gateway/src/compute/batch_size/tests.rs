use super::*;

/// The chosen size of each of `count` batches. `load` samples wait, and `time` maps the samples of a batch to the
/// microseconds per sample.
fn batches(provider: Provider, count: usize, load: usize, time: impl Fn(usize) -> u64) -> Vec<usize> {
    let mut tuner = BatchSizeTuner::new(candidate_sizes(provider));
    let mut next = |_| {
        let max_samples = tuner.next_max_samples();
        let samples = max_samples.min(load);
        tuner.record(samples, Duration::from_micros(time(samples)));
        max_samples
    };
    (0..count).map(&mut next).collect()
}

/// Batches on the CPU, under a load that fills every batch.
fn on_cpu(single: u64, batched: u64) -> Vec<usize> {
    batches(Provider::Cpu, 2_560, 8, |samples| {
        if samples == 1 { single } else { batched }
    })
}

/// All trials of smaller batches: at intervals of 2, 4, 8 to 128 batches, and then of 256.
const SMALLER_TRIALS: usize = 7 + 8;

fn count(batches: &[usize], size: usize) -> usize {
    batches.iter().filter(|batch| **batch == size).count()
}

#[test]
fn the_better_size_is_found_and_the_other_is_tried_again() {
    let small = on_cpu(10_000, 12_000);
    assert_eq!(small[..5], [8, 8, 1, 1, 1]);
    assert_eq!(count(&small, 8), 2 + 9);
    let large = on_cpu(40_000, 25_000);
    assert_eq!(count(&large, 1), 2 + SMALLER_TRIALS);
    let same = on_cpu(10_000, 9_900);
    assert_eq!(count(&same, 8), 2 + 9);
}

#[test]
fn a_change_of_times_is_noticed() {
    let mut tuner = BatchSizeTuner::new(candidate_sizes(Provider::Cpu));
    let mut batched = 0;
    for batch in 0..1_000_u64 {
        let max_samples = tuner.next_max_samples();
        batched += usize::from(batch >= 500 && max_samples > 1);
        // Batches pay from the middle on.
        let time = match (max_samples, batch < 500) {
            (1, _) => 10_000,
            (_, true) => 20_000,
            (_, false) => 5_000,
        };
        tuner.record(max_samples, Duration::from_micros(time));
    }
    assert!(batched > 400, "{batched} of 500");
}

/// Background load slows small batches to the time of large ones for a while.
#[test]
fn a_disturbance_is_soon_forgotten() {
    let mut tuner = BatchSizeTuner::new(candidate_sizes(Provider::Cpu));
    let mut batched = Vec::new();
    for batch in 0..2_000 {
        let max_samples = tuner.next_max_samples();
        let time = match (max_samples, batch) {
            (1, 500..520) => 20_000,
            (1, _) => 9_000,
            _ => 13_000,
        };
        tuner.record(max_samples, Duration::from_micros(time));
        batched.extend((max_samples > 1).then_some(batch));
    }
    let after = batched.iter().filter(|batch| (500..700).contains(*batch));
    assert!((1..=16).contains(&after.count()), "{batched:?}");
}

/// The cost of a launch is constant, so a sample takes less time in a larger batch.
#[test]
fn a_gpu_gets_larger_batches_while_they_pay() {
    let each = |samples: usize| 50 + 2_000 / samples as u64;
    let found = batches(Provider::Cuda, 2_560, 1_000, each);
    assert_eq!(found[..9], [128, 128, 32, 32, 8, 8, 1, 1, 128]);
    assert_eq!(count(&found, 128), 2_560 - 6 - SMALLER_TRIALS);
    // Trials are round robin.
    assert!([1, 8, 32].iter().all(|size| count(&found, *size) >= 2 + 3));
}

#[test]
fn batches_that_do_not_fit_into_gpu_memory_are_avoided() {
    // A batch of 128 is refused, and runs one sample at a time.
    let each = |samples: usize| {
        if samples > 32 {
            3_000
        } else {
            50 + 2_000 / samples as u64
        }
    };
    let found = batches(Provider::Cuda, 2_560, 1_000, each);
    assert_eq!(count(&found, 32), 2_560 - 6 - SMALLER_TRIALS);
}

#[test]
fn a_load_below_the_largest_batch_runs_without_limits() {
    let each = |samples: usize| 50 + 2_000 / samples as u64;
    let found = batches(Provider::Cuda, 2_560, 20, each);
    assert_eq!(found[..7], [128, 128, 8, 8, 1, 1, 128]);
    let whole = found.iter().filter(|max_samples| **max_samples >= 20).count();
    assert!(
        whole >= 2_560 - 4 - 10,
        "{whole} batches took all waiting samples"
    );
    let single = batches(Provider::Cuda, 100, 1, each);
    assert_eq!(count(&single, 128), 100);
}
