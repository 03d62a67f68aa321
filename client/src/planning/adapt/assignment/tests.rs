use pushdown::{
    Pipeline,
    plan::{CacheHits, Candidate, LoadingCost, Rules, Stage, Tiers},
};

use super::*;

fn context(pipeline: &str) -> Arc<PlanContext> {
    let pipeline = Pipeline::parse(pipeline).unwrap();
    Arc::new(PlanContext::new(&pipeline, vec![50_000, u64::MAX], 1.0).unwrap())
}

const PIPELINE: &str = "decode | resize(100, 100)";
/// Smaller than any value of `PIPELINE`.
const UNLISTED_BYTES: u64 = 4096;

fn class(fraction: f64, stored: f64) -> Class {
    let candidate = |stage: usize, bytes: f64, gateway: f64, host: f64| Candidate {
        stage: Stage::after(stage),
        bytes,
        gateway_seconds: gateway,
        host_seconds: host,
        weights_bytes: 0.0,
        loading: LoadingCost::default(),
        hits: CacheHits::default(),
    };
    let work = stored / 1e8;
    Class {
        fraction,
        candidates: vec![candidate(0, stored, 0.0, work), candidate(2, 30_000.0, work, 0.0)],
    }
}

fn planned(link_bytes: f64) -> (Assignment, Decision) {
    let tiers = Tiers {
        gateway_cores: 4.0,
        background_seconds: 0.0,
        link_bytes_per_second: link_bytes,
        paths: None,
        host_cores: 2.0,
        trainer_seconds: 0.0,
        shared: false,
    };
    let classes = vec![class(0.5, 20_000.0), class(0.5, 4e6)];
    let rules = Rules::default();
    let plan = Plan::best(&tiers, &classes, &rules);
    let decision = Decision {
        tiers,
        classes,
        rules,
        plan,
        sides: vec![1.0],
    };
    (
        Assignment::unknown(context(PIPELINE), UNLISTED_BYTES).with_plan(&decision, &decision.plan),
        decision,
    )
}

fn stages(assignment: &Assignment, stored: u64) -> Vec<usize> {
    let sample = |index: usize| SampleRef {
        position: index as u64,
        index,
        is_padding: false,
    };
    (0..1000)
        .map(|index| assignment.stage(sample(index), Some(stored), || 0.0).steps())
        .collect()
}

#[test]
fn large_objects_are_pushed_and_small_ones_are_not() {
    let (assignment, _) = planned(1e6);
    assert!(stages(&assignment, 15_000).iter().all(|stage| *stage == 0));
    let pushed = |stored: u64| {
        stages(&assignment, stored)
            .iter()
            .filter(|stage| **stage == 2)
            .count()
    };
    assert_eq!(pushed(29_999), 0, "a value of 30,000 bytes is larger");
    // All but the plain trials: every other trial.
    assert_eq!(assignment.trial_stages, [Stage::Object, Stage::After(2)]);
    for stored in [4_000_000, 40_000_000] {
        let plain = float(1000 - pushed(stored) as u64);
        let trials = 1000.0 / float(assignment.stride);
        assert!((plain - trials / 2.0).abs() <= 2.0, "{plain} of 1000");
    }
    assert_eq!(assignment.first_stage(), 0);
}

#[test]
fn pixels_are_tried_where_floats_do_not_fit() {
    for (pipeline, trials) in [
        // 30,000 bytes of pixels, 120,000 of floats.
        (
            "decode | resize(100, 100) | flip_h | to_float | normalize(imagenet)",
            vec![5, 3],
        ),
        ("decode | resize(100, 100) | flip_h", vec![3]),
        ("decode | resize(200, 200) | center_crop(100)", vec![3]),
        (
            "decode | resize(200, 200) | center_crop(100) | resize(200, 200)",
            vec![4, 3],
        ),
        // What is encoded can be kept within its maximum.
        ("decode | resize(100, 100) | encode(jpeg)", vec![3]),
    ] {
        let stages: Vec<_> = context(pipeline)
            .trial_stages
            .iter()
            .filter(|stage| **stage != Stage::CroppedJpeg)
            .map(|stage| stage.steps())
            .collect();
        assert_eq!(stages, trials, "{pipeline}");
    }
    let context = context("decode | resize(100, 100) | to_float");
    let stages = stages(&Assignment::unknown(context, UNLISTED_BYTES), 40_000);
    assert!(stages.contains(&0) && stages.contains(&2) && !stages.contains(&3));
}

