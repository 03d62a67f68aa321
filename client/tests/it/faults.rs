//! Law 4 under faults: each sample is delivered once.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _};
use pushdown_client::{
    ErrorKind,
    reader::{Batch, Mode, Split},
    store::{RetryPolicy, Timeouts},
};
use pushdown_testkit::{RelayAction, ScriptedOrigin, eventually, faulty_relay};

use super::world::{World, assert_same_rows, into_rows, keys, read_rows, reader, run};

const PIPELINE: &str = "decode | resize(short=40) | center_crop(32) | to_float";

#[test]
fn a_gateway_restart_loses_and_repeats_no_sample() {
    for mode in [Mode::Pushdown, Mode::Plain] {
        let world = World::with_photos(24);
        let expected = read_rows(world.reader(PIPELINE).seed(2).mode(mode));
        let keys: Vec<String> = world.objects.keys().cloned().collect();
        run(async {
            // Prefetch is minimal, so that the gateway is killed before all samples are fetched.
            let builder = world
                .reader(PIPELINE)
                .keys(keys)
                .seed(2)
                .mode(mode)
                .batch_size(2)
                .requests(1)
                .prefetch_bytes(0);
            let mut reader = builder.build().await.unwrap();
            let mut batches = vec![reader.next().await.unwrap().unwrap()];
            let restarted = std::thread::spawn(move || world.restart(Duration::from_millis(300)));
            batches.extend(reader.by_ref().try_collect::<Vec<_>>().await.unwrap());
            assert_same_rows(&into_rows(batches), &expected);
            assert!(reader.stats().retries > 0, "{:?}", reader.stats());
            drop(restarted.join().unwrap());
        });
    }
}

#[test]
fn overload_is_retried_after_the_requested_delay() {
    let world = World::with_photos(8);
    let expected = read_rows(world.reader(PIPELINE));
    let relay = faulty_relay(world.gateway.listen(), |earlier| {
        if earlier < 2 {
            RelayAction::SlowDown
        } else {
            RelayAction::Forward
        }
    })
    .unwrap();
    let start = Instant::now();
    run(async {
        let builder = reader(&format!("http://{}", relay.address()), PIPELINE).requests(1);
        let mut reader = builder.build().await.unwrap();
        let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        assert_same_rows(&into_rows(batches), &expected);
        assert_eq!(reader.stats().retries, 2);
    });
    assert!(
        start.elapsed() >= Duration::from_secs(2),
        "Retry-After: 1, twice: {:?}",
        start.elapsed()
    );
}

#[test]
fn only_the_missing_rows_of_a_truncated_answer_are_requested_again() {
    let world = World::with_photos(20);
    let expected = read_rows(world.reader(PIPELINE).split(Split::Full));
    let relay = faulty_relay(world.gateway.listen(), |earlier| match earlier {
        0 => RelayAction::Truncate(60),
        1 => RelayAction::Truncate(0),
        2 => RelayAction::Truncate(99),
        _ => RelayAction::Forward,
    })
    .unwrap();
    run(async {
        let builder = reader(&format!("http://{}", relay.address()), PIPELINE)
            .batch_size(20)
            .split(Split::Full);
        let mut reader = builder.build().await.unwrap();
        let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        assert_same_rows(&into_rows(batches), &expected);
    });
    let lengths: Vec<usize> = relay
        .requests()
        .iter()
        .filter(|head| head.starts_with("POST"))
        .map(|head| {
            let line = head
                .lines()
                .find(|line| line.to_ascii_lowercase().starts_with("content-length"))
                .unwrap();
            line.split_once(": ").unwrap().1.trim().parse().unwrap()
        })
        .collect();
    assert!(lengths.len() >= 3, "{lengths:?}");
    assert!(
        lengths[1] <= lengths[0] && lengths.last().unwrap() < &lengths[0],
        "expected shrinking requests: {lengths:?}"
    );
}

#[test]
fn a_gateway_with_another_engine_is_read_plainly() {
    let world = World::with_photos(6);
    let expected = read_rows(world.reader(PIPELINE));
    let relay = faulty_relay(world.gateway.listen(), |_| RelayAction::OtherEngine).unwrap();
    run(async {
        let mut reader = reader(&format!("http://{}", relay.address()), PIPELINE)
            .requests(1)
            .build()
            .await
            .unwrap();
        let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        let rows = into_rows(batches);
        assert_eq!(keys(&rows), keys(&expected));
        assert!(
            rows.iter()
                .zip(&expected)
                .all(|(row, expected)| row.value == expected.value && row.stage == 0)
        );
        assert_eq!(reader.mode(), Mode::Plain);
    });
    assert_eq!(
        relay
            .requests()
            .iter()
            .filter(|head| head.starts_with("POST"))
            .count(),
        1,
        "expected one batch request"
    );
}

#[test]
fn a_silent_gateway_is_a_timeout() {
    let silent = ScriptedOrigin::start(|exchange| exchange.wait_for_close().map(drop)).unwrap();
    let timeouts = Timeouts {
        first_byte: Duration::from_millis(200),
        ..Timeouts::default()
    };
    let retry = RetryPolicy {
        attempts: 3,
        base: Duration::from_millis(1),
        cap: Duration::from_millis(1),
    };
    run(async {
        let builder = reader(&format!("http://{}", silent.address()), PIPELINE)
            .keys(["a"])
            .timeouts(timeouts)
            .retry(retry);
        let mut reader = builder.build().await.unwrap();
        let error = reader.next().await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
        assert_eq!(reader.stats().retries, 2);
        assert!(
            reader.next().await.is_none(),
            "the stream ends with its first error"
        );
    });
    // On a busy machine a request may time out before the store has read it.
    assert!(silent.requests().len() <= 3);
}

#[test]
fn dropping_the_reader_cancels_requests_in_flight() {
    let silent = ScriptedOrigin::start(|exchange| exchange.wait_for_close().map(drop)).unwrap();
    run(async {
        let mut reader = reader(&format!("http://{}", silent.address()), PIPELINE)
            .keys(["a"])
            .build()
            .await
            .unwrap();
        while silent.requests().is_empty() {
            let waiting = tokio::time::timeout(Duration::from_millis(50), reader.next());
            assert!(waiting.await.is_err(), "a silent store delivers nothing");
        }
        drop(reader);
        // Wait long enough for a retry to show up.
        tokio::time::sleep(Duration::from_millis(300)).await;
    });
    eventually("one request and no retry", Duration::from_secs(1), || {
        Ok((silent.requests().len() == 1).then_some(()))
    })
    .unwrap();
}
