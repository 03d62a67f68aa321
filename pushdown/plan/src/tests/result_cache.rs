//! Plans with a result cache at the gateway.

use super::*;
use crate::later_epochs::{add_requests, later_plan};

/// CPU seconds at the gateway for a cached value.
const HIT_SECONDS: f64 = 2e-4;

/// The same classes with this ratio of cached values at all stages in this epoch, and in later ones.
fn cached(classes: &[Class], ratio: f64, later_ratio: f64) -> Vec<Class> {
    let with_hits = |split: &Candidate| Candidate {
        hits: if split.stage.is_plain() {
            CacheHits::default()
        } else {
            CacheHits {
                ratio,
                later_ratio,
                seconds: HIT_SECONDS,
            }
        },
        ..*split
    };
    classes
        .iter()
        .map(|class| Class {
            fraction: class.fraction,
            candidates: class.candidates.iter().map(with_hits).collect(),
        })
        .collect()
}

/// The same classes, each divided into its cached and its other objects.
fn divided(classes: &[Class], ratio: f64) -> Vec<Class> {
    let side = |class: &Class, fraction: f64, is_cached: f64| Class {
        fraction: class.fraction * fraction,
        ..cached(std::slice::from_ref(class), is_cached, is_cached).remove(0)
    };
    classes
        .iter()
        .flat_map(|class| [side(class, ratio, 1.0), side(class, 1.0 - ratio, 0.0)])
        .collect()
}

/// All samples at one stage; `None` if a value is larger than its object.
fn fixed(cell: &Cell, classes: &[Class], index: usize, rules: &Rules) -> Option<Plan> {
    let fits = classes
        .iter()
        .all(|class| index == 0 || class.candidates[index].bytes <= class.candidates[0].bytes);
    let fractions = classes.iter().map(|class| {
        let mut fractions = vec![0.0; class.candidates.len()];
        fractions[index] = class.fraction;
        fractions
    });
    fits.then(|| Plan::from_fractions(&cell.tiers, classes, fractions.collect(), rules))
}

fn simulated(cell: &Cell, classes: &[Class], plan: &Plan, samples: usize) -> f64 {
    let costs = sample_costs(classes, plan, samples);
    epoch_seconds(&cell.tiers, &costs, ReadAhead::for_batch(BATCH_SAMPLES))
}

/// One epoch without hits: neither what the cache will have nor what a hit costs changes a plan. The sum of all fractions, each with a
/// factor of its own, is that of version 0.1.0, which knew no cache.
#[test]
fn plans_of_one_epoch_without_hits_ignore_the_cache() {
    let rules = Rules {
        batch_size: 32.0,
        ..Rules::default()
    };
    let mut sum = 0.0;
    for (number, cell) in (0_u32..).zip(cells()) {
        let plan = Plan::best(&cell.tiers, &cell.classes, &rules);
        let other = Plan::best(&cell.tiers, &cached(&cell.classes, 0.0, 1.0), &rules);
        assert_eq!(plan.fractions, other.fractions, "{}", cell.name);
        for (fraction, factor) in plan.fractions.iter().flatten().zip(1_u32..) {
            sum += fraction * f64::from(factor) * f64::from(number % 97 + 1);
        }
    }
    assert_near(sum, 350_277.925_457_262_9);
}

