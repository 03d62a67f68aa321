//! Cropped JPEGs next to plain reading and values.

use super::*;

/// A JPEG of 110 KB, half of whose blocks a pipeline needs. Its pixels have 150 KB. Decoding takes 1.2 ms, and 0.9 ms for a crop.
fn small_photo(after_seconds: f64) -> Vec<Candidate> {
    vec![
        split(0, 110_000.0, 0.0, 0.0012 + after_seconds),
        Candidate {
            stage: Stage::CroppedJpeg,
            ..split(0, 55_000.0, 0.0011, 0.0009 + after_seconds)
        },
        split(2, 150_528.0, 0.0013, after_seconds),
    ]
}

const MEGABIT: f64 = 1e6 / 8.0;

fn cropped_fraction(plan: &Plan) -> f64 {
    plan.fractions.iter().map(|fractions| fractions[1]).sum()
}

fn best(tiers: &Tiers) -> Plan {
    let plan = Plan::best(tiers, &one_class(small_photo(0.0)), &Rules::default());
    assert_near(plan.fractions[0][2], 0.0);
    plan
}

#[test]
fn small_photos_are_cropped_on_a_thin_link_and_read_plainly_on_a_fast_one() {
    let thin = best(&tiers(2.0, 100.0 * MEGABIT, 2.0));
    assert!(cropped_fraction(&thin) > 0.9, "{thin:?}");
    assert!(
        thin.load.seconds() < 0.52 * 110_000.0 / (100.0 * MEGABIT),
        "{thin:?}"
    );
    // The trainer is the bottleneck: fewer bytes would gain nothing.
    let idle = Tiers {
        trainer_seconds: 0.002,
        ..tiers(4.0, 1_000.0 * MEGABIT, 4.0)
    };
    let plan = best(&idle);
    assert!(cropped_fraction(&plan) < 0.05, "{plan:?}");
    // With crops the first batch would only arrive, and the last one end, a little sooner.
    for samples in [256, 1_024, 100_000] {
        let plan = Plan::best(&idle, &one_class(small_photo(0.0)), &short(samples));
        assert!(cropped_fraction(&plan) < 0.05, "{samples} samples: {plan:?}");
    }
    // On one machine cropping adds work to the bottleneck.
    let shared = Tiers {
        shared: true,
        ..tiers(1.0, 1_000.0 * MEGABIT, 1.0)
    };
    let plan = best(&shared);
    assert!(cropped_fraction(&plan) < 0.05, "{plan:?}");
    // A gateway without cores cannot crop.
    assert_near(cropped_fraction(&best(&tiers(0.0, MEGABIT, 1.0))), 0.0);
}

/// Bytes count between values and objects as before, and a crop is no reason to send more of them.
#[test]
fn a_crop_is_used_only_where_it_saves_time() {
    let waiting = Tiers {
        trainer_seconds: 0.1,
        ..tiers(4.0, 1e9, 4.0)
    };
    let mut candidates = small_photo(0.0);
    candidates[2].bytes = 60_000.0;
    let plan = Plan::best(&waiting, &one_class(candidates), &Rules::default());
    assert_near(plan.fractions[0][2], 1.0);
}

/// It arrives from the gateway, like a value.
#[test]
fn a_crop_takes_the_path_from_the_gateway() {
    let paths = |store: f64, gateway: f64| Tiers {
        paths: Some(Paths {
            store_bytes_per_second: store * MEGABIT,
            gateway_bytes_per_second: gateway * MEGABIT,
        }),
        ..tiers(4.0, f64::INFINITY, 4.0)
    };
    let far_gateway = best(&paths(1_000.0, 1.0));
    assert!(cropped_fraction(&far_gateway) < 0.05, "{far_gateway:?}");
    let far_store = best(&paths(10.0, 1_000.0));
    assert!(cropped_fraction(&far_store) > 0.9, "{far_store:?}");
    let classes = one_class(small_photo(0.0));
    let all = Plan::from_fractions(
        &paths(10.0, 20.0),
        &classes,
        vec![vec![0.0, 1.0, 0.0]],
        &Rules::default(),
    );
    assert_near(all.load.gateway_path_seconds, 55_000.0 / (20.0 * MEGABIT));
    assert_near(all.load.store_path_seconds, 0.0);
}

#[test]
fn a_crop_may_not_have_more_bytes_than_a_value() {
    let rules = Rules {
        max_expand: 0.4,
        ..Rules::default()
    };
    let plan = Plan::best(
        &tiers(2.0, 10.0 * MEGABIT, 2.0),
        &one_class(small_photo(0.0)),
        &rules,
    );
    assert_near(plan.fractions[0][0], 1.0);
}

