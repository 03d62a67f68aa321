//! Replicas that move, come and go, or are no replicas at all.

use std::{
    net::TcpListener,
    time::{Duration, Instant},
};

use pushdown_testkit::ScriptedOrigin;

use super::*;

/// Reads epochs until `is_done`, at most this long.
async fn read_until(
    reader: &mut PushdownReader,
    limit: Duration,
    is_done: impl Fn(&PushdownReader, &[Row]) -> bool,
) {
    let began = Instant::now();
    for epoch in 1.. {
        reader.set_epoch(epoch);
        let rows = into_rows(reader.by_ref().try_collect::<Vec<Batch>>().await.unwrap());
        if is_done(reader, &rows) {
            return;
        }
        let replicas = reader.monitor().replicas();
        assert!(began.elapsed() < limit, "{replicas:?}");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// Its readers have no other gateway meanwhile.
#[test]
#[ignore = "waits for a look-up every 10 s"]
fn a_gateway_that_moves_to_another_address_is_found() {
    for mode in [Mode::Auto, Mode::Pushdown] {
        let mut replicas = Replicas::new(2, many_photos(64));
        replicas.name(&[0]);
        replicas.kill(1);
        run(async {
            let reader = replicas.reader(PIPELINE).mode(mode).retry(RetryPolicy::default());
            let mut reader = reader.prefetch_bytes(0).build().await.unwrap();
            let _first: Batch = reader.next().await.unwrap().unwrap();
            replicas.kill(0);
            if mode == Mode::Auto {
                let rest: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
                assert_eq!(pushed(&into_rows(rest)), 0);
            }
            replicas.start(1);
            replicas.name(&[1]);
            read_until(&mut reader, Duration::from_secs(45), |_, rows| pushed(rows) > 0).await;
        });
    }
}

/// A batch that was requested from it is requested from the one that is left.
#[test]
fn a_replica_that_leaves_the_list_is_given_up() {
    const SAMPLES: usize = 128;
    let mut replicas = Replicas::new(2, many_photos(SAMPLES));
    run(async {
        let reader = replicas.reader(PIPELINE).retry(RetryPolicy::default());
        let mut reader = reader.build().await.unwrap();
        let first: Batch = reader.next().await.unwrap().unwrap();
        let mut rows = into_rows(vec![first]);
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        replicas.name(&[0]);
        replicas.kill(1);
        rows.extend(into_rows(reader.by_ref().try_collect().await.unwrap()));
        assert_eq!(pushed(&rows), SAMPLES);
    });
}

/// The one that is left may not be asked, and the other one does not answer: nothing is requested again and again.
#[test]
fn a_replica_of_another_version_is_not_asked_again_while_the_other_is_gone() {
    const SAMPLES: usize = 64;
    let mut replicas = Replicas::new(2, many_photos(SAMPLES));
    replicas.kill(0);
    "resample=99".clone_into(&mut replicas.specs[0].stated_versions);
    replicas.start(0);
    replicas.kill(1);
    run(async {
        let mut reader = replicas
            .reader(PIPELINE)
            .mode(Mode::Auto)
            .max_expand(100.0)
            .build()
            .await
            .unwrap();
        let rows = into_rows(reader.by_ref().try_collect::<Vec<Batch>>().await.unwrap());
        assert_eq!((rows.len(), pushed(&rows)), (SAMPLES, 0));
        let retry = RetryPolicy {
            attempts: 3,
            base: Duration::from_millis(100),
            cap: Duration::from_millis(100),
        };
        let mut reader = replicas.reader(PIPELINE).retry(retry).build().await.unwrap();
        let error = reader.by_ref().try_collect::<Vec<Batch>>().await.unwrap_err();
        assert!(
            error.to_string().contains("computes the values of this host"),
            "{error}"
        );
    });
    let batches = replicas
        .gateway(0)
        .metric("pushdown_requests_total{kind=\"batch\",status=\"2xx\"}")
        .unwrap();
    assert!(
        batches < 20.0,
        "{batches} batches at a replica of another version"
    );
}

/// With one address nothing asks it, so its id is not known before.
#[test]
#[ignore = "waits for a look-up every 10 s"]
fn the_first_of_several_replicas_has_its_id_as_well() {
    let replicas = Replicas::new(2, many_photos(64));
    replicas.name(&[0]);
    run(async {
        let mut reader = replicas.reader(PIPELINE).build().await.unwrap();
        reader.next().await.unwrap().unwrap();
        replicas.name(&[0, 1]);
        read_until(&mut reader, Duration::from_secs(30), |reader, _| {
            reader.monitor().replicas().len() == 2
        })
        .await;
        let reports = reader.monitor().replicas();
        let ids: Vec<&str> = reports.iter().map(|report| &*report.id).collect();
        assert_eq!(ids, ["replica-0", "replica-1"]);
        assert!(reports.iter().all(|report| report.cores.is_some()), "{reports:?}");
    });
}

/// An address that answers, and is no gateway.
#[test]
fn an_address_of_another_service_gets_nothing() {
    const SAMPLES: usize = 96;
    let replicas = Replicas::new(2, many_photos(SAMPLES));
    let foreign = replicas.specs[2].listen;
    let server = ScriptedOrigin::start_at(foreign, |exchange| {
        let is_head = exchange.head.starts_with("HEAD ");
        exchange.answer("200 OK", if is_head { "" } else { "welcome" })
    })
    .unwrap();
    replicas.name(&[0, 1, 2]);
    run(async {
        let mut reader = replicas.reader(PIPELINE).build().await.unwrap();
        let rows = into_rows(reader.by_ref().try_collect::<Vec<Batch>>().await.unwrap());
        assert_eq!(pushed(&rows), SAMPLES);
    });
    let heads = server.requests();
    assert!(
        heads
            .iter()
            .all(|head| head.starts_with("HEAD /_pushdown/v1/version ")),
        "{heads:?}"
    );
}

/// A reader begins although half of the replicas are cut off.
#[test]
fn addresses_that_do_not_answer_are_asked_at_the_same_time() {
    let replicas = Replicas::new(1, many_photos(32));
    let port = replicas.specs[0].listen.port();
    let mut text = fs::read_to_string(&replicas.hosts_file).unwrap();
    // Nothing accepts these connections.
    let silent: Vec<TcpListener> = (100..116)
        .filter_map(|end| TcpListener::bind((format!("127.0.0.{end}"), port)).ok())
        .collect();
    for listener in &silent {
        writeln!(text, "{} {NAME}", listener.local_addr().unwrap().ip()).unwrap();
    }
    fs::write(&replicas.hosts_file, text).unwrap();
    run(async {
        let began = Instant::now();
        let mut reader = replicas.reader(PIPELINE).build().await.unwrap();
        let rows = into_rows(reader.by_ref().try_collect::<Vec<Batch>>().await.unwrap());
        assert_eq!(pushed(&rows), 32);
        // A second for the question, and one for the probe; the machine may be busy.
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "{:?} with {} silent addresses",
            began.elapsed(),
            silent.len()
        );
    });
}

/// A replica that answers probes, and fails all batches.
#[test]
fn a_replica_that_fails_batches_is_passed_over() {
    const SAMPLES: usize = 96;
    let replicas = Replicas::new(2, many_photos(SAMPLES));
    let broken = replicas.specs[2].listen;
    let _server = ScriptedOrigin::start_at(broken, |exchange| {
        let is_probe = exchange.head.starts_with("HEAD ");
        let status = if is_probe {
            "200 OK"
        } else {
            "503 Service Unavailable"
        };
        let length = exchange.head.to_lowercase();
        let length = length
            .lines()
            .find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        exchange.skip(length.unwrap_or(0))?;
        exchange.send(format!(
            "HTTP/1.1 {status}\r\nContent-Length: 0\r\nx-pushdown-features: families, members, stores\r\n\
             x-pushdown-replica: replica-2\r\nx-pushdown-cores: 2\r\n\r\n"
        ))
    })
    .unwrap();
    replicas.name(&[0, 1, 2]);
    run(async {
        let mut reader = replicas.reader(PIPELINE).build().await.unwrap();
        let rows = into_rows(reader.by_ref().try_collect::<Vec<Batch>>().await.unwrap());
        assert_eq!((pushed(&rows), reader.stats().retries), (SAMPLES, 0));
    });
}
