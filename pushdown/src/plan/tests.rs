mod left;
mod ties;

use std::num::NonZeroUsize;

use proptest::prelude::*;

use super::{
    simulate::{Reading, jobs, run},
    *,
};

fn way(stage: usize, bytes: f64, gateway: f64, host: f64) -> Candidate {
    Candidate {
        stage,
        bytes,
        gateway_seconds: gateway,
        host_seconds: host,
        weights: 0.0,
        loading: Loading::default(),
    }
}

fn tiers(gateway_cores: f64, link_bytes: f64, host_cores: f64) -> Tiers {
    Tiers {
        gateway_cores,
        beside_steps: 0.0,
        link_bytes,
        host_cores,
        trainer_seconds: 0.0,
        shared: false,
    }
}

fn one(candidates: Vec<Candidate>) -> Vec<Class> {
    vec![Class {
        share: 1.0,
        candidates,
    }]
}

/// A photo of 107 KB: decoding and cropping takes a millisecond, the model ten more, features are 2,560 bytes.
fn photo() -> Vec<Candidate> {
    vec![
        way(0, 107_000.0, 0.0, 0.0115),
        way(3, 150_528.0, 0.0012, 0.0103),
        way(6, 2_560.0, 0.0115, 0.0),
    ]
}

fn assert_near(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() <= 1e-6 * expected.abs().max(1e-9),
        "{found}, expected {expected}"
    );
}

#[test]
fn a_thin_link_is_pushed_over_and_a_wide_one_is_not_needed() {
    let classes = one(photo());
    let thin = Plan::best(&tiers(4.0, 125_000.0, 4.0), &classes, &Rules::default());
    assert_near(thin.shares[0][2], 1.0);
    assert_eq!(thin.load.bound(), Bound::Link);
    // Without cores at the gateway there is nothing to decide.
    let none = Plan::best(&tiers(0.0, 125_000.0, 4.0), &classes, &Rules::default());
    assert_near(none.shares[0][0], 1.0);
}

/// Two hosts of the same strength and an open link: half of the samples on each, by hand.
#[test]
fn work_is_shared_between_the_sides() {
    let classes = one(vec![way(0, 1000.0, 0.0, 0.010), way(1, 10.0, 0.010, 0.0)]);
    let plan = Plan::best(&tiers(1.0, f64::INFINITY, 1.0), &classes, &Rules::default());
    assert_near(plan.load.seconds(), 0.005 * (1.0 + TIE));
    assert_near(plan.shares[0][1], 0.5 * (1.0 + TIE));
    // On one machine it adds up wherever it runs: then fewer bytes win.
    let shared = Tiers {
        shared: true,
        ..tiers(1.0, f64::INFINITY, 1.0)
    };
    assert_near(Plan::best(&shared, &classes, &Rules::default()).shares[0][1], 1.0);
}

#[test]
fn large_photos_are_reduced_before_small_ones() {
    let small = Class {
        share: 0.5,
        candidates: vec![way(0, 20_000.0, 0.0, 0.001), way(1, 15_000.0, 0.001, 0.0)],
    };
    let large = Class {
        share: 0.5,
        candidates: vec![way(0, 4e6, 0.0, 0.040), way(1, 15_000.0, 0.040, 0.0)],
    };
    // The gateway has time for about half of the large ones only.
    let plan = Plan::best(&tiers(0.02, 1e6, 4.0), &[small, large], &Rules::default());
    assert!(plan.shares[0][1] < 1e-6, "{plan:?}");
    assert!(plan.shares[1][1] > 0.3, "{plan:?}");
}

