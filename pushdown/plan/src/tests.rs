mod cells;
mod cropped;
mod result_cache;
mod short_epochs;
mod ties;
mod two_paths;

use std::num::NonZeroUsize;

use proptest::prelude::*;

use self::cells::{Cell, cells, cells_with_two_paths, exhaustive, sizes};
use super::{
    simulate::{ReadAhead, epoch_seconds, sample_costs},
    *,
};

fn split(stage: usize, bytes: f64, gateway_seconds: f64, host_seconds: f64) -> Candidate {
    Candidate {
        stage: Stage::after(stage),
        bytes,
        gateway_seconds,
        host_seconds,
        weights_bytes: 0.0,
        loading: LoadingCost::default(),
        hits: CacheHits::default(),
    }
}

fn tiers(gateway_cores: f64, link_bytes_per_second: f64, host_cores: f64) -> Tiers {
    Tiers {
        gateway_cores,
        background_seconds: 0.0,
        link_bytes_per_second,
        paths: None,
        host_cores,
        trainer_seconds: 0.0,
        shared: false,
    }
}

fn one_class(candidates: Vec<Candidate>) -> Vec<Class> {
    vec![Class {
        fraction: 1.0,
        candidates,
    }]
}

/// A photo of 107 KB: decoding and cropping take a millisecond, the model ten more; the features have 2,560 bytes.
fn photo() -> Vec<Candidate> {
    vec![
        split(0, 107_000.0, 0.0, 0.0115),
        split(3, 150_528.0, 0.0012, 0.0103),
        split(6, 2_560.0, 0.0115, 0.0),
    ]
}

fn assert_near(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() <= 1e-6 * expected.abs().max(1e-9),
        "expected {expected}, found {found}"
    );
}

#[test]
fn a_slow_link_moves_steps_to_the_gateway() {
    let classes = one_class(photo());
    let thin = Plan::best(&tiers(4.0, 125_000.0, 4.0), &classes, &Rules::default());
    assert_near(thin.fractions[0][2], 1.0);
    assert_eq!(thin.load.bound(), Bound::Link);
    // Without gateway cores, only plain reading is possible.
    let none = Plan::best(&tiers(0.0, 125_000.0, 4.0), &classes, &Rules::default());
    assert_near(none.fractions[0][0], 1.0);
}

/// Gateway and host of equal speed and an unlimited link: half of the samples on each, computed by hand.
#[test]
fn work_is_shared_between_the_tiers() {
    let classes = one_class(vec![split(0, 1000.0, 0.0, 0.010), split(1, 10.0, 0.010, 0.0)]);
    let plan = Plan::best(&tiers(1.0, f64::INFINITY, 1.0), &classes, &Rules::default());
    assert_near(plan.load.seconds(), 0.005 * (1.0 + TIE_RATIO));
    assert_near(plan.fractions[0][1], 0.5 * (1.0 + TIE_RATIO));
    // On one machine the total work is the same at every split, so the fewest bytes win.
    let shared = Tiers {
        shared: true,
        ..tiers(1.0, f64::INFINITY, 1.0)
    };
    assert_near(
        Plan::best(&shared, &classes, &Rules::default()).fractions[0][1],
        1.0,
    );
}

#[test]
fn large_photos_are_reduced_before_small_ones() {
    let small = Class {
        fraction: 0.5,
        candidates: vec![split(0, 20_000.0, 0.0, 0.001), split(1, 15_000.0, 0.001, 0.0)],
    };
    let large = Class {
        fraction: 0.5,
        candidates: vec![split(0, 4e6, 0.0, 0.040), split(1, 15_000.0, 0.040, 0.0)],
    };
    // The gateway has time for about half of the large photos only.
    let plan = Plan::best(&tiers(0.02, 1e6, 4.0), &[small, large], &Rules::default());
    assert!(plan.fractions[0][1] < 1e-6, "{plan:?}");
    assert!(plan.fractions[1][1] > 0.3, "{plan:?}");
}

