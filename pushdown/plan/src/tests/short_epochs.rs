//! Effects of the number of remaining samples: one-time costs, work in flight, and the last batch.

use super::*;

/// A photo at splits whose suffix needs weights that the host lacks.
fn photo_without_weights() -> Vec<Candidate> {
    let mut candidates = photo();
    for split in &mut candidates[..2] {
        split.weights_bytes = 18.6e6;
    }
    candidates
}

#[test]
fn weights_are_spread_over_the_remaining_samples() {
    let mut candidates = photo();
    candidates[1].bytes = 50_000.0;
    candidates[1].weights_bytes = 1e8;
    let few = Rules {
        samples_left: 100.0,
        ..Rules::default()
    };
    let link = tiers(0.15, 1e6, 4.0);
    assert!(Plan::best(&link, &one_class(candidates.clone()), &few).fractions[0][1] < 1e-6);
    assert!(Plan::best(&link, &one_class(candidates), &Rules::default()).fractions[0][1] > 0.5);
}

/// On a first start, plain reading needs all weights, too.
#[test]
fn a_mixture_with_plain_reading_pays_for_weights() {
    let (link, classes) = (tiers(1.0, 2.75e6, 1.0), one_class(photo_without_weights()));
    let epoch = |samples_left: f64| {
        let rules = Rules {
            samples_left,
            ..Rules::default()
        };
        let plan = Plan::best(&link, &classes, &rules);
        let plain = Plan::plain(&link, &classes, &rules);
        (plan, plain.load.seconds() * samples_left)
    };
    let (few, plainly) = epoch(200.0);
    assert_near(few.fractions[0][2], 1.0);
    assert_near(plainly, (200.0 * 107_000.0 + 18.6e6) / 2.75e6);
    let (many, _) = epoch(20_000.0);
    assert!(many.fractions[0][0] > 0.1, "{many:?}");
    assert!(many.load.seconds() < 0.95 * 0.0115, "{many:?}");
}

/// While the host fetches weights, it uses splits that need none; the plan counts the weights once.
#[test]
fn nothing_waits_for_weights_in_flight() {
    let (link, classes) = (tiers(1.0, 2.75e6, 1.0), one_class(photo_without_weights()));
    let mut rules = Rules {
        samples_left: 200.0,
        ..Rules::default()
    };
    let without_weights = Plan::best_without_weights(&link, &classes, &rules).unwrap();
    assert_near(without_weights.fractions[0][2], 1.0);
    assert_near(Plan::best(&link, &classes, &rules).fractions[0][2], 1.0);
    rules.weights_in_flight = true;
    assert!(Plan::best(&link, &classes, &rules).fractions[0][0] > 0.1);
}

/// At the end of a short epoch, one object on a slow link delays more than plain reading gains for the others.
#[test]
fn the_last_sample_counts_in_a_short_epoch() {
    // 0.14 seconds for an object, 0.0115 for features.
    let (link, classes) = (tiers(1.0, 0.8e6, 1.0), one_class(photo()));
    let best = |samples_left: f64| {
        let rules = Rules {
            samples_left,
            ..Rules::default()
        };
        Plan::best(&link, &classes, &rules)
    };
    let (few, many) = (best(96.0), best(2_000.0));
    assert_near(few.fractions[0][2], 1.0);
    assert_near(few.tail_seconds, 0.0115 + 2_560.0 / 0.8e6);
    assert!(many.fractions[0][0] > 0.03, "{many:?}");
    assert_near(many.tail_seconds, 0.0115 + 107_000.0 / 0.8e6);
}

/// A model with a cut after its first half. Gateway and host have run the whole model; each of its halves takes two seconds to
/// load.
fn photo_with_a_cut() -> Vec<Candidate> {
    let mut cut = split(4, 10_000.0, 0.0062, 0.0053);
    cut.loading = LoadingCost {
        gateway_seconds: 2.0,
        host_seconds: 2.0,
    };
    let mut candidates = photo();
    candidates.insert(2, cut);
    candidates
}

