use super::*;
use crate::{Paths, tests::Digest};

/// One core each at gateway and host, and a link of this bandwidth.
const fn tiers(link_bytes_per_second: f64) -> Tiers {
    Tiers {
        gateway_cores: 1.0,
        background_seconds: 0.0,
        link_bytes_per_second,
        paths: None,
        host_cores: 1.0,
        trainer_seconds: 0.0,
        shared: false,
    }
}

const fn read_ahead(batch_samples: usize, batches: usize, gets: usize) -> ReadAhead {
    ReadAhead {
        batch_samples: NonZeroUsize::new(batch_samples).unwrap(),
        batches_in_flight: NonZeroUsize::new(batches).unwrap(),
        concurrent_gets: NonZeroUsize::new(gets).unwrap(),
        min_samples_in_flight: 0,
    }
}

const fn stored(bytes: f64, host_seconds: f64) -> SampleCost {
    SampleCost {
        is_plain: true,
        gateway_seconds: 0.0,
        bytes,
        host_seconds,
    }
}

const fn pushed(gateway_seconds: f64, host_seconds: f64) -> SampleCost {
    SampleCost {
        is_plain: false,
        gateway_seconds,
        bytes: 1.0,
        host_seconds,
    }
}

#[track_caller]
fn assert_seconds(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() < 1e-6,
        "expected {expected} s, found {found}"
    );
}

/// When the first of two batches was complete. A trainer that is slower than everything else reveals it.
fn first_of_two(link_bytes_per_second: f64, samples: [SampleCost; 4], gets: usize) -> f64 {
    const STEP: f64 = 100.0;
    let trainer = Tiers {
        trainer_seconds: STEP / 2.0,
        ..tiers(link_bytes_per_second)
    };
    epoch_seconds(&trainer, &samples, read_ahead(2, 4, gets)) - 2.0 * STEP
}

#[test]
fn requests_in_flight_are_bounded() {
    // Gateway and host work at the same time, unless the next batch waits for all of the previous one.
    let samples = [pushed(1.0, 1.0); 8];
    let seconds = |batches| epoch_seconds(&tiers(f64::INFINITY), &samples, read_ahead(2, batches, 1));
    assert_seconds(seconds(4), 9.0);
    assert_seconds(seconds(1), 4.0 * 3.0);
    // The store finds an object while the previous one is on the link, unless only one GET is allowed.
    let object = SampleCost {
        gateway_seconds: 1.0,
        ..stored(1.0, 0.0)
    };
    let seconds = |gets| epoch_seconds(&tiers(1.0), &[object; 3], read_ahead(3, 4, gets));
    assert_seconds(seconds(3), 4.0);
    assert_seconds(seconds(1), 6.0);
}

#[test]
fn a_value_waits_for_objects_ahead_of_it_on_the_link() {
    let object = stored(10.0, 0.0);
    let first = |gateway, gets| first_of_two(1.0, [pushed(gateway, 0.0), object, object, object], gets);
    assert_seconds(first(1.0, 4), 11.0);
    // By then one or both objects of the next batch are in flight.
    assert_seconds(first(15.0, 1), 21.0);
    assert_seconds(first(15.0, 4), 31.0);
}

#[test]
fn the_host_serves_the_oldest_batch_first() {
    let later = stored(1.0, 3.0);
    let samples = [pushed(2.0, 1.0), stored(1.0, 1.0), later, later];
    // An object of the second batch runs when the value arrives, and the other one waits.
    assert_seconds(first_of_two(f64::INFINITY, samples, 4), 5.0);
}

#[test]
fn no_work_takes_no_time_without_cores() {
    let none = Tiers {
        gateway_cores: 0.0,
        ..tiers(1.0)
    };
    assert_seconds(
        epoch_seconds(&none, &[stored(1.0, 1.0); 2], read_ahead(2, 4, 4)),
        3.0,
    );
}