#[test]
fn no_value_is_larger_than_its_object() {
    // VGG-19: 19.6 G multiplications, and 401,408 bytes after the first of its five blocks.
    let classes = one_class(vec![split(0, 107_000.0, 0.0, 0.5), split(4, 401_408.0, 0.4, 0.1)]);
    let thin = tiers(8.0, 1e7, 1.0);
    let plan = Plan::best(&thin, &classes, &Rules::default());
    assert_near(plan.fractions[0][0], 1.0);
    let rules = Rules {
        max_expand: 4.0,
        ..Rules::default()
    };
    assert!(Plan::best(&thin, &classes, &rules).fractions[0][1] > 0.5);
}

/// Trials use the idle time of each tier, and 3 % of the time of the plan.
#[test]
fn trials_use_idle_time() {
    let classes = one_class(photo());
    let trial_fractions = |link_bytes_per_second: f64| {
        let link = tiers(1.0, link_bytes_per_second, 1.0);
        let pushed = Plan::from_fractions(&link, &classes, vec![vec![0.0, 0.0, 1.0]], &Rules::default());
        let plain = Plan::plain(&link, &classes, &Rules::default());
        (
            pushed.trial_fraction(&plain.load),
            plain.trial_fraction(&pushed.load),
        )
    };
    // The gateway is the bottleneck. The link has time for some samples, the host for all of them.
    let (plainly, _) = trial_fractions(0.8e6);
    assert_near(plainly, (0.0115 * 1.03 - 2_560.0 / 0.8e6) / (107_000.0 / 0.8e6));
    // The link is the bottleneck of both.
    let (plainly, pushed) = trial_fractions(1e4);
    assert_near(plainly, 0.03 * 2_560.0 / 107_000.0);
    assert_near(pushed, 1.0);
    let (plainly, _) = trial_fractions(f64::INFINITY);
    assert_near(plainly, 1.0);
}

#[test]
fn a_slow_trainer_makes_the_fewest_bytes_win() {
    let slow = Tiers {
        trainer_seconds: 0.1,
        ..tiers(1.0, 1e9, 1.0)
    };
    let plan = Plan::best(&slow, &one_class(photo()), &Rules::default());
    assert_near(plan.fractions[0][2], 1.0);
    assert_eq!(plan.load.bound(), Bound::Trainer);
}

#[test]
fn a_reader_demands_the_cores_that_it_could_use() {
    let classes = one_class(vec![
        split(0, 100_000.0, 0.0, 0.010),
        split(1, 20_000.0, 0.005, 0.0),
    ]);
    let demand = |tiers: Tiers| {
        let rules = Rules::default();
        let decision = Decision {
            plan: Plan::best(&tiers, &classes, &rules),
            classes: classes.clone(),
            tiers,
            rules,
            sides: vec![1.0],
        };
        decision.demand_cores()
    };
    // 500 values per second fit into the link, each of 5 ms, whatever cores there are.
    for gateway_cores in [0.1, 1.0, 64.0] {
        assert_near(demand(tiers(gateway_cores, 1e7, 1.0)), 2.5);
    }
    let slow_trainer = Tiers {
        trainer_seconds: 0.010,
        ..tiers(1.0, 1e7, 1.0)
    };
    assert_near(demand(slow_trainer), 0.5);
    // Nothing else limits the pace, or the host has the same cores.
    assert_near(demand(tiers(1.0, f64::INFINITY, 0.001)), MAX_DEMAND_CORES);
    let shared = Tiers {
        shared: true,
        ..tiers(1.0, 1e7, 1.0)
    };
    assert_near(demand(shared), 0.0);
}

#[test]
fn replicas_count_as_the_cores_that_can_be_busy() {
    let cores = |replicas: &[(f64, f64)]| Tiers::effective_cores(replicas.iter().copied());
    assert_near(cores(&[]), 0.0);
    assert_near(cores(&[(4.0, 1.0)]), 4.0);
    assert_near(cores(&[(4.0, 0.5), (2.0, 0.25), (2.0, 0.25)]), 8.0);
    // Half of the samples wait for a quarter of the cores.
    assert_near(cores(&[(6.0, 0.5), (2.0, 0.5)]), 4.0);
    assert_near(cores(&[(6.0, 3.0), (2.0, 3.0)]), 4.0);
    // A replica without samples adds nothing, and one without cores ends everything.
    assert_near(cores(&[(6.0, 0.0), (2.0, 1.0)]), 2.0);
    assert_near(cores(&[(6.0, 0.5), (0.0, 0.5)]), 0.0);
    assert_near(cores(&[(6.0, 0.0)]), 0.0);
}