/// Every eighth cell, with a quarter and with all of the values in the cache.
#[test]
fn plans_with_hits_are_near_optimal_and_never_slower_than_plain() {
    let rules = Rules {
        batch_size: 32.0,
        ..Rules::default()
    };
    let (mut worst, mut worst_fixed, mut gained) = (1.0_f64, 1.0_f64, 1.0_f64);
    for cell in cells().iter().step_by(8) {
        for ratio in [0.25, 1.0] {
            let classes = cached(&cell.classes, ratio, ratio);
            let plan = Plan::best(&cell.tiers, &classes, &rules);
            let plain = Plan::plain(&cell.tiers, &classes, &rules);
            assert!(
                plan.load.seconds() <= plain.load.seconds() * EQUAL,
                "{}: {plan:?}",
                cell.name
            );
            worst = worst.max(plan.load.seconds() / exhaustive(&cell.tiers, &classes, &rules));
            for samples in [400, 2_000] {
                let plan = Plan::best(&cell.tiers, &classes, &short(samples));
                let found = simulated(cell, &classes, &plan, samples);
                let plainly = simulated(cell, &classes, &plain, samples);
                assert!(
                    found <= plainly * EQUAL,
                    "{}, {samples} samples, {ratio} cached: {found} s, plain reading {plainly} s",
                    cell.name
                );
                let splits = (0..classes[0].candidates.len())
                    .filter_map(|index| fixed(cell, &classes, index, &short(samples)))
                    .map(|plan| simulated(cell, &classes, &plan, samples));
                worst_fixed = worst_fixed.max(found / splits.fold(f64::INFINITY, f64::min));
                let uncached = Plan::best(&cell.tiers, &cell.classes, &short(samples));
                gained = gained.min(found / simulated(cell, &cell.classes, &uncached, samples));
            }
        }
    }
    assert!(
        worst <= 1.05,
        "the worst plan takes {worst} times as long as the best mixture"
    );
    assert!(
        worst_fixed <= 1.05,
        "the worst plan takes {worst_fixed} times as long as the best fixed split"
    );
    assert!(gained <= 0.2, "the largest gain: {gained}");
}

/// If the side of each object is known, a plan requests cached values first.
#[test]
fn known_sides_are_never_worse_than_the_mean() {
    let mut gained = 1.0_f64;
    for cell in cells().iter().step_by(8) {
        let rules = Rules::default();
        let mean = Plan::best(&cell.tiers, &cached(&cell.classes, 0.25, 0.25), &rules);
        let sides = Plan::best(&cell.tiers, &divided(&cell.classes, 0.25), &rules);
        let ratio = sides.load.seconds() / mean.load.seconds();
        // Both may give up 3 % of the time for fewer bytes.
        assert!(ratio <= (1.0 + TIE_RATIO) * EQUAL, "{}: {ratio}", cell.name);
        gained = gained.min(ratio);
    }
    assert!(gained <= 0.8, "the largest gain of known sides: {gained}");
    // A gateway that has time for hits only: they are what it is asked for.
    let slow = tiers(0.05, f64::INFINITY, 1.0);
    let plan = Plan::best(&slow, &divided(&one_class(photo()), 0.25), &Rules::default());
    assert_near(plan.fractions[0][2], 0.25);
    assert!(plan.fractions[1][2] < 0.2, "{plan:?}");
}

/// A gateway that is slower than the host computes a third of the samples in one epoch. With more epochs it computes no fewer, and what
/// they take together is no more than if each was planned by itself.
#[test]
fn a_first_epoch_fills_the_cache_for_later_ones() {
    let tiers = tiers(0.5, f64::INFINITY, 1.0);
    let classes = cached(&one_class(photo()), 0.0, 1.0);
    let rules = |count: f64| Rules {
        samples_left: 10_000.0,
        later: LaterEpochs {
            count,
            samples: 10_000.0,
        },
        ..Rules::default()
    };
    let own = Plan::best(&tiers, &classes, &rules(0.0));
    assert!((0.3..0.4).contains(&own.fractions[0][2]), "{own:?}");
    for count in [1.0, 2.0, 9.0, 100.0, 1e4] {
        let rules = rules(count);
        let plan = Plan::best(&tiers, &classes, &rules);
        assert!(plan.fractions[0][2] >= own.fractions[0][2] - 1e-9, "{plan:?}");
        let repeated = Plan::from_fractions(&tiers, &classes, own.fractions.clone(), &rules);
        assert!(
            plan.seconds(&rules) <= repeated.seconds(&rules) * EQUAL,
            "{plan:?}"
        );
        // In the end, all values are cached and a hit costs the gateway little.
        let later = plan.later.unwrap();
        assert!(
            count < 9.0 || later.load.seconds() < 0.1 * own.load.seconds(),
            "{plan:?}"
        );
    }
    // Without an announcement nothing will be cached, and all epochs are alike.
    let unannounced = one_class(photo());
    let pushed = |count: f64| Plan::best(&tiers, &unannounced, &rules(count)).fractions[0][2];
    assert!((pushed(0.0) - pushed(9.0)).abs() < 1e-9);
}

#[test]
fn all_epochs_together_are_never_slower_than_plain() {
    check_all_epochs(40);
}

#[test]
#[ignore = "240 cells: make test-full"]
fn all_epochs_together_are_never_slower_than_plain_in_more_cells() {
    check_all_epochs(8);
}