#[test]
fn objects_delay_the_gateway_and_do_not_wait_for_models() {
    let object = SampleCost {
        gateway_seconds: 1.0,
        ..stored(1.0, 10.0)
    };
    let samples = [pushed(10.0, 0.0), object, pushed(10.0, 0.0)];
    // The host has the object after one second. The gateway ends after 21 seconds, the host after 11.
    assert_seconds(
        epoch_seconds(&tiers(f64::INFINITY), &samples, read_ahead(3, 1, 1)),
        21.0,
    );
    let samples = [pushed(5.0, 0.0), object];
    assert_seconds(
        epoch_seconds(&tiers(f64::INFINITY), &samples, read_ahead(2, 1, 1)),
        11.0,
    );
}

/// Values and objects arrive over different paths, and together over the link.
#[test]
fn paths_work_at_the_same_time_and_share_the_link() {
    let seconds = |link_bytes_per_second: f64, gateway_bytes_per_second: f64| {
        let tiers = Tiers {
            paths: Some(Paths {
                store_bytes_per_second: 1.0,
                gateway_bytes_per_second,
            }),
            ..tiers(link_bytes_per_second)
        };
        let value = SampleCost {
            bytes: 4.0,
            ..pushed(0.0, 0.0)
        };
        let object = stored(4.0, 0.0);
        epoch_seconds(&tiers, &[value, object, value, object], read_ahead(4, 1, 4))
    };
    assert_seconds(seconds(f64::INFINITY, 1.0), 8.0);
    assert_seconds(seconds(f64::INFINITY, 0.5), 16.0);
    assert_seconds(seconds(4.0, 1.0), 8.0);
    // The link carries half of what the paths could.
    assert_seconds(seconds(1.0, 1.0), 16.0);
}

/// One gateway is simulated as before there were replicas, bit for bit.
#[test]
fn one_gateway_is_simulated_bit_for_bit_the_same() {
    let costs: Vec<SampleCost> = (0..500_u32)
        .map(|sample| {
            let third = f64::from(sample % 7) / 3.0;
            if sample % 3 == 0 {
                SampleCost {
                    gateway_seconds: 0.01 * third,
                    ..stored(1.0 + third, 0.7 * third)
                }
            } else {
                pushed(0.9 * third, 0.3)
            }
        })
        .collect();
    let mut digest = Digest::default();
    for gateway_cores in [0.5, 1.0, 2.5] {
        for paths in [
            None,
            Some(Paths {
                store_bytes_per_second: 1.5,
                gateway_bytes_per_second: 3.0,
            }),
        ] {
            let tiers = Tiers {
                gateway_cores,
                paths,
                host_cores: 1.5,
                ..tiers(2.0)
            };
            for batch in [4, 32] {
                digest.add(&[epoch_seconds(&tiers, &costs, read_ahead(batch, 4, 8))]);
            }
        }
    }
    digest.check(0xac5d_2179_8c9c_a977);
}

#[test]
fn batches_are_requested_early_while_too_few_samples_are_in_flight() {
    let samples = [pushed(1.0, 1.0); 8];
    let at_least = |min_samples_in_flight| ReadAhead {
        min_samples_in_flight,
        ..read_ahead(2, 4, 1)
    };
    // A gateway with eight cores.
    let wide = Tiers {
        gateway_cores: 8.0,
        ..tiers(f64::INFINITY)
    };
    let free_host = samples.map(|sample| SampleCost {
        host_seconds: 0.0,
        ..sample
    });
    assert_seconds(epoch_seconds(&wide, &free_host, at_least(0)), 4.0);
    assert_seconds(epoch_seconds(&wide, &free_host, at_least(4)), 2.0);
    assert_seconds(epoch_seconds(&wide, &free_host, at_least(7)), 1.0);
    // No more than four batches.
    assert_seconds(
        epoch_seconds(&wide, &[free_host, free_host].concat(), at_least(16)),
        2.0,
    );
}