/// A digest of numbers, bit for bit: FNV-1a (Fowler, Noll and Vo, 1991).
#[derive(Debug)]
pub(super) struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    pub(super) fn add(&mut self, numbers: &[f64]) {
        for byte in numbers.iter().flat_map(|number| number.to_bits().to_le_bytes()) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    #[track_caller]
    pub(super) fn check(&self, expected: u64) {
        assert_eq!(
            self.0, expected,
            "expected {expected:#018x}, found {:#018x}",
            self.0
        );
    }
}

/// Plans over one path are what they were before there could be two.
#[test]
fn plans_over_one_path_are_bit_for_bit_the_same() {
    let mut digest = Digest::default();
    for Cell { tiers, classes, .. } in cells().into_iter().step_by(11) {
        for rules in [Rules::default(), short(96)] {
            let plan = Plan::best(&tiers, &classes, &rules);
            plan.fractions.iter().for_each(|fractions| digest.add(fractions));
            digest.add(&[plan.load.seconds(), plan.tail_seconds, plan.bytes_per_sample]);
        }
    }
    digest.check(0x207c_86a6_a4f8_2b65);
}

/// Samples per batch of a simulated reader.
const BATCH_SAMPLES: NonZeroUsize = NonZeroUsize::new(32).unwrap();
/// Equal times, up to rounding.
const EQUAL: f64 = 1.0 + 1e-9;
/// A few percent: one more sample on the slowest tier of a short epoch.
const SHORT: f64 = 1.08;

/// The rules for an epoch of this many samples.
fn short(samples: usize) -> Rules {
    Rules {
        samples_left: f64::from(u32::try_from(samples).unwrap()),
        batch_size: 32.0,
        ..Rules::default()
    }
}

/// Every plan is within 5 % of the best mixture and never slower than plain reading, and the simulation agrees with the sums. In
/// the simulation, plans are not slower than plain reading either, for one batch and from 400 samples on. In an epoch of three
/// batches fractions are not whole samples, and one more sample on the slowest tier costs a few percent.
#[test]
fn plans_are_near_optimal() {
    assert_short_epochs_gain(check_plans(cells().into_iter().step_by(7), EQUAL), 0.8);
}

#[test]
#[ignore = "1,920 cells: make test-full"]
fn plans_are_near_optimal_in_every_cell() {
    assert_short_epochs_gain(check_plans(cells(), EQUAL), 0.8);
}

/// The same if store and gateway are reached over two paths, equal or not. If values wait for objects on the link that both share, one
/// batch takes a few percent longer than plain reading in three of all cells.
#[test]
fn plans_over_two_paths_are_near_optimal() {
    assert_short_epochs_gain(
        check_plans(cells_with_two_paths().into_iter().step_by(67), SHORT),
        0.9,
    );
}

#[test]
#[ignore = "1,920 cells with six pairs of paths: make test-full"]
fn plans_over_two_paths_are_near_optimal_in_every_cell() {
    assert_short_epochs_gain(check_plans(cells_with_two_paths(), SHORT), 0.8);
}

/// A plan for few samples takes at most this ratio of the time of a plan for many samples, in one cell at least.
#[track_caller]
fn assert_short_epochs_gain(gained: f64, expected: f64) {
    assert!(
        gained <= expected,
        "the largest gain of a short epoch: {gained}, expected {expected}"
    );
}