/// In every `step`th cell: all epochs together are never slower than plain reading, and within 5 % of the best fixed split, by
/// simulation of each epoch.
fn check_all_epochs(step: usize) {
    const SAMPLES: usize = 2_000;
    /// The queues at the end of an epoch last a few samples longer than the plan expects.
    const NEARLY_EQUAL: f64 = 1.002;
    let (mut worst, mut slower) = (1.0_f64, 1.0_f64);
    for cell in cells().iter().step_by(step) {
        for (ratio, later_epochs) in [(0.25, 2_u32), (1.0, 1), (1.0, 9)] {
            let classes = cached(&cell.classes, 0.0, ratio);
            let one = short(SAMPLES);
            let rules = Rules {
                later: LaterEpochs {
                    count: f64::from(later_epochs),
                    samples: one.samples_left,
                },
                ..one
            };
            let total = |plan: &Plan| {
                let mut seconds = simulated(cell, &classes, plan, SAMPLES);
                let mut requested = plan.fractions.clone();
                for _ in 0..later_epochs {
                    let (later_classes, later) = later_plan(&cell.tiers, &classes, &rules, &requested);
                    seconds += simulated(cell, &later_classes, &later, SAMPLES);
                    add_requests(&mut requested, &classes, &later_classes, &later);
                }
                seconds
            };
            let found = total(&Plan::best(&cell.tiers, &classes, &rules));
            let plain = Plan::plain(&cell.tiers, &classes, &rules);
            let plainly = f64::from(1 + later_epochs) * simulated(cell, &classes, &plain, SAMPLES);
            assert!(
                found <= plainly * NEARLY_EQUAL,
                "{}, {ratio} cached: {found} s, plain reading {plainly} s",
                cell.name
            );
            let splits = (0..classes[0].candidates.len())
                .filter_map(|index| fixed(cell, &classes, index, &rules))
                .map(|plan| total(&plan));
            worst = worst.max(found / splits.fold(f64::INFINITY, f64::min));
            slower = slower.max(found / total(&Plan::best(&cell.tiers, &classes, &one)));
        }
    }
    assert!(
        worst <= 1.05,
        "the worst plan takes {worst} times as long as the best fixed split"
    );
    assert!(
        slower <= 1.01,
        "epochs that are planned together take {slower} times as long as planned one by one"
    );
}

proptest! {
    #[test]
    fn plans_of_several_epochs_assign_every_sample_and_are_never_slower_than_plain(
        splits in (candidate(0), candidate(1), candidate(2), candidate(3)),
        ratios in (0.0..1.0_f64, 0.0..1.0_f64, 0.02..0.98_f64),
        cores in (0.1..8.0_f64, 0.5..8.0_f64),
        link in prop_oneof![Just(f64::INFINITY), 1e3..1e9_f64],
        trainer in 0.0..0.05_f64,
        later in (0.0..50.0_f64, 1.0..1e5_f64),
        samples_left in 1.0..1e5_f64,
        batch_size in 0.0..128.0_f64,
        shared in any::<bool>(),
    ) {
        let classes = one_class(vec![splits.0, splits.1, splits.2, splits.3]);
        let (now, other_later, fraction) = ratios;
        let mut sides = vec![cached(&classes, now, 1.0).remove(0), cached(&classes, 0.0, other_later).remove(0)];
        (sides[0].fraction, sides[1].fraction) = (fraction, 1.0 - fraction);
        let tiers = Tiers { trainer_seconds: trainer, shared, ..tiers(cores.0, link, cores.1) };
        let later = LaterEpochs { count: later.0.floor(), samples: later.1 };
        let rules = Rules { samples_left, batch_size, later, ..Rules::default() };
        let plan = Plan::best(&tiers, &sides, &rules);
        for (class, fractions) in sides.iter().zip(&plan.fractions) {
            prop_assert!((fractions.iter().sum::<f64>() - class.fraction).abs() < 1e-6, "{:?}", plan);
            prop_assert!(fractions.iter().all(|fraction| *fraction >= 0.0));
        }
        let (found, plain) = (plan.seconds(&rules), Plan::plain(&tiers, &sides, &rules).seconds(&rules));
        prop_assert!(found <= plain * (1.0 + 1e-6), "{} s, plain reading {} s: {:?}", found, plain, plan);
    }
}
