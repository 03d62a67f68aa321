//! Which gateways are replicas: the addresses of a name, which change, and lists of URLs.

use std::time::{Duration, Instant};

use super::*;

#[test]
fn urls_are_replicas_as_addresses_are() {
    const SAMPLES: usize = 192;
    let replicas = Replicas::new(2, many_photos(SAMPLES));
    let urls = format!("http://{},{}", replicas.gateway(0).listen(), replicas.url());
    run(async {
        let reader = replicas.reader(PIPELINE).store(replicas.store_through(&urls));
        let mut reader = reader.build().await.unwrap();
        let rows = into_rows(reader.by_ref().try_collect::<Vec<Batch>>().await.unwrap());
        assert_eq!(pushed(&rows), SAMPLES);
        // The first gateway has both names.
        let reports = reader.monitor().replicas();
        assert_eq!(
            delivered(&reports).iter().sum::<u64>(),
            SAMPLES as u64,
            "{reports:?}"
        );
        assert_eq!(reports.len(), 2, "{reports:?}");
    });
}

/// A name may have addresses of both families, of which this network routes one.
#[test]
fn an_address_that_is_not_routed_is_no_replica() {
    const SAMPLES: usize = 64;
    let replicas = Replicas::new(2, many_photos(SAMPLES));
    let mut text = fs::read_to_string(&replicas.hosts_file).unwrap();
    writeln!(text, "::1 {NAME}").unwrap();
    fs::write(&replicas.hosts_file, text).unwrap();
    run(async {
        let mut reader = replicas.reader(PIPELINE).build().await.unwrap();
        let rows = into_rows(reader.by_ref().try_collect::<Vec<Batch>>().await.unwrap());
        assert_eq!(pushed(&rows), SAMPLES);
        let reports = reader.monitor().replicas();
        let states: Vec<_> = reports.iter().map(|report| report.state).collect();
        assert_eq!(states, ["serving", "serving"], "{reports:?}");
    });
}

/// A name with more addresses than are used leaves the number of replicas bounded.
#[test]
fn a_name_with_too_many_addresses_gives_256_replicas() {
    const SAMPLES: usize = 64;
    let replicas = Replicas::new(2, many_photos(SAMPLES));
    let mut text = fs::read_to_string(&replicas.hosts_file).unwrap();
    for number in 0..300 {
        // Nothing listens there.
        writeln!(text, "127.1.{}.{} {NAME}", number / 100, number % 100 + 1).unwrap();
    }
    fs::write(&replicas.hosts_file, text).unwrap();
    run(async {
        let mut reader = replicas.reader(PIPELINE).build().await.unwrap();
        let rows = into_rows(reader.by_ref().try_collect::<Vec<Batch>>().await.unwrap());
        assert_eq!(pushed(&rows), SAMPLES);
        let reports = reader.monitor().replicas();
        assert_eq!(reports.len(), 256);
        assert_eq!(delivered(&reports)[..2].iter().sum::<u64>(), SAMPLES as u64);
    });
}

/// What states one id is one replica, whatever its addresses are.
#[test]
fn two_addresses_of_one_replica_count_once() {
    const SAMPLES: usize = 64;
    let mut replicas = Replicas::new(2, many_photos(SAMPLES));
    replicas.kill(1);
    replicas.specs[1].id = replicas.specs[0].id.clone();
    replicas.start(1);
    run(async {
        let mut reader = replicas.reader(PIPELINE).build().await.unwrap();
        let rows = into_rows(reader.by_ref().try_collect::<Vec<Batch>>().await.unwrap());
        assert_eq!(pushed(&rows), SAMPLES);
        assert_eq!(reader.monitor().replicas().len(), 1);
    });
}