/// Checks these cells. A plan for one batch takes at most `one_batch_ratio` of the time of plain reading. Returns the smallest ratio of a short epoch's time to that with a plan for many samples.
fn check_plans(cells: impl IntoIterator<Item = Cell>, one_batch_ratio: f64) -> f64 {
    const SAMPLES: usize = 2_000;
    let rules = Rules {
        batch_size: 32.0,
        ..Rules::default()
    };
    let read_ahead = ReadAhead::for_batch(BATCH_SAMPLES);
    let mut worst = 1.0_f64;
    // In short epochs: a plan for that number of samples, compared with one for any number and with plain reading.
    let (mut slower, mut gained) = (1.0_f64, 1.0_f64);
    for Cell { name, tiers, classes } in cells {
        let plan = Plan::best(&tiers, &classes, &rules);
        let plain = Plan::plain(&tiers, &classes, &rules);
        assert!(
            plan.load.seconds() <= plain.load.seconds() * EQUAL,
            "{name}: {plan:?}"
        );
        worst = worst.max(plan.load.seconds() / exhaustive(&tiers, &classes, &rules));
        #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
        let expected = plan.load.seconds() * SAMPLES as f64;
        let epoch =
            |plan: &Plan, samples| epoch_seconds(&tiers, &sample_costs(&classes, plan, samples), read_ahead);
        let ratio = epoch(&plan, SAMPLES) / expected;
        assert!((0.99..1.05).contains(&ratio), "{name}: {ratio} {plan:?}");
        for (samples, max_ratio) in [(32, one_batch_ratio), (96, SHORT), (400, EQUAL), (SAMPLES, EQUAL)] {
            let adapted = epoch(&Plan::best(&tiers, &classes, &short(samples)), samples);
            let plainly = epoch(&plain, samples);
            assert!(
                adapted <= plainly * max_ratio,
                "{name}, {samples} samples: {adapted} s, plain reading {plainly} s"
            );
            let reference = epoch(&plan, samples).min(plainly);
            slower = slower.max(adapted / reference);
            gained = gained.min(adapted / reference);
        }
    }
    assert!(
        worst <= 1.05,
        "the worst plan takes {worst} times as long as the best mixture"
    );
    assert!(slower <= 1.2, "a short epoch takes {slower} times as long");
    gained
}

fn candidate(stage: usize) -> impl Strategy<Value = Candidate> {
    (1.0..1e6_f64, 0.0..0.1_f64, 0.0..0.1_f64).prop_map(move |(bytes, gateway, host)| {
        split(stage, bytes, if stage == 0 { 0.0 } else { gateway }, host)
    })
}

proptest! {
    #[test]
    fn plans_assign_every_sample_and_are_never_slower_than_plain(
        classes in prop::collection::vec((0.05..1.0_f64, candidate(0), candidate(1), candidate(2), candidate(3)), 1..5),
        gateway in prop_oneof![Just(0.0), 0.1..8.0_f64],
        link in prop_oneof![Just(f64::INFINITY), 1e3..1e9_f64],
        host in 0.5..8.0_f64,
        trainer in 0.0..0.05_f64,
        shared in any::<bool>(),
        max_expand in 0.2..2.0_f64,
    ) {
        let total: f64 = classes.iter().map(|class| class.0).sum();
        let classes: Vec<_> = classes
            .into_iter()
            .map(|(fraction, a, b, c, d)| Class { fraction: fraction / total, candidates: vec![a, b, c, d] })
            .collect();
        let tiers = Tiers { gateway_cores: gateway, background_seconds: 0.0, link_bytes_per_second: link, paths: None, host_cores: host, trainer_seconds: trainer, shared };
        let rules = Rules { max_expand, ..Rules::default() };
        let plan = Plan::best(&tiers, &classes, &rules);
        for (class, fractions) in classes.iter().zip(&plan.fractions) {
            prop_assert!((fractions.iter().sum::<f64>() - class.fraction).abs() < 1e-6, "{:?}", plan);
            for (candidate, fraction) in class.candidates.iter().zip(fractions) {
                prop_assert!(*fraction >= 0.0);
                let allowed = candidate.stage.is_plain() || candidate.bytes <= max_expand * class.candidates[0].bytes;
                prop_assert!(allowed || *fraction == 0.0);
            }
        }
        let plain = Plan::plain(&tiers, &classes, &rules);
        prop_assert!(plan.load.seconds() <= plain.load.seconds() * (1.0 + 1e-6), "{:?} {:?}", plan, plain);
    }
}
