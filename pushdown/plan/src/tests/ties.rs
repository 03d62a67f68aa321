//! Among equally fast plans, the one with the fewest bytes wins, then the one with the least CPU time on the host.

use super::*;

fn best(tiers: &Tiers, candidates: Vec<Candidate>) -> Vec<f64> {
    let plan = Plan::best(tiers, &one_class(candidates), &Rules::default());
    plan.fractions.into_iter().flatten().collect()
}

/// For objects of any size: a third of a millisecond for `normalize` costs little compared with the bytes of a photo of 12
/// megapixels.
#[test]
fn among_equal_bytes_and_times_the_least_host_cpu_wins() {
    let thin = tiers(4.0, 1e5, 4.0);
    let waiting = Tiers {
        trainer_seconds: 1.0,
        ..tiers(4.0, 1e9, 4.0)
    };
    for object in [107_000.0, 4e6, 20e6] {
        for (before, after) in [(0.0105, 0.0102), (0.0102, 0.0105)] {
            for tiers in [thin, waiting] {
                let fractions = best(
                    &tiers,
                    vec![
                        split(0, object, 0.0, 0.05),
                        split(3, 60_000.0, 0.001, before),
                        split(4, 60_000.0, 0.001, after),
                    ],
                );
                let less = if after < before { 2 } else { 1 };
                assert_near(fractions[less], 1.0);
            }
        }
    }
}

/// Also if the gateway is the bottleneck and takes 2 % longer for it.
#[test]
fn a_slightly_slower_split_wins_by_less_host_cpu() {
    let slower = |seconds: f64| {
        let fractions = best(
            &tiers(1.0, 1e9, 4.0),
            vec![
                // Too slow to be used.
                split(0, 107_000.0, 0.0, 1_000.0),
                split(3, 60_000.0, 0.0100, 0.02),
                split(4, 60_000.0, seconds, 0.01),
            ],
        );
        fractions[2]
    };
    assert_near(slower(0.0102), 1.0);
    // Limited by the 3 % of a tie.
    let fraction = slower(0.0105);
    assert!((0.55..0.65).contains(&fraction), "{fraction}");
}

#[test]
fn bytes_count_before_host_cpu() {
    let waiting = Tiers {
        trainer_seconds: 1.0,
        ..tiers(4.0, 1e9, 4.0)
    };
    let fractions = best(
        &waiting,
        vec![
            split(0, 107_000.0, 0.0, 0.5),
            split(1, 8_192.0, 0.4, 0.1),
            split(2, 8_292.0, 0.5, 0.0),
        ],
    );
    assert_near(fractions[1], 1.0);
}