#[test]
fn assignments_have_the_fractions_of_the_plan() {
    let (assignment, decision) = planned(f64::INFINITY);
    let fraction = decision.plan.fractions[1][1] / 0.5;
    let pushed = stages(&assignment, 4_000_000)
        .iter()
        .filter(|stage| **stage == 2)
        .count();
    let found = float(pushed as u64) / 1000.0;
    assert!((found - fraction).abs() < 0.03, "{found}, planned {fraction}");
}

/// A plain read of a photo over a slow link takes as long as ten pushed ones.
#[test]
fn trials_are_part_of_the_planned_fractions() {
    let (_, decision) = planned(1e6);
    for plain in [0.0, 0.01, 0.05, 0.5, 1.0] {
        let mut plan = decision.plan.clone();
        // No small object is read plainly, so plain reading is tried.
        plan.fractions = vec![vec![0.0, 0.5], vec![0.5 * plain, 0.5 * (1.0 - plain)]];
        let assignment = Assignment::unknown(context(PIPELINE), UNLISTED_BYTES).with_plan(&decision, &plan);
        let stages = stages(&assignment, 4_000_000);
        let found = stages.iter().filter(|stage| **stage == 0).count();
        let found = float(found as u64) / 1000.0;
        // One object per stride is a trial under any plan, in turn at each worthwhile stage.
        let fraction = |stage: Stage| {
            let tried = if assignment.trial_stages.contains(&stage) {
                1.0
            } else {
                0.0
            };
            tried / float(assignment.stride * assignment.trial_stages.len().max(1) as u64)
        };
        let expected = plain.clamp(fraction(Stage::Object), 1.0 - fraction(Stage::After(2)));
        assert!(
            (found - expected).abs() < 0.006,
            "{found}, planned {plain}, {assignment:?}"
        );
    }
}

#[test]
fn both_routes_are_tried_before_anything_is_known() {
    let unknown = Assignment::unknown(context(PIPELINE), UNLISTED_BYTES);
    let large = stages(&unknown, 100_000);
    assert_eq!(large.iter().filter(|stage| **stage == 2).count(), 500);
    assert!(stages(&unknown, 10_000).iter().all(|stage| *stage == 0));
}

#[test]
fn a_trial_does_not_download_weights() {
    let (_, mut decision) = planned(1e6);
    let context = || {
        let context = context(PIPELINE);
        Arc::new(PlanContext {
            trial_stages: vec![Stage::After(2), Stage::After(1)],
            values: context.values.clone(),
            bounds: context.bounds.clone(),
            ..*context
        })
    };
    let trials = |decision: &Decision| {
        let assignment = Assignment::unknown(context(), UNLISTED_BYTES).with_plan(decision, &decision.plan);
        let stages = assignment.trial_stages.iter().map(|stage| stage.steps());
        stages.collect::<Vec<_>>()
    };
    assert_eq!(trials(&decision), [0, 2, 1]);
    for class in &mut decision.classes {
        let before = Candidate {
            stage: Stage::After(1),
            weights_bytes: 1e7,
            ..class.candidates[0]
        };
        class.candidates[0].weights_bytes = 1e7;
        class.candidates.push(before);
    }
    assert_eq!(trials(&decision), [2]);
}

#[test]
fn stages_that_the_plan_uses_are_not_tried() {
    // The plan has both routes: the host helps the gateway.
    let (assignment, decision) = planned(f64::INFINITY);
    assert!(
        decision.plan.fractions[1].iter().all(|fraction| *fraction > 0.05),
        "{decision:?}"
    );
    assert_eq!(
        assignment.trial_stages,
        [Stage::After(2)],
        "small objects are only read plainly"
    );
    let both = Decision {
        plan: Plan {
            fractions: vec![vec![0.05, 0.45]; 2],
            ..decision.plan.clone()
        },
        ..decision
    };
    let assignment = Assignment::unknown(context(PIPELINE), UNLISTED_BYTES).with_plan(&both, &both.plan);
    assert!(assignment.trial_stages.is_empty());
    let plain = stages(&assignment, 4_000_000)
        .iter()
        .filter(|stage| **stage == 0)
        .count();
    assert!((95..=105).contains(&plain), "{plain} of 1000");
}

