//! A replica that is killed, hangs, drains, or computes other values.

use super::*;

/// What happens to a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    Killed,
    Frozen,
    /// It completes the batches that it has, and ends.
    Terminated,
}

impl Replicas {
    pub(super) fn lose(&mut self, number: usize, loss: Loss) {
        match loss {
            Loss::Killed => self.kill(number),
            Loss::Frozen => self.gateway(number).freeze().unwrap(),
            Loss::Terminated => self.gateway(number).terminate().unwrap(),
        }
    }
}

/// Loses one of three replicas once the consumer has this number of batches, while others are in flight.
fn lose_one(loss: Loss, mode: Mode, batches_before: usize) {
    const SAMPLES: usize = 384;
    let mut replicas = Replicas::new(3, many_photos(SAMPLES));
    let expected = replicas.expected();
    run(async {
        let reader = replicas.reader(PIPELINE).mode(mode).max_expand(100.0).seed(5);
        let mut reader = reader.build().await.unwrap();
        let mut batches: Vec<Batch> = reader.by_ref().take(batches_before).try_collect().await.unwrap();
        replicas.lose(1, loss);
        batches.extend(reader.by_ref().try_collect::<Vec<_>>().await.unwrap());
        let rows = into_rows(batches);
        assert_same_values(&rows, &expected);
        assert_eq!(reader.stats().retries, 0, "{loss:?}: nothing waits for retries");
        if mode == Mode::Pushdown {
            assert_eq!(pushed(&rows), SAMPLES, "{loss:?}: the others take over");
        }
        let reports = reader.monitor().replicas();
        let states: Vec<_> = reports.iter().map(|report| report.state).collect();
        assert_eq!((states[0], states[2]), ("serving", "serving"), "{loss:?}");
        assert_ne!(states[1], "serving", "{loss:?}");
    });
}

#[test]
fn others_take_over_from_a_replica_that_is_killed() {
    lose_one(Loss::Killed, Mode::Pushdown, 3);
}

#[test]
fn others_take_over_from_a_replica_that_hangs() {
    lose_one(Loss::Frozen, Mode::Pushdown, 2);
}

#[test]
fn a_plan_goes_on_with_the_replicas_that_are_left() {
    lose_one(Loss::Killed, Mode::Auto, 4);
}

#[test]
#[ignore = "five minutes: make test-full"]
fn replicas_lost_at_any_moment_lose_and_repeat_no_sample() {
    for batches_before in 0..10 {
        for mode in [Mode::Pushdown, Mode::Auto] {
            for loss in [Loss::Killed, Loss::Frozen, Loss::Terminated] {
                lose_one(loss, mode, batches_before);
            }
        }
    }
}

#[test]
fn without_any_replica_the_rest_is_read_plainly() {
    const SAMPLES: usize = 192;
    let mut replicas = Replicas::new(3, many_photos(SAMPLES));
    let expected = replicas.expected();
    run(async {
        let reader = replicas.reader(PIPELINE).mode(Mode::Auto).seed(5);
        let mut reader = reader.build().await.unwrap();
        let mut batches: Vec<Batch> = reader.by_ref().take(2).try_collect().await.unwrap();
        for number in 0..3 {
            replicas.kill(number);
        }
        batches.extend(reader.by_ref().try_collect::<Vec<_>>().await.unwrap());
        let rows = into_rows(batches);
        assert_same_values(&rows, &expected);
        assert_eq!(pushed(&rows[SAMPLES - 32..]), 0);
    });
}

/// A single value, and the list of models, need no retry either.
#[test]
fn single_values_are_requested_from_the_next_replica() {
    let mut replicas = Replicas::new(3, many_photos(12));
    let store = replicas.store_through(&replicas.url());
    run(async {
        let store = store.build().await.unwrap();
        let pipeline = pushdown::Pipeline::parse(PIPELINE).unwrap();
        let request = pushdown_client::store::ValueRequest {
            pipeline: &pipeline,
            split: pushdown::wire::Split::Full,
            seed: None,
            epoch: None,
            accept: None,
        };
        let limits = pushdown::Limits::default();
        for lost in 0..3 {
            for number in 0..12 {
                let key = format!("{number:04}.jpg");
                let value = store.get_value(BUCKET, &key, &request, &limits).await;
                assert_eq!(value.unwrap().stage, 3, "{key} without {lost} replicas");
            }
            replicas.kill(lost);
        }
        let value = store.get_value(BUCKET, "0000.jpg", &request, &limits).await;
        assert!(value.is_err(), "no replica is left");
    });
}