/// A gateway in place of its store may have several addresses as well: what it forwards goes to any of them.
#[test]
fn an_endpoint_in_place_of_the_store_has_replicas() {
    const SAMPLES: usize = 384;
    let mut replicas = Replicas::new(0, many_photos(SAMPLES));
    let upstream = format!("--upstream=http://{}", replicas.store());
    replicas.flags = vec![upstream];
    replicas.specs = Replica::list(3).unwrap();
    replicas.gateways = vec![None, None, None];
    for number in 0..3 {
        replicas.start(number);
    }
    replicas.name(&[0, 1, 2]);
    let expected = replicas.expected();
    run(async {
        let store = Store::builder()
            .endpoint(replicas.url())
            .region("us-east-1")
            .credentials(Credentials::new(ACCESS_KEY, SECRET_KEY))
            .hosts_file(&replicas.hosts_file);
        let reader = replicas.reader(PIPELINE).store(store).seed(5);
        let mut reader = reader.build().await.unwrap();
        let mut batches: Vec<Batch> = reader.by_ref().take(3).try_collect().await.unwrap();
        replicas.kill(2);
        batches.extend(reader.by_ref().try_collect::<Vec<_>>().await.unwrap());
        let rows = into_rows(batches);
        assert_same_values(&rows, &expected);
        assert_eq!(pushed(&rows), SAMPLES);
        let reports = reader.monitor().replicas();
        assert!(
            delivered(&reports).iter().all(|samples| *samples > 0),
            "{reports:?}"
        );
    });
}

/// Names are looked up again every ten seconds.
#[test]
#[ignore = "half a minute: make test-full"]
fn a_replica_that_is_added_in_mid_epoch_gets_samples() {
    const SAMPLES: usize = 4_800;
    let mut replicas = Replicas::new(2, many_photos(SAMPLES));
    run(async {
        let reader = replicas.reader(PIPELINE).prefetch_bytes(4 << 20);
        let mut reader = reader.build().await.unwrap();
        let mut rows = into_rows(vec![reader.next().await.unwrap().unwrap()]);
        replicas.start(2);
        replicas.name(&[0, 1, 2]);
        let began = Instant::now();
        while let Some(batch) = reader.try_next().await.unwrap() {
            rows.extend(into_rows(vec![batch]));
            if began.elapsed() < Duration::from_secs(12) {
                tokio::time::sleep(Duration::from_millis(60)).await;
            }
        }
        assert_eq!(pushed(&rows), SAMPLES);
        let reports = reader.monitor().replicas();
        assert_eq!(reports.len(), 3, "{reports:?}");
        assert!(reports[2].samples > 100, "{reports:?}");
    });
}

/// A failed connect leads to another look-up at once. An answer without addresses changes nothing.
#[test]
fn a_replica_that_moves_is_found_and_an_empty_answer_keeps_the_list() {
    const SAMPLES: usize = 96;
    let mut replicas = Replicas::new(3, many_photos(SAMPLES));
    replicas.name(&[0, 1]);
    run(async {
        let reader = replicas.reader(PIPELINE).retry(RetryPolicy::default());
        let mut reader = reader.build().await.unwrap();
        let mut epoch = 0;
        let mut read = async |reader: &mut PushdownReader| {
            epoch += 1;
            reader.set_epoch(epoch);
            let rows = into_rows(reader.by_ref().try_collect::<Vec<Batch>>().await.unwrap());
            assert_eq!(pushed(&rows), SAMPLES);
        };
        read(&mut reader).await;
        // It was looked up just now.
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        replicas.kill(1);
        replicas.name(&[0, 2]);
        read(&mut reader).await;
        let began = Instant::now();
        let has_moved = |reader: &PushdownReader| {
            let reports = reader.monitor().replicas();
            reports
                .iter()
                .any(|report| report.id == "replica-2" && report.samples > 0)
        };
        while !has_moved(&reader) {
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "{:?}",
                reader.monitor().replicas()
            );
            read(&mut reader).await;
        }
        replicas.name(&[]);
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        replicas.kill(0);
        read(&mut reader).await;
        // The one that has left is reported as well.
        let reports = reader.monitor().replicas();
        let states: Vec<_> = reports.iter().map(|report| (&*report.id, report.state)).collect();
        assert!(states.contains(&("replica-1", "gone")), "{states:?}");
        assert!(states.contains(&("replica-2", "serving")), "{states:?}");
    });
}