/// The host loads the same layers for crops as for objects, once.
#[test]
fn objects_and_crops_load_the_same_layers() {
    let mut candidates = small_photo(0.01);
    let loading = LoadingCost {
        gateway_seconds: 0.0,
        host_seconds: 2.0,
    };
    (candidates[0].loading, candidates[1].loading) = (loading, loading);
    let classes = one_class(candidates);
    let rules = Rules {
        samples_left: 100.0,
        ..Rules::default()
    };
    let load = |fractions: Vec<f64>| {
        let plan = Plan::from_fractions(&tiers(1.0, 1e9, 1.0), &classes, vec![fractions], &rules);
        plan.load.host_seconds
    };
    assert_near(load(vec![1.0, 0.0, 0.0]), 0.0112 + 0.02);
    assert_near(load(vec![0.5, 0.5, 0.0]), 0.01105 + 0.02);
}

/// Nothing of a crop is cached. With enough epochs, values that are cached win, although a crop is faster in the first one.
#[test]
fn later_epochs_decide_between_crops_and_cached_values() {
    let tiers = tiers(1.0, 20.0 * MEGABIT, 8.0);
    let mut candidates = small_photo(0.0);
    // Values of half the bytes, which take the gateway long.
    candidates[2].bytes = 30_000.0;
    candidates[2].gateway_seconds = 0.060;
    candidates[2].hits = CacheHits {
        ratio: 0.0,
        later_ratio: 1.0,
        seconds: 2e-4,
    };
    let classes = one_class(candidates);
    let plan = |count: f64| {
        let rules = Rules {
            samples_left: 10_000.0,
            later: LaterEpochs {
                count,
                samples: 10_000.0,
            },
            ..Rules::default()
        };
        let plan = Plan::best(&tiers, &classes, &rules);
        let plain = Plan::plain(&tiers, &classes, &rules);
        assert!(plan.seconds(&rules) <= plain.seconds(&rules), "{plan:?}");
        // No other mixture, in steps of 2 %, takes less time over all epochs.
        let mixtures = (0..=50_u32).flat_map(|a| (0..=50 - a).map(move |b| (a, b)));
        let fastest = mixtures
            .map(|(a, b)| {
                let (cropped, values) = (f64::from(a) / 50.0, f64::from(b) / 50.0);
                let fractions = vec![vec![1.0 - cropped - values, cropped, values]];
                Plan::from_fractions(&tiers, &classes, fractions, &rules).seconds(&rules)
            })
            .fold(f64::INFINITY, f64::min);
        assert!(plan.seconds(&rules) <= 1.05 * fastest, "{plan:?}, {fastest} s");
        plan
    };
    let one = plan(0.0);
    assert!(cropped_fraction(&one) > 0.5, "{one:?}");
    for count in [1.0, 9.0, 100.0] {
        let several = plan(count);
        assert!(
            several.fractions[0][2] >= one.fractions[0][2] - 1e-9,
            "{several:?}"
        );
        let later = several.later.unwrap();
        assert!(
            count < 9.0 || later.load.seconds() < 0.7 * one.load.seconds(),
            "{several:?}"
        );
    }
}

/// In cells whose photos have crops, with one path and with two: plans are near the exhaustive search and never slower than plain
/// reading.
#[test]
fn plans_with_crops_are_near_optimal() {
    let cells = cells_with_crops();
    assert_eq!(cells.len(), 480);
    assert_short_epochs_gain(check_plans(cells.into_iter().step_by(7), SHORT), 0.95);
}

#[test]
#[ignore = "480 cells: make test-full"]
fn plans_with_crops_are_near_optimal_in_every_cell() {
    assert_short_epochs_gain(check_plans(cells_with_crops(), SHORT), 0.95);
}

/// Links of 100 Mbit/s and 1 Gbit/s x paths x cores x trainers x work after decoding x sizes.
fn cells_with_crops() -> Vec<Cell> {
    let mut cells = Vec::new();
    for megabits in [100.0, 1_000.0] {
        let bandwidth = megabits * MEGABIT;
        let paths = [
            None,
            Some((1.0, f64::INFINITY)),
            Some((1.0, 1.0)),
            Some((0.3, 1.1)),
            Some((4.0, 1.5)),
        ];
        for ratios in paths {
            for (gateway_cores, shared) in [(0.5, false), (2.0, false), (8.0, false), (2.0, true)] {
                for trainer_seconds in [0.0, 0.002] {
                    for after_seconds in [0.0, 0.0005, 0.01] {
                        for classes in sizes(&small_photo(after_seconds)) {
                            let name = format!(
                                "{megabits} Mbit/s, paths {ratios:?}, {gateway_cores} cores (shared: {shared}), trainer \
                                 {trainer_seconds} s, {after_seconds} s after decoding, {} sizes",
                                classes.len()
                            );
                            let paths = ratios.map(|(gateway, _)| Paths {
                                store_bytes_per_second: bandwidth,
                                gateway_bytes_per_second: bandwidth * gateway,
                            });
                            let link = bandwidth * ratios.map_or(1.0, |(_, link)| link);
                            cells.push(Cell {
                                name,
                                tiers: Tiers {
                                    paths,
                                    trainer_seconds,
                                    shared,
                                    ..tiers(gateway_cores, link, 2.0)
                                },
                                classes,
                            });
                        }
                    }
                }
            }
        }
    }
    cells
}