#[test]
fn no_value_is_larger_than_its_object() {
    // VGG-19: 19.6 G multiplications, and 401,408 bytes behind its first block of five.
    let classes = one(vec![way(0, 107_000.0, 0.0, 0.5), way(4, 401_408.0, 0.4, 0.1)]);
    let thin = tiers(8.0, 1e7, 1.0);
    let plan = Plan::best(&thin, &classes, &Rules::default());
    assert_near(plan.shares[0][0], 1.0);
    let rules = Rules {
        max_expand: 4.0,
        ..Rules::default()
    };
    assert!(Plan::best(&thin, &classes, &rules).shares[0][1] > 0.5);
}

/// What is tried out takes what the plan leaves of each tier, and 3 % of its time.
#[test]
fn there_is_room_to_try_other_ways() {
    let classes = one(photo());
    let room = |link_bytes: f64| {
        let link = tiers(1.0, link_bytes, 1.0);
        let pushed = Plan::of(&link, &classes, vec![vec![0.0, 0.0, 1.0]], &Rules::default());
        let plain = Plan::plain(&link, &classes, &Rules::default());
        (pushed.room(&plain.load), plain.room(&pushed.load))
    };
    // The gateway is the bound, and the link has time for some; the host for all but that.
    let (plainly, _) = room(0.8e6);
    assert_near(plainly, (0.0115 * 1.03 - 2_560.0 / 0.8e6) / (107_000.0 / 0.8e6));
    // The link is the bound of both.
    let (plainly, pushed) = room(1e4);
    assert_near(plainly, 0.03 * 2_560.0 / 107_000.0);
    assert_near(pushed, 1.0);
    let (plainly, _) = room(f64::INFINITY);
    assert_near(plainly, 1.0);
}

#[test]
fn a_slow_trainer_leaves_the_choice_to_the_bytes() {
    let slow = Tiers {
        trainer_seconds: 0.1,
        ..tiers(1.0, 1e9, 1.0)
    };
    let plan = Plan::best(&slow, &one(photo()), &Rules::default());
    assert_near(plan.shares[0][2], 1.0);
    assert_eq!(plan.load.bound(), Bound::Trainer);
}

/// Profiles of models on one core: seconds and bytes of what comes in, of pixels, of cuts on the way, of the end.
fn profiles() -> Vec<(&'static str, Vec<Candidate>)> {
    let model = |seconds: f64, cuts: &[(f64, f64)]| {
        let decode = 0.0012;
        let mut ways = vec![
            way(0, 107_000.0, 0.0, decode + seconds),
            way(3, 150_528.0, decode, seconds),
        ];
        ways.extend(cuts.iter().enumerate().map(|(index, (bytes, part))| {
            way(4 + index, *bytes, decode + seconds * part, seconds * (1.0 - part))
        }));
        ways
    };
    vec![
        (
            "pixels",
            vec![way(0, 107_000.0, 0.0, 0.0012), way(3, 60_000.0, 0.0012, 0.0)],
        ),
        (
            "lite0",
            model(0.0125, &[(75_264.0, 0.35), (37_632.0, 0.6), (2_560.0, 1.0)]),
        ),
        (
            "alexnet",
            model(0.040, &[(93_312.0, 0.5), (18_432.0, 0.8), (8_192.0, 1.0)]),
        ),
        ("resnet50", model(0.110, &[(100_352.0, 0.9), (4_096.0, 1.0)])),
        ("vgg19", model(0.500, &[(50_176.0, 0.95), (8_192.0, 1.0)])),
    ]
}

/// Photos of one size, or as many of a fifth of it as of twice: pixels and features are the same, decoding is not.
fn sizes(candidates: &[Candidate]) -> [Vec<Class>; 2] {
    let decode = 0.0012;
    let of_size = |factor: f64| -> Vec<Candidate> {
        let resized = |way: &Candidate| Candidate {
            bytes: if way.stage == 0 {
                way.bytes * factor
            } else {
                way.bytes
            },
            gateway_seconds: way.gateway_seconds
                + if way.stage == 0 {
                    0.0
                } else {
                    decode * (factor - 1.0)
                },
            host_seconds: way.host_seconds
                + if way.stage == 0 {
                    decode * (factor - 1.0)
                } else {
                    0.0
                },
            ..*way
        };
        candidates.iter().map(resized).collect()
    };
    let mixed = [0.2, 2.0].map(|factor| Class {
        share: 0.5,
        candidates: of_size(factor),
    });
    [one(candidates.to_vec()), mixed.into()]
}

