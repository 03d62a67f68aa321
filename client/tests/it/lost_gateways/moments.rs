//! A gateway that is lost at random moments of a long epoch: how long its reader stands still, and how long the rest takes.

use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

use super::*;

/// Samples of an epoch.
const SAMPLES: usize = 480;
/// Moments for each kind of loss.
const MOMENTS: usize = 10;
/// Values of 12 KB, of photos of about 100 KB.
const PIPELINE: &str = "decode | resize(64, 64)";

/// A link of 100 Mbit/s of the reader, to the store and to a gateway near it.
struct ThinLink {
    lab: Lab,
    /// The gateway's address for the reader.
    gateway: SocketAddr,
}

/// What a reader did after the loss of its gateway.
#[derive(Debug)]
struct Rest {
    samples: usize,
    time: Duration,
    /// The longest time without a row.
    longest_gap: Duration,
}

impl ThinLink {
    fn new(world: World) -> Self {
        let (recorder, _) = recording_relay(world.gateway.store().unwrap()).unwrap();
        let (link, store) = Throttle::start_for_this_process(recorder.address()).unwrap();
        link.set_rate(LINK);
        let gateway = launch(store, "127.0.0.1:0");
        let address = link.also_to(gateway.listen()).unwrap();
        let lab = Lab {
            gateway: Some(gateway),
            store,
            link,
            recorder,
            world,
        };
        Self {
            lab,
            gateway: address,
        }
    }

    /// Reads an epoch, and loses the gateway once the first rows have been there for `moment`.
    async fn lose(&mut self, loss: Loss, moment: Duration, expected: &[Row]) -> Rest {
        let reader = self.lab.reader_through(self.gateway, PIPELINE).seed(5);
        let mut reader = reader.build().await.unwrap();
        let mut batches = vec![reader.next().await.unwrap().unwrap()];
        let began = Instant::now();
        while began.elapsed() < moment {
            batches.push(
                reader
                    .next()
                    .await
                    .unwrap()
                    .expect("the epoch ends before the moment"),
            );
        }
        self.lab.lose(loss);
        let (lost, before) = (
            Instant::now(),
            batches.iter().map(|batch| batch.rows().len()).sum::<usize>(),
        );
        let (mut last, mut longest_gap) = (lost, Duration::ZERO);
        while let Some(batch) = reader.try_next().await.unwrap() {
            batches.push(batch);
            longest_gap = longest_gap.max(last.elapsed());
            last = Instant::now();
        }
        let time = lost.elapsed();
        let rows = into_rows(batches);
        assert_same_values(&rows, expected);
        Rest {
            samples: rows.len() - before,
            time,
            longest_gap,
        }
    }
}

/// What is left after the loss takes as long as reading as many samples plainly, and the wait for a gateway that hangs.
#[test]
#[ignore = "five minutes: make test-full"]
fn a_reader_stands_still_for_seconds_and_goes_on_as_a_plain_one() {
    let photos = large_photos(SAMPLES);
    let mut random = StdRng::seed_from_u64(7);
    let plain = ThinLink::new(World::with_objects(photos.clone()));
    let began = Instant::now();
    let expected = read_rows(plain.lab.reader(PIPELINE).mode(Mode::Plain).seed(5));
    let plain_time = began.elapsed();
    for (loss, longest) in [(Loss::Killed, 5), (Loss::Frozen, 6)] {
        let mut ratios = Vec::new();
        for _ in 0..MOMENTS {
            let moment = Duration::from_millis(random.random_range(0..1_000));
            let mut link = ThinLink::new(World::with_objects(photos.clone()));
            let rest = run(link.lose(loss, moment, &expected));
            let as_plain = plain_time.mul_f64(float(rest.samples) / float(SAMPLES));
            let ratio = rest.time.as_secs_f64() / as_plain.as_secs_f64();
            println!("{loss:?} after {moment:?}: {rest:?}, {ratio:.2} of plain reading ({as_plain:.2?})");
            // What it costs to notice that a gateway hangs does not depend on what is left.
            assert!(
                rest.time < as_plain.mul_f64(1.1) + Duration::from_secs(longest),
                "{loss:?} after {moment:?}: {rest:?}"
            );
            assert!(
                rest.longest_gap < Duration::from_secs(longest),
                "{loss:?} after {moment:?}: {rest:?}"
            );
            ratios.push(ratio);
        }
        ratios.sort_by(f64::total_cmp);
        let median = ratios[MOMENTS / 2];
        println!("{loss:?}: median {median:.2} of plain reading");
        assert!(loss == Loss::Frozen || median < 1.1, "{loss:?}: {ratios:?}");
    }
}

fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap())
}
