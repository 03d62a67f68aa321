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