/// The fastest of all plans in which each class has a mixture of two ways, in steps of 5 %.
fn exhaustive(tiers: &Tiers, classes: &[Class], rules: &Rules) -> f64 {
    const STEPS: u32 = 20;
    let of_class = |class: &Class| -> Vec<Load> {
        let ways = class.candidates.iter();
        let allowed =
            ways.filter(|way| way.stage == 0 || way.bytes <= rules.max_expand * class.candidates[0].bytes);
        let loads: Vec<Load> = allowed.map(|way| tiers.load(way)).collect();
        let pairs = loads
            .iter()
            .flat_map(|first| loads.iter().map(move |second| (first, second)));
        let mixed = |((first, second), part): ((&Load, &Load), u32)| {
            let part = f64::from(part) / f64::from(STEPS);
            let mix =
                |tier: fn(&Load) -> f64| class.share * (part * tier(first) + (1.0 - part) * tier(second));
            Load {
                gateway: mix(|load| load.gateway),
                link: mix(|load| load.link),
                host: mix(|load| load.host),
                trainer: tiers.trainer_seconds,
            }
        };
        pairs
            .flat_map(|pair| (0..=STEPS).map(move |part| (pair, part)))
            .map(mixed)
            .collect()
    };
    let nothing = Load {
        gateway: 0.0,
        link: 0.0,
        host: 0.0,
        trainer: tiers.trainer_seconds,
    };
    let sums = classes.iter().map(of_class).fold(vec![nothing], |sums, loads| {
        let add = |(a, b): (&Load, &Load)| Load {
            gateway: a.gateway + b.gateway,
            link: a.link + b.link,
            host: a.host + b.host,
            ..*a
        };
        sums.iter()
            .flat_map(|a| loads.iter().map(move |b| add((a, b))))
            .collect()
    });
    sums.iter().map(Load::seconds).fold(f64::INFINITY, f64::min)
}

