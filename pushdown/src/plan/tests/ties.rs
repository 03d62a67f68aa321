//! Which of the plans that are about as fast is taken: the one with the fewest bytes, then the one that leaves the host least
//! to do.

use super::*;

fn best(tiers: &Tiers, candidates: Vec<Candidate>) -> Vec<f64> {
    let plan = Plan::best(tiers, &one(candidates), &Rules::default());
    plan.shares.into_iter().flatten().collect()
}

/// However large objects are: a third of a millisecond for `normalize` is little beside the bytes of a photo of 12
/// megapixels.
#[test]
fn of_equal_bytes_and_time_the_way_with_less_to_do_for_the_host_is_taken() {
    let thin = tiers(4.0, 1e5, 4.0);
    let waiting = Tiers {
        trainer_seconds: 1.0,
        ..tiers(4.0, 1e9, 4.0)
    };
    for object in [107_000.0, 4e6, 20e6] {
        for (before, behind) in [(0.0105, 0.0102), (0.0102, 0.0105)] {
            for tiers in [thin, waiting] {
                let shares = best(
                    &tiers,
                    vec![
                        way(0, object, 0.0, 0.05),
                        way(3, 60_000.0, 0.001, before),
                        way(4, 60_000.0, 0.001, behind),
                    ],
                );
                let less = if behind < before { 2 } else { 1 };
                assert_near(shares[less], 1.0);
            }
        }
    }
}

/// The same where the gateway is the bound, and takes 2 % longer for it.
#[test]
fn what_is_a_little_slower_is_taken_for_less_to_do_on_the_host() {
    let slower = |seconds: f64| {
        let shares = best(
            &tiers(1.0, 1e9, 4.0),
            vec![
                // Nothing goes plainly here.
                way(0, 107_000.0, 0.0, 1_000.0),
                way(3, 60_000.0, 0.0100, 0.02),
                way(4, 60_000.0, seconds, 0.01),
            ],
        );
        shares[2]
    };
    assert_near(slower(0.0102), 1.0);
    // As many as 3 % more time allow for.
    let most = slower(0.0105);
    assert!((0.55..0.65).contains(&most), "{most}");
}

#[test]
fn bytes_count_before_the_cpu_of_the_host() {
    let waiting = Tiers {
        trainer_seconds: 1.0,
        ..tiers(4.0, 1e9, 4.0)
    };
    let shares = best(
        &waiting,
        vec![
            way(0, 107_000.0, 0.0, 0.5),
            way(1, 8_192.0, 0.4, 0.1),
            way(2, 8_292.0, 0.5, 0.0),
        ],
    );
    assert_near(shares[1], 1.0);
}
