//! Store and gateway at two addresses.

use super::*;

/// Paths with these bandwidths.
fn two_paths(store: f64, gateway: f64, link: f64) -> Tiers {
    Tiers {
        paths: Some(Paths {
            store_bytes_per_second: store,
            gateway_bytes_per_second: gateway,
        }),
        ..tiers(4.0, link, 4.0)
    }
}

fn best(tiers: &Tiers) -> Plan {
    Plan::best(tiers, &one_class(photo()), &Rules::default())
}

#[test]
fn each_path_limits_the_samples_that_arrive_over_it() {
    let split = one_class(vec![split(0, 1_000.0, 0.0, 0.0), split(1, 500.0, 0.0, 0.0)]);
    let half = vec![vec![0.5, 0.5]];
    let load = |tiers: &Tiers| Plan::from_fractions(tiers, &split, half.clone(), &Rules::default()).load;
    let slow_store = load(&two_paths(1e4, 1e6, f64::INFINITY));
    assert_near(slow_store.seconds(), 0.05);
    assert_eq!(slow_store.bound(), Bound::StorePath);
    let slow_gateway = load(&two_paths(1e6, 1e3, f64::INFINITY));
    assert_near(slow_gateway.seconds(), 0.25);
    assert_eq!(slow_gateway.bound(), Bound::GatewayPath);
    // The link has to carry the bytes of both.
    let slow_link = load(&two_paths(1e4, 1e4, 1e4));
    assert_near(slow_link.seconds(), 0.075);
    assert_eq!(slow_link.bound(), Bound::Link);
}

#[test]
fn two_equal_paths_carry_more_than_one_unless_they_share_a_slow_link() {
    let classes = one_class(vec![split(0, 1_000.0, 0.0, 0.001), split(1, 800.0, 0.001, 0.0)]);
    let best = |tiers: &Tiers| Plan::best(tiers, &classes, &Rules::default());
    let one = best(&tiers(4.0, 1e5, 4.0));
    assert_near(one.load.seconds(), 0.008);
    let shared = best(&two_paths(1e5, 1e5, 1e5));
    assert_eq!(shared.fractions, one.fractions);
    assert_near(shared.load.seconds(), 0.008);
    let separate = best(&two_paths(1e5, 1e5, f64::INFINITY));
    assert!(separate.load.seconds() < 0.6 * 0.008, "{separate:?}");
}

/// A gateway in another region: its path is slow, and the store's is not.
#[test]
fn a_slow_path_from_the_gateway_leaves_samples_to_the_store() {
    let far_gateway = best(&two_paths(1e9, 1e4, f64::INFINITY));
    assert!(far_gateway.fractions[0][0] > 0.9, "{far_gateway:?}");
    let far_store = best(&two_paths(1e4, 1e9, f64::INFINITY));
    assert!(far_store.fractions[0][0] < 0.1, "{far_store:?}");
}

/// Plain reads do not pass a gateway beside the store, so its background load is that of the samples that it computes.
#[test]
fn plain_reading_costs_a_gateway_beside_the_store_nothing() {
    let background = |tiers: Tiers| Tiers {
        background_seconds: 0.002,
        ..tiers
    };
    let classes = one_class(photo());
    let plain = |tiers: &Tiers| {
        Plan::plain(tiers, &classes, &Rules::default())
            .load
            .gateway_seconds
    };
    assert_near(plain(&background(tiers(4.0, 1e9, 4.0))), 0.002);
    let tiers = background(two_paths(1e9, 1e9, 1e9));
    assert_near(plain(&tiers), 0.0);
    let pushed = Plan::from_fractions(&tiers, &classes, vec![vec![0.5, 0.0, 0.5]], &Rules::default());
    assert_near(pushed.load.gateway_seconds, 0.5 * (0.0115 / 4.0 + 0.002));
    // On the host's own CPUs it is part of the host's load.
    let shared = Tiers {
        shared: true,
        ..tiers
    };
    let pushed = Plan::from_fractions(&shared, &classes, vec![vec![0.0, 0.0, 1.0]], &Rules::default());
    assert_near(pushed.load.host_seconds, 0.0115 / 4.0);
}

#[test]
fn bytes_in_flight_and_weights_belong_to_a_path() {
    let rules = Rules {
        samples_left: 100.0,
        in_flight: InFlight {
            bytes: 3e6,
            gateway_bytes: 1e6,
            ..InFlight::default()
        },
        ..Rules::default()
    };
    let mut candidates = photo();
    candidates[0].weights_bytes = 5e6;
    let tiers = two_paths(1e6, 1e6, 1e7);
    let load = Plan::plain(&tiers, &one_class(candidates), &rules).load;
    assert_near(load.store_path_seconds, 0.107 + 0.02);
    assert_near(load.gateway_path_seconds, 0.01 + 0.05);
    assert_near(load.link_seconds, (0.107 + 0.03 + 0.05) / 10.0);
}

/// A trial may use the idle time of its own path only.
#[test]
fn trials_use_the_idle_time_of_their_path() {
    let classes = one_class(photo());
    let tiers = two_paths(1e6, 1e4, f64::INFINITY);
    let rules = Rules::default();
    let plain = Plan::plain(&tiers, &classes, &rules);
    let pushed = Plan::from_fractions(&tiers, &classes, vec![vec![0.0, 0.0, 1.0]], &rules);
    assert_near(plain.trial_fraction(&pushed.load), 0.107 * 1.03 / 0.256);
}
