//! Replicas of other versions, as during a rolling update.

use super::*;

/// A version of the family of `resize` that no reader has.
const OTHER: &str = "resample=99";

#[test]
fn a_replica_that_computes_other_values_gets_no_samples() {
    const SAMPLES: usize = 384;
    let mut replicas = Replicas::new(3, many_photos(SAMPLES));
    replicas.kill(1);
    OTHER.clone_into(&mut replicas.specs[1].stated_versions);
    replicas.start(1);
    let expected = replicas.expected();
    for mode in [Mode::Pushdown, Mode::Auto] {
        run(async {
            let reader = replicas.reader(PIPELINE).mode(mode).max_expand(100.0).seed(5);
            let mut reader = reader.build().await.unwrap();
            let rows = into_rows(reader.by_ref().try_collect().await.unwrap());
            assert_same_values(&rows, &expected);
            assert_eq!((reader.mode(), reader.stats().retries), (mode, 0));
            let delivered = delivered(&reader.monitor().replicas());
            assert_eq!(delivered[1], 0, "{delivered:?}");
            assert!(delivered[0] > 0 && delivered[2] > 0, "{delivered:?}");
            if mode == Mode::Pushdown {
                assert_eq!(pushed(&rows), SAMPLES);
            }
        });
    }
}

/// A reader whose version none of them has runs the steps itself.
#[test]
fn if_all_replicas_compute_other_values_this_host_computes() {
    const SAMPLES: usize = 96;
    let mut replicas = Replicas::new(2, many_photos(SAMPLES));
    for number in 0..2 {
        replicas.kill(number);
        OTHER.clone_into(&mut replicas.specs[number].stated_versions);
        replicas.start(number);
    }
    let expected = replicas.expected();
    run(async {
        let mut reader = replicas.reader(PIPELINE).seed(5).build().await.unwrap();
        let rows = into_rows(reader.by_ref().try_collect().await.unwrap());
        assert_same_values(&rows, &expected);
        // The gateways still decode.
        assert!(rows.iter().all(|row| row.stage <= 1), "{:?}", rows[0]);
    });
}

/// Each of three gateways is replaced in an epoch, and the first one by another version for a while.
fn roll(batches_between: usize) {
    const SAMPLES: usize = 480;
    let mut replicas = Replicas::new(3, many_photos(SAMPLES));
    let expected = replicas.expected();
    run(async {
        let reader = replicas.reader(PIPELINE).seed(5).retry(RetryPolicy::default());
        let mut reader = reader.build().await.unwrap();
        let mut batches: Vec<Batch> = Vec::new();
        for (number, versions) in [(0, OTHER), (1, ""), (2, ""), (0, "")] {
            batches.extend(
                reader
                    .by_ref()
                    .take(batches_between)
                    .try_collect::<Vec<_>>()
                    .await
                    .unwrap(),
            );
            replicas.gateway(number).terminate().unwrap();
            batches.extend(reader.by_ref().take(1).try_collect::<Vec<_>>().await.unwrap());
            replicas.kill(number);
            versions.clone_into(&mut replicas.specs[number].stated_versions);
            replicas.start(number);
        }
        batches.extend(reader.by_ref().try_collect::<Vec<_>>().await.unwrap());
        let rows = into_rows(batches);
        assert_same_values(&rows, &expected);
        assert_eq!(reader.stats().errors, 0);
    });
}

#[test]
fn a_rolling_update_loses_and_repeats_no_sample() {
    roll(1);
}

#[test]
#[ignore = "a minute: make test-full"]
fn rolling_updates_at_other_moments_lose_and_repeat_no_sample() {
    (0..4).for_each(roll);
}