/// Models x mixes of sizes x bandwidths x ratios and loads of cores x a trainer: within 5 % of the best mixture, never below plain,
/// and the queues come to what the sums say. In the queues, too, nothing is below plain from 400 samples on, nor of one batch; in an
/// epoch of three a share is no whole number, and one sample more on the slowest tier is some percent.
#[test]
fn every_cell_of_the_map() {
    const SAMPLES: usize = 2_000;
    /// What rounding makes of the same time.
    const NEVER: f64 = 1.0 + 1e-9;
    let rules = Rules {
        batch_size: 32.0,
        ..Rules::default()
    };
    let reading = Reading::of(NonZeroUsize::new(32).unwrap());
    let (mut cells, mut worst) = (0, 1.0_f64);
    // Of short epochs: by a plan for as many samples, against that for any number and plain reading.
    let (mut slower, mut gained) = (1.0_f64, 1.0_f64);
    for (name, candidates) in profiles() {
        let (bytes, host) = (candidates[0].bytes, candidates[0].host_seconds);
        for classes in sizes(&candidates) {
            for host_cores in [1.0, 4.0] {
                // Where the link takes as long for an object as the host.
                let crossover = bytes * host_cores / host;
                for bandwidth in [0.1, 0.3, 0.7, 1.0, 1.5, 3.0, 10.0, f64::INFINITY] {
                    // An eighth of a core is one that seven others load, too; the last is this host itself.
                    let gateways = [0.125, 0.5, 1.0, 2.0, 8.0].map(|cores| (cores, false));
                    for (gateway_cores, shared) in gateways.into_iter().chain([(host_cores, true)]) {
                        for trainer in [0.0, host / host_cores * 0.6] {
                            let tiers = Tiers {
                                trainer_seconds: trainer,
                                shared,
                                ..tiers(gateway_cores, crossover * bandwidth, host_cores)
                            };
                            let plan = Plan::best(&tiers, &classes, &rules);
                            let cell = format!(
                                "{name}, {} sizes, {host_cores} + {gateway_cores} cores (shared: {shared}), {bandwidth} of the crossover",
                                classes.len()
                            );
                            let plain = Plan::plain(&tiers, &classes, &rules);
                            assert!(
                                plan.load.seconds() <= plain.load.seconds() * (1.0 + 1e-9),
                                "{cell}: {plan:?}"
                            );
                            worst = worst.max(plan.load.seconds() / exhaustive(&tiers, &classes, &rules));
                            #[expect(clippy::cast_precision_loss, reason = "a few thousand")]
                            let expected = plan.load.seconds() * SAMPLES as f64;
                            let simulated = run(&tiers, &jobs(&classes, &plan, SAMPLES), reading);
                            let ratio = simulated / expected;
                            assert!((0.99..1.05).contains(&ratio), "{cell}: {ratio} {plan:?}");
                            for (samples, most) in [(32, NEVER), (96, 1.08), (400, NEVER), (SAMPLES, NEVER)] {
                                let short = Rules {
                                    samples_left: f64::from(u32::try_from(samples).unwrap()),
                                    ..rules
                                };
                                let epoch =
                                    |plan: &Plan| run(&tiers, &jobs(&classes, plan, samples), reading);
                                let sooner = epoch(&Plan::best(&tiers, &classes, &short));
                                let plainly = epoch(&plain);
                                assert!(
                                    sooner <= plainly * most,
                                    "{cell}, {samples} samples: {sooner} s, plainly {plainly} s"
                                );
                                let later = epoch(&plan).min(plainly);
                                slower = slower.max(sooner / later);
                                gained = gained.min(sooner / later);
                            }
                            cells += 1;
                        }
                    }
                }
            }
        }
    }
    assert_eq!(cells, 1920);
    assert!(
        worst <= 1.05,
        "the worst plan takes {worst} times the best mixture"
    );
    assert!(slower <= 1.2, "a short epoch takes {slower} times as long");
    assert!(gained <= 0.8, "the most that a short epoch gains: {gained}");
}

fn candidate(stage: usize) -> impl Strategy<Value = Candidate> {
    (1.0..1e6_f64, 0.0..0.1_f64, 0.0..0.1_f64).prop_map(move |(bytes, gateway, host)| {
        way(stage, bytes, if stage == 0 { 0.0 } else { gateway }, host)
    })
}

proptest! {
    #[test]
    fn plans_share_out_every_sample_and_never_lose(
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
            .map(|(share, a, b, c, d)| Class { share: share / total, candidates: vec![a, b, c, d] })
            .collect();
        let tiers = Tiers { gateway_cores: gateway, beside_steps: 0.0, link_bytes: link, host_cores: host, trainer_seconds: trainer, shared };
        let rules = Rules { max_expand, ..Rules::default() };
        let plan = Plan::best(&tiers, &classes, &rules);
        for (class, shares) in classes.iter().zip(&plan.shares) {
            prop_assert!((shares.iter().sum::<f64>() - class.share).abs() < 1e-6, "{:?}", plan);
            for (candidate, share) in class.candidates.iter().zip(shares) {
                prop_assert!(*share >= 0.0);
                let allowed = candidate.stage == 0 || candidate.bytes <= max_expand * class.candidates[0].bytes;
                prop_assert!(allowed || *share == 0.0);
            }
        }
        let plain = Plan::plain(&tiers, &classes, &rules);
        prop_assert!(plan.load.seconds() <= plain.load.seconds() * (1.0 + 1e-6), "{:?} {:?}", plan, plain);
    }
}
