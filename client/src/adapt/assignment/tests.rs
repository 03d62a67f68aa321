use pushdown::plan::{Candidate, Class, LoadingCost, Plan, Rules, Tiers};

use super::*;

fn ground(pipeline: &str) -> Arc<Ground> {
    let pipeline = Pipeline::parse(pipeline).unwrap();
    Arc::new(Ground::new(&pipeline, vec![50_000, u64::MAX], 1.0).unwrap())
}

const PIPELINE: &str = "decode | resize(100, 100)";
/// Less than any value of that.
const UNLISTED: u64 = 4096;

fn class(share: f64, stored: f64) -> Class {
    let way = |stage: usize, bytes: f64, gateway: f64, host: f64| Candidate {
        stage,
        bytes,
        gateway_seconds: gateway,
        host_seconds: host,
        weights_bytes: 0.0,
        loading: LoadingCost::default(),
    };
    let work = stored / 1e8;
    Class {
        share,
        candidates: vec![way(0, stored, 0.0, work), way(2, 30_000.0, work, 0.0)],
    }
}

fn planned(link_bytes: f64) -> (Assignment, Decision) {
    let tiers = Tiers {
        gateway_cores: 4.0,
        background_seconds: 0.0,
        link_bytes_per_second: link_bytes,
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
    };
    (
        Assignment::planned(ground(PIPELINE), UNLISTED, &decision, &decision.plan),
        decision,
    )
}

fn stages(assignment: &Assignment, stored: u64) -> Vec<usize> {
    let place = |index: usize| Place {
        position: index as u64,
        index,
    };
    (0..1000)
        .map(|index| usize::from(assignment.stage(place(index), Some(stored))))
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
    assert_eq!(pushed(29_999), 0, "a value of 30,000 bytes is more");
    // All but those that are read as they are to see how that goes: every other trial.
    assert_eq!(assignment.explored, [0, 2]);
    for stored in [4_000_000, 40_000_000] {
        let plainly = float(1000 - pushed(stored) as u64);
        let trials = 1000.0 / float(assignment.stride);
        assert!((plainly - trials / 2.0).abs() <= 2.0, "{plainly} of 1000");
    }
    assert_eq!(assignment.first_stage(), 0);
}

#[test]
fn shares_of_a_plan_are_kept_to() {
    let (assignment, decision) = planned(f64::INFINITY);
    let share = decision.plan.shares[1][1] / 0.5;
    let pushed = stages(&assignment, 4_000_000)
        .iter()
        .filter(|stage| **stage == 2)
        .count();
    let found = float(pushed as u64) / 1000.0;
    assert!((found - share).abs() < 0.03, "{found}, planned {share}");
}

/// A photo that is read plainly over a thin link takes as long as ten that are pushed.
#[test]
fn trials_are_a_part_of_the_plan() {
    let (_, decision) = planned(1e6);
    for plain in [0.0, 0.01, 0.05, 0.5, 1.0] {
        let mut plan = decision.plan.clone();
        // Of the small ones none is read plainly, so that this way is tried.
        plan.shares = vec![vec![0.0, 0.5], vec![0.5 * plain, 0.5 * (1.0 - plain)]];
        let assignment = Assignment::planned(ground(PIPELINE), UNLISTED, &decision, &plan);
        let stages = stages(&assignment, 4_000_000);
        let found = stages.iter().filter(|stage| **stage == 0).count();
        let found = float(found as u64) / 1000.0;
        // One in so many is tried, whatever the plan: of the ways that are worth it each by turns.
        let share = |way: u8| {
            let tried = if assignment.explored.contains(&way) {
                1.0
            } else {
                0.0
            };
            tried / float(assignment.stride * assignment.explored.len().max(1) as u64)
        };
        let expected = plain.clamp(share(0), 1.0 - share(2));
        assert!(
            (found - expected).abs() < 0.006,
            "{found}, planned {plain}, {assignment:?}"
        );
    }
}

#[test]
fn before_anything_is_known_both_ways_are_tried() {
    let unknown = Assignment::unknown(ground(PIPELINE), UNLISTED);
    let large = stages(&unknown, 100_000);
    assert_eq!(large.iter().filter(|stage| **stage == 2).count(), 500);
    assert!(stages(&unknown, 10_000).iter().all(|stage| *stage == 0));
}

