//! What is left of an epoch: what is spread over it, what goes before it, and how it ends.

use super::*;

/// The host lacks the weights of what is left of a photo's way.
fn photo_without_weights() -> Vec<Candidate> {
    let mut candidates = photo();
    for way in &mut candidates[..2] {
        way.weights = 18.6e6;
    }
    candidates
}

#[test]
fn weights_are_spread_over_what_is_left() {
    let mut candidates = photo();
    candidates[1].bytes = 50_000.0;
    candidates[1].weights = 1e8;
    let few = Rules {
        samples_left: 100.0,
        ..Rules::default()
    };
    let link = tiers(0.15, 1e6, 4.0);
    assert!(Plan::best(&link, &one(candidates.clone()), &few).shares[0][1] < 1e-6);
    assert!(Plan::best(&link, &one(candidates), &Rules::default()).shares[0][1] > 0.5);
}

/// A first start: whoever reads objects as they are needs all weights, too.
#[test]
fn a_mixture_with_plain_reading_pays_for_weights() {
    let (link, classes) = (tiers(1.0, 2.75e6, 1.0), one(photo_without_weights()));
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
    assert_near(few.shares[0][2], 1.0);
    assert_near(plainly, (200.0 * 107_000.0 + 18.6e6) / 2.75e6);
    let (many, _) = epoch(20_000.0);
    assert!(many.shares[0][0] > 0.1, "{many:?}");
    assert!(many.load.seconds() < 0.95 * 0.0115, "{many:?}");
}

/// Who waits for weights begins with what needs none, and pays for them once.
#[test]
fn until_weights_are_here_nothing_waits_for_them() {
    let (link, classes) = (tiers(1.0, 2.75e6, 1.0), one(photo_without_weights()));
    let mut rules = Rules {
        samples_left: 200.0,
        ..Rules::default()
    };
    let meanwhile = Plan::meanwhile(&link, &classes, &rules).unwrap();
    assert_near(meanwhile.shares[0][2], 1.0);
    assert_near(Plan::best(&link, &classes, &rules).shares[0][2], 1.0);
    rules.weights_on_their_way = true;
    assert!(Plan::best(&link, &classes, &rules).shares[0][0] > 0.1);
}

/// The end of a short epoch: an object on a thin link holds up more than the others gain by its going that way.
#[test]
fn the_last_sample_counts_in_a_short_epoch() {
    // 0.14 seconds for an object, 0.0115 for features.
    let (link, classes) = (tiers(1.0, 0.8e6, 1.0), one(photo()));
    let of = |samples_left: f64| {
        let rules = Rules {
            samples_left,
            ..Rules::default()
        };
        Plan::best(&link, &classes, &rules)
    };
    let (few, many) = (of(96.0), of(2_000.0));
    assert_near(few.shares[0][2], 1.0);
    assert_near(few.tail, 0.0115 + 2_560.0 / 0.8e6);
    assert!(many.shares[0][0] > 0.03, "{many:?}");
    assert_near(many.tail, 0.0115 + 107_000.0 / 0.8e6);
}

/// A model in two halves: what is decoded, what is behind its first half, and what is behind all of it. The gateway and the
/// host have run all of it, and either half takes two seconds to load.
fn photo_with_a_cut() -> Vec<Candidate> {
    let mut cut = way(4, 10_000.0, 0.0062, 0.0053);
    cut.loading = Loading {
        gateway_seconds: 2.0,
        host_seconds: 2.0,
    };
    let mut candidates = photo();
    candidates.insert(2, cut);
    candidates
}

#[test]
fn layers_are_loaded_where_enough_samples_are_left() {
    let (link, classes) = (tiers(1.0, 5e6, 1.0), one(photo_with_a_cut()));
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
    assert_near(few.shares[0][2], 0.0);
    assert!(few.tail < 0.1, "{few:?}");
    assert!(many.shares[0][2] > 0.5, "{many:?}");
    // Once for all classes that go this way.
    let half = |class: &Class| Class {
        share: 0.5,
        ..class.clone()
    };
    let halves = vec![half(&classes[0]), half(&classes[0])];
    let rules = Rules {
        samples_left: 1_000.0,
        ..Rules::default()
    };
    let all = |classes: &[Class]| {
        let shares = classes.iter().map(|class| vec![0.0, 0.0, class.share, 0.0]);
        Plan::of(&link, classes, shares.collect(), &rules)
    };
    assert_near(all(&halves).load.gateway, all(&classes).load.gateway);
    assert_near(all(&classes).load.gateway, 0.0062 + 2.0 / 1_000.0);
    assert_near(all(&classes).load.host, 0.0053 + 2.0 / 1_000.0);
    assert_near(all(&classes).tail, 0.0115 + 10_000.0 / 5e6 + 4.0);
}