/// The gateway observes a bound on values of unknown size, except for tables.
#[test]
fn values_of_unknown_sizes_are_bounded() {
    let context = |pipeline: &str| {
        let pipeline = Pipeline::parse(pipeline).unwrap();
        PlanContext::new(&pipeline, vec![u64::MAX], 0.5)
    };
    assert!(context("select").is_none());
    let context = context("decode | resize(100, 100) | encode(jpeg)").unwrap();
    assert_eq!(context.trial_stages, [Stage::After(3)]);
    for (stage, max_bytes) in [(0, None), (2, None), (3, Some(5_000)), (9, None)] {
        assert_eq!(context.max_value_bytes(stage, 10_001), max_bytes, "stage {stage}");
    }
    let fitting = |stored: u64| {
        (0..=3)
            .filter(|stage| context.fits(Stage::after(*stage), stored))
            .collect::<Vec<_>>()
    };
    assert_eq!(fitting(10_000), [0, 1, 3]);
    assert_eq!(fitting(60_000), [0, 1, 2, 3]);
    let unknown = Assignment::unknown(Arc::new(context), UNLISTED_BYTES);
    assert_eq!(unknown.max_value_bytes(3, None), Some(UNLISTED_BYTES / 2));
}

/// A photo on a very slow link takes as long as dozens of values.
#[test]
fn slow_trials_are_rare() {
    let (_, decision) = planned(1e5);
    let mut plan = decision.plan.clone();
    plan.fractions = vec![vec![0.0, 0.5]; 2];
    let stride = |plan: &Plan| {
        let assignment = Assignment::unknown(context(PIPELINE), UNLISTED_BYTES).with_plan(&decision, plan);
        assert!(assignment.trial_stages.contains(&Stage::Object));
        assignment.stride
    };
    plan = Plan::from_fractions(
        &decision.tiers,
        &decision.classes,
        plan.fractions,
        &decision.rules,
    );
    // 3 % of 0.3 seconds for a value are 0.009, and an object takes 20: one in 2,233.
    assert_eq!(stride(&plan), MAX_TRIAL_STRIDE);
    plan.load.gateway_seconds = 1.0;
    assert_eq!(stride(&plan), TRIAL_STRIDE);
}

/// Each of many readers of one data set makes trials regularly, for any part of the data set.
#[test]
fn each_rank_tries_one_sample_in_a_hundred() {
    for world in [1, 2, 7, 8, 32, 100] {
        for rank in 0..world {
            let positions = (0..3000).map(|nth| nth * world + rank);
            let trials: Vec<_> = positions
                .filter_map(|position| trial_number(position, TRIAL_STRIDE))
                .collect();
            assert!(
                (25..=35).contains(&trials.len()),
                "{} of rank {rank} of {world}",
                trials.len()
            );
            // Each of two stages is tried, and so is each of three.
            for stages in [2, 3] {
                for stage in 0..stages {
                    let part = trials.iter().filter(|trial| *trial % stages == stage).count();
                    assert!(
                        part * 5 >= trials.len(),
                        "{part} of {trials:?} of rank {rank} of {world}"
                    );
                }
            }
        }
    }
}

#[test]
fn samples_left_are_pushed_once_the_gateway_is_done() {
    let unknown = Assignment::unknown(context(PIPELINE), UNLISTED_BYTES);
    let pushing = unknown.with_all_pushed().unwrap();
    assert!(stages(&pushing, 100_000).iter().all(|stage| *stage == 2));
    assert!(
        stages(&pushing, 10_000).iter().all(|stage| *stage == 0),
        "too small"
    );
    assert!(pushing.with_all_pushed().is_none() && planned(1e6).0.with_all_pushed().is_none());
}

/// A gateway that caches a quarter of all objects is asked for those, whatever their index.
#[test]
fn objects_are_assigned_by_their_side() {
    let (_, decision) = planned(1e6);
    let mut classes = Vec::new();
    for class in &decision.classes {
        for part in [0.25, 0.75] {
            classes.push(Class {
                fraction: class.fraction * part,
                ..class.clone()
            });
        }
    }
    let mut plan = decision.plan.clone();
    plan.fractions = vec![
        vec![0.125, 0.0],
        vec![0.375, 0.0],
        vec![0.0, 0.125],
        vec![0.375, 0.0],
    ];
    let decision = Decision {
        classes,
        sides: vec![0.25, 1.0],
        ..decision
    };
    let assignment = Assignment::unknown(context(PIPELINE), UNLISTED_BYTES).with_plan(&decision, &plan);
    let pushed = |stored: u64, hash_fraction: f64| {
        let sample = |index: usize| SampleRef {
            position: index as u64,
            index,
            is_padding: false,
        };
        (0..1000)
            .filter(|index| {
                assignment.stage(sample(*index), Some(stored), || hash_fraction) == Stage::After(2)
            })
            .count()
    };
    for hash_fraction in [0.0, 0.2499] {
        assert!(pushed(4_000_000, hash_fraction) >= 990);
        assert_eq!(pushed(15_000, hash_fraction), 0);
    }
    for hash_fraction in [0.25, 0.9999, 1.0] {
        assert!(pushed(4_000_000, hash_fraction) <= 10);
    }
}