#[test]
fn weights_are_not_fetched_for_a_trial() {
    let (_, mut decision) = planned(1e6);
    let ground = || {
        let ground = ground(PIPELINE);
        Arc::new(Ground {
            explored: vec![2, 1],
            values: ground.values.clone(),
            bounds: ground.bounds.clone(),
            ..*ground
        })
    };
    let trials = |decision: &Decision| {
        let assignment = Assignment::planned(ground(), UNLISTED, decision, &decision.plan);
        assignment.explored
    };
    assert_eq!(trials(&decision), [0, 2, 1]);
    for class in &mut decision.classes {
        let before = Candidate {
            stage: 1,
            weights_bytes: 1e7,
            ..class.candidates[0]
        };
        class.candidates[0].weights_bytes = 1e7;
        class.candidates.push(before);
    }
    assert_eq!(trials(&decision), [2]);
}

#[test]
fn what_a_plan_does_anyway_is_not_explored() {
    // Both ways are part of it: the host helps the gateway.
    let (assignment, decision) = planned(f64::INFINITY);
    assert!(
        decision.plan.shares[1].iter().all(|share| *share > 0.05),
        "{decision:?}"
    );
    assert_eq!(assignment.explored, [2], "small objects only go as they are");
    let both = Decision {
        plan: Plan {
            shares: vec![vec![0.05, 0.45]; 2],
            ..decision.plan.clone()
        },
        ..decision
    };
    let assignment = Assignment::planned(ground(PIPELINE), UNLISTED, &both, &both.plan);
    assert!(assignment.explored.is_empty());
    let plain = stages(&assignment, 4_000_000)
        .iter()
        .filter(|stage| **stage == 0)
        .count();
    assert!((95..=105).contains(&plain), "{plain} of 1000");
}

/// The gateway keeps to a bound on values whose size nobody knows, but for tables.
#[test]
fn values_of_unknown_sizes_are_bounded() {
    let of = |pipeline: &str| Ground::new(&Pipeline::parse(pipeline).unwrap(), vec![u64::MAX], 0.5);
    assert!(of("select").is_none());
    let ground = of("decode | resize(100, 100) | encode(jpeg)").unwrap();
    assert_eq!(ground.explored, [3]);
    for (stage, most) in [(0, None), (2, None), (3, Some(5_000)), (9, None)] {
        assert_eq!(ground.most(stage, 10_001), most, "stage {stage}");
    }
    let fitting = |stored: u64| {
        (0..=3)
            .filter(|stage| ground.fits(*stage, stored))
            .collect::<Vec<_>>()
    };
    assert_eq!(fitting(10_000), [0, 1, 3]);
    assert_eq!(fitting(60_000), [0, 1, 2, 3]);
    let unknown = Assignment::unknown(Arc::new(ground), UNLISTED);
    assert_eq!(unknown.most(3, None), Some(UNLISTED / 2));
}

/// A photo on a very thin link takes as long as dozens of values.
#[test]
fn trials_that_take_long_are_rare() {
    let (_, decision) = planned(1e5);
    let mut plan = decision.plan.clone();
    plan.shares = vec![vec![0.0, 0.5]; 2];
    let stride = |plan: &Plan| {
        let assignment = Assignment::planned(ground(PIPELINE), UNLISTED, &decision, plan);
        assert!(assignment.explored.contains(&0));
        assignment.stride
    };
    plan = Plan::from_shares(&decision.tiers, &decision.classes, plan.shares, &decision.rules);
    // Of 0.3 seconds for a value 3 % are 0.009, of 20 for an object: one in 2,233.
    assert_eq!(stride(&plan), FEWEST);
    plan.load.gateway_seconds = 1.0;
    assert_eq!(stride(&plan), EXPLORED);
}

/// Of many readers of one data set each tries out something now and then, whatever part of it each has.
#[test]
fn one_in_a_hundred_is_a_trial_for_each_rank() {
    for world in [1, 2, 7, 8, 32, 100] {
        for rank in 0..world {
            let places = (0..3000).map(|nth| nth * world + rank);
            let trials: Vec<_> = places.filter_map(|position| trial(position, EXPLORED)).collect();
            assert!(
                (25..=35).contains(&trials.len()),
                "{} of rank {rank} of {world}",
                trials.len()
            );
            // Each of two ways has its turn, and so has each of three.
            for ways in [2, 3] {
                for way in 0..ways {
                    let part = trials.iter().filter(|trial| *trial % ways == way).count();
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
fn what_is_left_goes_the_way_that_is_done() {
    let unknown = Assignment::unknown(ground(PIPELINE), UNLISTED);
    let pushing = unknown.pushing().unwrap();
    assert!(stages(&pushing, 100_000).iter().all(|stage| *stage == 2));
    assert!(
        stages(&pushing, 10_000).iter().all(|stage| *stage == 0),
        "too small"
    );
    assert!(pushing.pushing().is_none() && planned(1e6).0.pushing().is_none());
}
