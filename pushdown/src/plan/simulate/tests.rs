use super::*;

/// One core on each side, and a link of so many bytes in a second.
const fn tiers(link_bytes: f64) -> Tiers {
    Tiers {
        gateway_cores: 1.0,
        beside_steps: 0.0,
        link_bytes,
        host_cores: 1.0,
        trainer_seconds: 0.0,
        shared: false,
    }
}

const fn reading(batch: usize, batches: usize, gets: usize) -> Reading {
    Reading {
        batch: NonZeroUsize::new(batch).unwrap(),
        batches: NonZeroUsize::new(batches).unwrap(),
        gets: NonZeroUsize::new(gets).unwrap(),
    }
}

const fn stored(bytes: f64, host: f64) -> Job {
    Job {
        plain: true,
        gateway: 0.0,
        bytes,
        host,
    }
}

const fn pushed(gateway: f64, host: f64) -> Job {
    Job {
        plain: false,
        gateway,
        bytes: 1.0,
        host,
    }
}

#[track_caller]
fn assert_seconds(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found} s, expected {expected}");
}

/// When the first batch of two was there: a trainer that takes as long for each as nothing else does shows it.
fn first_of_two(link_bytes: f64, jobs: [Job; 4], gets: usize) -> f64 {
    const STEP: f64 = 100.0;
    let trainer = Tiers {
        trainer_seconds: STEP / 2.0,
        ..tiers(link_bytes)
    };
    run(&trainer, &jobs, reading(2, 4, gets)) - 2.0 * STEP
}

#[test]
fn no_more_is_asked_for_than_may_be_on_its_way() {
    // The gateway works while the host does, unless the next batch waits for all of the one before.
    let jobs = [pushed(1.0, 1.0); 8];
    let seconds = |batches| run(&tiers(f64::INFINITY), &jobs, reading(2, batches, 1));
    assert_seconds(seconds(4), 9.0);
    assert_seconds(seconds(1), 4.0 * 3.0);
    // The store looks for an object while the one before it is on the link, unless that has to come first.
    let object = Job {
        gateway: 1.0,
        ..stored(1.0, 0.0)
    };
    let seconds = |gets| run(&tiers(1.0), &[object; 3], reading(3, 4, gets));
    assert_seconds(seconds(3), 4.0);
    assert_seconds(seconds(1), 6.0);
}

#[test]
fn a_value_waits_on_the_link_behind_the_objects_that_were_asked_for() {
    let object = stored(10.0, 0.0);
    let first = |gateway, gets| first_of_two(1.0, [pushed(gateway, 0.0), object, object, object], gets);
    assert_seconds(first(1.0, 4), 11.0);
    // By then the objects of the next batch are on their way, one of them or both.
    assert_seconds(first(15.0, 1), 21.0);
    assert_seconds(first(15.0, 4), 31.0);
}

#[test]
fn the_host_takes_the_oldest_batch_first() {
    let later = stored(1.0, 3.0);
    let jobs = [pushed(2.0, 1.0), stored(1.0, 1.0), later, later];
    // The second one's first object runs when the value comes, and its other one waits.
    assert_seconds(first_of_two(f64::INFINITY, jobs, 4), 5.0);
}

#[test]
fn what_takes_nothing_takes_no_time_on_no_cores() {
    let none = Tiers {
        gateway_cores: 0.0,
        ..tiers(1.0)
    };
    assert_seconds(run(&none, &[stored(1.0, 1.0); 2], reading(2, 4, 4)), 3.0);
}

#[test]
fn an_object_takes_the_stores_time_from_the_gateway_and_waits_for_no_model() {
    let object = Job {
        gateway: 1.0,
        ..stored(1.0, 10.0)
    };
    let jobs = [pushed(10.0, 0.0), object, pushed(10.0, 0.0)];
    // The host has the object from the first second on; both sides end with 21 and 11.
    assert_seconds(run(&tiers(f64::INFINITY), &jobs, reading(3, 1, 1)), 21.0);
    let jobs = [pushed(5.0, 0.0), object];
    assert_seconds(run(&tiers(f64::INFINITY), &jobs, reading(2, 1, 1)), 11.0);
}
