//! Law 4 under fire: each sample once, whatever breaks.

use std::time::{Duration, Instant};

use futures::{StreamExt as _, TryStreamExt as _};
use pushdown_client::{Batch, ErrorKind, Mode, RetryPolicy, Split, Timeouts};
use pushdown_testkit::{ScriptedOrigin, eventually};

use super::{
    relay::{Deed, relay},
    world::{World, assert_same, flat, keys, reader, rows, run},
};

const PIPELINE: &str = "decode | resize(short=40) | center_crop(32) | to_float";

#[test]
fn a_gateway_that_is_killed_and_restarted_loses_and_repeats_nothing() {
    for mode in [Mode::Pushdown, Mode::Plain] {
        let world = World::with_photos(24);
        let expected = rows(world.reader(PIPELINE).seed(2).mode(mode));
        let keys: Vec<String> = world.objects.keys().cloned().collect();
        run(async {
            // Little is fetched ahead, so that the end comes while there is still something to do.
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
            assert_same(&flat(batches), &expected);
            assert!(reader.stats().retries > 0, "{:?}", reader.stats());
            drop(restarted.join().unwrap());
        });
    }
}

#[test]
fn overload_is_waited_out_as_long_as_it_is_asked_for() {
    let world = World::with_photos(8);
    let expected = rows(world.reader(PIPELINE));
    let relay = relay(world.gateway.listen(), |earlier| {
        if earlier < 2 { Deed::SlowDown } else { Deed::Pass }
    });
    let start = Instant::now();
    run(async {
        let builder = reader(&format!("http://{}", relay.address()), PIPELINE).requests(1);
        let mut reader = builder.build().await.unwrap();
        let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        assert_same(&flat(batches), &expected);
        assert_eq!(reader.stats().retries, 2);
    });
    assert!(
        start.elapsed() >= Duration::from_secs(2),
        "Retry-After: 1, twice: {:?}",
        start.elapsed()
    );
}

#[test]
fn only_what_is_missing_of_a_cut_answer_is_asked_for_again() {
    let world = World::with_photos(20);
    let expected = rows(world.reader(PIPELINE).split(Split::Full));
    let relay = relay(world.gateway.listen(), |earlier| match earlier {
        0 => Deed::Cut(60),
        1 => Deed::Cut(0),
        2 => Deed::Cut(99),
        _ => Deed::Pass,
    });
    run(async {
        let builder = reader(&format!("http://{}", relay.address()), PIPELINE)
            .batch_size(20)
            .split(Split::Full);
        let mut reader = builder.build().await.unwrap();
        let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        assert_same(&flat(batches), &expected);
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
        "ever less is asked for: {lengths:?}"
    );
}

#[test]
fn another_engine_is_read_plainly() {
    let world = World::with_photos(6);
    let expected = rows(world.reader(PIPELINE));
    let relay = relay(world.gateway.listen(), |_| Deed::OtherEngine);
    run(async {
        let mut reader = reader(&format!("http://{}", relay.address()), PIPELINE)
            .requests(1)
            .build()
            .await
            .unwrap();
        let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        let rows = flat(batches);
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
        "it is tried once"
    );
}

#[test]
fn silence_is_a_timeout() {
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
    // A busy machine may not even have seen each of them in that time.
    assert!(silent.requests().len() <= 3);
}

#[test]
fn dropping_the_reader_ends_what_is_under_way() {
    let silent = ScriptedOrigin::start(|exchange| exchange.wait_for_close().map(drop)).unwrap();
    run(async {
        let mut reader = reader(&format!("http://{}", silent.address()), PIPELINE)
            .keys(["a"])
            .build()
            .await
            .unwrap();
        while silent.requests().is_empty() {
            let waiting = tokio::time::timeout(Duration::from_millis(50), reader.next());
            assert!(waiting.await.is_err(), "nothing can have arrived");
        }
        drop(reader);
        // A new reader's request would come on a connection of its own.
        tokio::time::sleep(Duration::from_millis(300)).await;
    });
    eventually("one request and no retry", Duration::from_secs(1), || {
        Ok((silent.requests().len() == 1).then_some(()))
    })
    .unwrap();
}
