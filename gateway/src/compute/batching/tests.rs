use super::*;

/// The size of each batch, where a sample takes as many microseconds as `time` says of a batch of so many, and
/// `load` samples wait.
fn batches(provider: Provider, count: usize, load: usize, time: impl Fn(usize) -> u64) -> Vec<usize> {
    let mut batching = Batching::new(sizes(provider));
    let mut next = |_| {
        let most = batching.most();
        let samples = most.min(load);
        batching.took(samples, Duration::from_micros(time(samples)));
        most
    };
    (0..count).map(&mut next).collect()
}

/// Batches on the processor, under a load that always gives as many samples as are wanted.
fn on_cpu(alone: u64, together: u64) -> Vec<usize> {
    batches(Provider::Cpu, 2_560, 8, |samples| {
        if samples == 1 { alone } else { together }
    })
}

/// Trials of smaller batches in all: 2, 4, 8 to 128 batches behind one another, and then every 256.
const SMALLER: usize = 7 + 8;

fn count(batches: &[usize], size: usize) -> usize {
    batches.iter().filter(|batch| **batch == size).count()
}

#[test]
fn the_better_way_is_found_and_the_other_tried_again() {
    let small = on_cpu(10_000, 12_000);
    assert_eq!(small[..5], [8, 8, 1, 1, 1]);
    assert_eq!(count(&small, 8), 2 + 9);
    let large = on_cpu(40_000, 25_000);
    assert_eq!(count(&large, 1), 2 + SMALLER);
    let same = on_cpu(10_000, 9_900);
    assert_eq!(count(&same, 8), 2 + 9);
}

#[test]
fn what_changes_is_noticed() {
    let mut batching = Batching::new(sizes(Provider::Cpu));
    let mut together = 0;
    for batch in 0..1_000_u64 {
        let most = batching.most();
        together += usize::from(batch >= 500 && most > 1);
        // Company pays from the middle on.
        let time = match (most, batch < 500) {
            (1, _) => 10_000,
            (_, true) => 20_000,
            (_, false) => 5_000,
        };
        batching.took(most, Duration::from_micros(time));
    }
    assert!(together > 400, "{together} of 500");
}

/// Small batches of a loaded machine take as long as large ones do, for a while.
#[test]
fn a_disturbance_is_soon_forgotten() {
    let mut batching = Batching::new(sizes(Provider::Cpu));
    let mut together = Vec::new();
    for batch in 0..2_000 {
        let most = batching.most();
        let time = match (most, batch) {
            (1, 500..520) => 20_000,
            (1, _) => 9_000,
            _ => 13_000,
        };
        batching.took(most, Duration::from_micros(time));
        together.extend((most > 1).then_some(batch));
    }
    let behind = together.iter().filter(|batch| (500..700).contains(*batch));
    assert!((1..=16).contains(&behind.count()), "{together:?}");
}

/// A launch costs the same whatever it computes, so each sample takes less in a large batch.
#[test]
fn a_gpu_gets_more_at_once_while_that_pays() {
    let each = |samples: usize| 50 + 2_000 / samples as u64;
    let found = batches(Provider::Cuda, 2_560, 1_000, each);
    assert_eq!(found[..9], [128, 128, 32, 32, 8, 8, 1, 1, 128]);
    assert_eq!(count(&found, 128), 2_560 - 6 - SMALLER);
    // The trials take turns.
    assert!([1, 8, 32].iter().all(|size| count(&found, *size) >= 2 + 3));
}

#[test]
fn what_does_not_fit_into_a_gpu_is_not_asked_of_it() {
    // 128 are refused, and run one by one.
    let each = |samples: usize| {
        if samples > 32 {
            3_000
        } else {
            50 + 2_000 / samples as u64
        }
    };
    let found = batches(Provider::Cuda, 2_560, 1_000, each);
    assert_eq!(count(&found, 32), 2_560 - 6 - SMALLER);
}

#[test]
fn a_load_that_never_fills_the_largest_batch_runs_as_it_comes() {
    let each = |samples: usize| 50 + 2_000 / samples as u64;
    let found = batches(Provider::Cuda, 2_560, 20, each);
    assert_eq!(found[..7], [128, 128, 8, 8, 1, 1, 128]);
    let whole = found.iter().filter(|most| **most >= 20).count();
    assert!(whole >= 2_560 - 4 - 10, "{whole} took all that waited");
    let alone = batches(Provider::Cuda, 100, 1, each);
    assert_eq!(count(&alone, 128), 100);
}