#[test]
fn layers_are_loaded_if_enough_samples_remain() {
    let (link, classes) = (tiers(1.0, 5e6, 1.0), one_class(photo_with_a_cut()));
    let best = |samples_left: f64| {
        let rules = Rules {
            samples_left,
            ..Rules::default()
        };
        let best = Plan::best(&link, &classes, &rules);
        assert!(best.seconds(&rules) <= Plan::plain(&link, &classes, &rules).seconds(&rules) + 1e-12);
        best
    };
    let (few, many) = (best(100.0), best(100_000.0));
    assert_near(few.fractions[0][2], 0.0);
    assert!(few.tail_seconds < 0.1, "{few:?}");
    assert!(many.fractions[0][2] > 0.5, "{many:?}");
    // Once for all classes at this split.
    let half = |class: &Class| Class {
        fraction: 0.5,
        ..class.clone()
    };
    let halves = vec![half(&classes[0]), half(&classes[0])];
    let rules = Rules {
        samples_left: 1_000.0,
        ..Rules::default()
    };
    let all = |classes: &[Class]| {
        let fractions = classes.iter().map(|class| vec![0.0, 0.0, class.fraction, 0.0]);
        Plan::from_fractions(&link, classes, fractions.collect(), &rules)
    };
    assert_near(
        all(&halves).load.gateway_seconds,
        all(&classes).load.gateway_seconds,
    );
    assert_near(all(&classes).load.gateway_seconds, 0.0062 + 2.0 / 1_000.0);
    assert_near(all(&classes).load.host_seconds, 0.0053 + 2.0 / 1_000.0);
    assert_near(all(&classes).tail_seconds, 0.0115 + 10_000.0 / 5e6 + 4.0);
}

/// A link or a gateway with a backlog has less time for the remaining samples, by more the fewer of them are left. Plain reading
/// waits for the backlog, too.
#[test]
fn work_in_flight_comes_first() {
    let (link, classes) = (tiers(1.0, 2.75e6, 1.0), one_class(photo()));
    let plainly = |samples_left: f64, in_flight: InFlight| {
        let rules = Rules {
            samples_left,
            in_flight,
            ..Rules::default()
        };
        let plan = Plan::best(&link, &classes, &rules);
        assert!(plan.seconds(&rules) <= Plan::plain(&link, &classes, &rules).seconds(&rules));
        plan.fractions[0][0]
    };
    let free = plainly(400.0, InFlight::default());
    assert!(free > 0.1, "{free}");
    // The capacity of the link during 400 samples.
    let bytes = InFlight {
        bytes: 400.0 * 0.0115 * 2.75e6,
        ..InFlight::default()
    };
    assert!(plainly(400.0, bytes) < 1e-6);
    assert_near(plainly(1e9, bytes), plainly(1e9, InFlight::default()));
    let gateway = InFlight {
        gateway_seconds: 1.0,
        ..InFlight::default()
    };
    assert!(plainly(400.0, gateway) > free + 0.02);
    // A gateway that has lost all of its cores does not delay the plan.
    let lost = tiers(0.0, 2.75e6, 1.0);
    let rules = Rules {
        samples_left: 400.0,
        in_flight: gateway,
        ..Rules::default()
    };
    assert_near(Plan::best(&lost, &classes, &rules).fractions[0][0], 1.0);
}

/// Gateway and host each keep up with the trainer alone, but the trainer waits for its first batch. In a short epoch both compute
/// that batch; in a long one the plan sends the fewest bytes.
#[test]
fn both_tiers_compute_the_first_batch() {
    let trained = Tiers {
        trainer_seconds: 0.0116,
        ..tiers(1.0, 100e6, 1.0)
    };
    let classes = one_class(photo());
    let plainly = |samples_left: f64| {
        let rules = Rules {
            samples_left,
            batch_size: 32.0,
            ..Rules::default()
        };
        let plan = Plan::best(&trained, &classes, &rules);
        assert!(plan.seconds(&rules) <= Plan::plain(&trained, &classes, &rules).seconds(&rules));
        plan.fractions[0][0]
    };
    let short = plainly(160.0);
    assert!((0.3..0.6).contains(&short), "{short}");
    assert_near(plainly(1e6), 0.0);
    // The simulation agrees.
    let epoch = |batch_size: f64| {
        let rules = Rules {
            samples_left: 160.0,
            batch_size,
            ..Rules::default()
        };
        let plan = Plan::best(&trained, &classes, &rules);
        epoch_seconds(
            &trained,
            &sample_costs(&classes, &plan, 160),
            ReadAhead::for_batch(NonZeroUsize::new(32).unwrap()),
        )
    };
    let (known, unknown) = (epoch(32.0), epoch(0.0));
    assert!(
        known < 0.95 * unknown,
        "{known} s with the batch size, {unknown} s without it"
    );
}

proptest! {
    #[test]
    fn pacing_never_exceeds_the_budget(
        upstream in 1e-4..1e-1f64, trainer in 1e-4..1e-1f64, batch_size in 0.0..300.0f64, samples_left in 1.0..1e5f64
    ) {
        let rules = Rules { samples_left, batch_size, ..Rules::default() };
        let found = rules.max_upstream_seconds(rules.pace_seconds(upstream, trainer), trainer);
        // Without batches, all times below that of the trainer have the same pace.
        let expected = if batch_size == 0.0 { upstream.max(trainer) } else { upstream };
        prop_assert!((found - expected).abs() <= 1e-6 * expected.max(trainer) * (1.0 + samples_left / batch_size.max(1e-9)), "expected {expected}, found {found}");
    }
}