/// A link that has a backlog has less time for what is still to come, and so has a gateway: the fewer samples are left, the more
/// that is. Reading plainly has it before it, too.
#[test]
fn what_is_under_way_comes_first() {
    let (link, classes) = (tiers(1.0, 2.75e6, 1.0), one(photo()));
    let plainly = |samples_left: f64, under_way: UnderWay| {
        let rules = Rules {
            samples_left,
            under_way,
            ..Rules::default()
        };
        let plan = Plan::best(&link, &classes, &rules);
        assert!(plan.seconds(&rules) <= Plan::plain(&link, &classes, &rules).seconds(&rules));
        plan.shares[0][0]
    };
    let free = plainly(400.0, UnderWay::default());
    assert!(free > 0.1, "{free}");
    // As much as the link takes of 400 samples in all.
    let bytes = UnderWay {
        bytes: 400.0 * 0.0115 * 2.75e6,
        ..UnderWay::default()
    };
    assert!(plainly(400.0, bytes) < 1e-6);
    assert_near(plainly(1e9, bytes), plainly(1e9, UnderWay::default()));
    let gateway = UnderWay {
        gateway_seconds: 1.0,
        ..UnderWay::default()
    };
    assert!(plainly(400.0, gateway) > free + 0.02);
    // The way of the gateway's part, on a machine that has lost all cores of it, is none to wait for.
    let lost = tiers(0.0, 2.75e6, 1.0);
    let rules = Rules {
        samples_left: 400.0,
        under_way: gateway,
        ..Rules::default()
    };
    assert_near(Plan::best(&lost, &classes, &rules).shares[0][0], 1.0);
}

/// Either side alone keeps up with the trainer, which waits for its first batch all the same: in a short epoch both sides make
/// that, in a long one those bytes are sent that have to be.
#[test]
fn a_first_batch_that_is_waited_for_is_made_on_both_sides() {
    let trained = Tiers {
        trainer_seconds: 0.0116,
        ..tiers(1.0, 100e6, 1.0)
    };
    let classes = one(photo());
    let plainly = |samples_left: f64| {
        let rules = Rules {
            samples_left,
            batch_size: 32.0,
            ..Rules::default()
        };
        let plan = Plan::best(&trained, &classes, &rules);
        assert!(plan.seconds(&rules) <= Plan::plain(&trained, &classes, &rules).seconds(&rules));
        plan.shares[0][0]
    };
    let short = plainly(160.0);
    assert!((0.3..0.6).contains(&short), "{short}");
    assert_near(plainly(1e6), 0.0);
    // So it is in queues.
    let epoch = |batch_size: f64| {
        let rules = Rules {
            samples_left: 160.0,
            batch_size,
            ..Rules::default()
        };
        let plan = Plan::best(&trained, &classes, &rules);
        run(
            &trained,
            &jobs(&classes, &plan, 160),
            Reading::of(NonZeroUsize::new(32).unwrap()),
        )
    };
    let (known, unknown) = (epoch(32.0), epoch(0.0));
    assert!(
        known < 0.95 * unknown,
        "{known} s, {unknown} s where batches are not counted"
    );
}

proptest! {
    #[test]
    fn what_is_paced_at_so_many_seconds_may_take_no_more(
        tiers in 1e-4..1e-1f64, trainer in 1e-4..1e-1f64, batch_size in 0.0..300.0f64, samples_left in 1.0..1e5f64
    ) {
        let rules = Rules { samples_left, batch_size, ..Rules::default() };
        let most = rules.most(rules.paced(tiers, trainer), trainer);
        // Without batches nothing tells apart what is faster than the trainer.
        let expected = if batch_size == 0.0 { tiers.max(trainer) } else { tiers };
        prop_assert!((most - expected).abs() <= 1e-6 * expected.max(trainer) * (1.0 + samples_left / batch_size.max(1e-9)), "{most}, expected {expected}");
    }
}
