//! A replica that is lost at random moments of a long epoch: how long the rest takes.

use std::time::{Duration, Instant};

use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use super::{losses::Loss, *};

/// Moments for each kind of loss.
const MOMENTS: usize = 10;
const SAMPLES: usize = 1_600;
/// The gateways are the slowest tier: each has one thread for steps that take longer than those of the reader.
const PIPELINE: &str = "decode | resize(600, 600) | resize(32, 32) | to_tensor";

/// Reads an epoch, and loses one of three replicas after `moment`. Returns how long the epoch took.
fn epoch_with(loss: Option<(Loss, Duration)>, expected: &[Row]) -> Duration {
    let mut replicas = Replicas::with_flags(3, many_photos(SAMPLES), &["--threads=1"]);
    run(async {
        let reader = replicas.reader(PIPELINE).seed(5);
        let mut reader = reader.build().await.unwrap();
        let mut batches = vec![reader.next().await.unwrap().unwrap()];
        let began = Instant::now();
        let mut loss = loss;
        while let Some(batch) = reader.try_next().await.unwrap() {
            batches.push(batch);
            if let Some((lost, _)) = loss.take_if(|(_, moment)| began.elapsed() >= *moment) {
                replicas.lose(1, lost);
            }
        }
        assert_same_values(&into_rows(batches), expected);
        began.elapsed()
    })
}

#[test]
#[ignore = "ten minutes: make test-full"]
fn an_epoch_without_one_of_three_replicas_takes_little_longer() {
    let replicas = Replicas::new(0, many_photos(SAMPLES));
    let reader = replicas.world.reader(PIPELINE).mode(Mode::Plain).seed(5);
    let expected = read_rows(reader.batch_size(32));
    let whole = epoch_with(None, &expected);
    let mut random = StdRng::seed_from_u64(7);
    for loss in [Loss::Killed, Loss::Frozen] {
        for _ in 0..MOMENTS {
            let moment = whole.mul_f64(random.random_range(0.0..0.9));
            let time = epoch_with(Some((loss, moment)), &expected);
            println!("{loss:?} after {moment:.1?} of {whole:.1?}: {time:.1?}");
            assert!(
                time < whole.mul_f64(1.65) + Duration::from_secs(6),
                "{loss:?} after {moment:?}: {time:?} instead of {whole:?}"
            );
        }
    }
}

/// The pauses between probes have grown to 30 seconds then.
#[test]
#[ignore = "two minutes: make test-full"]
fn one_of_three_that_is_back_after_a_minute_computes_again() {
    let mut replicas = Replicas::new(3, many_photos(192));
    run(async {
        let reader = replicas.reader(super::PIPELINE).mode(Mode::Auto).seed(5);
        let mut reader = reader.build().await.unwrap();
        let _first: Batch = reader.next().await.unwrap().unwrap();
        for number in 0..3 {
            replicas.kill(number);
        }
        let rest: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        assert_eq!(into_rows(rest).len(), 160);
        tokio::time::sleep(Duration::from_mins(1)).await;
        replicas.start(2);
        let began = Instant::now();
        for epoch in 1.. {
            reader.set_epoch(epoch);
            let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
            let rows = into_rows(batches);
            assert_eq!(rows.len(), 192);
            if pushed(&rows) > 0 {
                break;
            }
            assert!(
                began.elapsed() < Duration::from_secs(45),
                "nothing is pushed down again"
            );
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    });
}
