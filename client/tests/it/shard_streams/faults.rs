//! Answers that break off, shards that are replaced, stores without ranges, and readers that stop.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use futures::StreamExt as _;
use pushdown_client::reader::{OnError, PushdownReaderBuilder, Row, SampleOrder};
use pushdown_testkit::{Exchange, ScriptedOrigin, ranged};
use tokio::time::{sleep, timeout};

use super::{
    super::{
        members_faults::{self, bounds},
        shards::{Shard, ShardWorld, pack},
        world::{photos, run},
    },
    BUFFER, GROUPS, by_shards, indices, read, small_photos,
};

/// A store that answers requests for shards by a script, and a plain reader of their photos in shard order.
fn scripted(
    shards: &[Shard],
    answer: impl Fn(&mut Exchange, &[u8]) -> io::Result<()> + Send + Sync + 'static,
) -> (ScriptedOrigin, PushdownReaderBuilder) {
    let (origin, builder) = members_faults::scripted(shards, answer);
    let builder = builder.order(SampleOrder::Shards { buffer: BUFFER }).seed(11);
    (origin, builder.on_error(OnError::Report))
}

/// Sends half of the requested range, and closes the connection.
fn break_off(exchange: &mut Exchange, shard: &[u8]) -> io::Result<()> {
    let (first, last) = bounds(&exchange.head).unwrap();
    let part = &shard[first..=last];
    exchange.close();
    exchange.send(format!(
        "HTTP/1.1 206 Partial Content\r\nContent-Length: {}\r\nETag: \"e\"\r\nContent-Range: bytes \
         {first}-{last}/{}\r\n\r\n",
        part.len(),
        shard.len()
    ))?;
    exchange.send(&part[..part.len() / 2])
}

/// The codes of rows that failed, with their keys.
fn failed(rows: &[Row]) -> Vec<(&str, &str)> {
    let errors = rows.iter().filter_map(|row| {
        let error = row.value.as_ref().err()?;
        Some((&*row.key, error.code.as_str()))
    });
    errors.collect()
}

#[test]
fn an_answer_that_breaks_off_is_continued() {
    let photos = small_photos();
    let shards = pack(&photos, photos.len());
    let (_origin, builder) = scripted(&shards, |exchange, shard| ranged(exchange, shard, "e"));
    let (expected, _) = read(builder);
    let (origin, builder) = scripted(&shards, |exchange, shard| match exchange.earlier_requests {
        0 => break_off(exchange, shard),
        _ => ranged(exchange, shard, "e"),
    });
    let (rows, stats) = read(builder);
    assert_eq!(failed(&rows), []);
    assert_eq!(indices(&rows), indices(&expected));
    for (row, expected) in rows.iter().zip(&expected) {
        assert!(row.value == expected.value, "the values of {} differ", row.name());
    }
    assert_eq!(stats.samples, photos.len() as u64);
    let requests = origin.requests();
    assert_eq!(requests.len(), 2, "{requests:?}");
    let ranges: Vec<_> = requests.iter().filter_map(|head| bounds(head)).collect();
    assert!(
        ranges[1].0 > ranges[0].0 && ranges[1].1 == ranges[0].1,
        "{ranges:?}"
    );
    let is_conditional = |head: &String| head.to_ascii_lowercase().contains("\r\nif-match: \"e\"\r\n");
    assert!(requests.iter().all(is_conditional), "{requests:?}");
}

/// As a list of ranges has them: each by name, and other shards without.
#[test]
fn the_members_of_a_replaced_shard_are_errors_by_name() {
    let shards = ShardWorld::new(&small_photos(), GROUPS);
    let objects = shards.samples(&[]);
    let mut other = shards.shards[1].bytes.clone();
    let last = other.len() - 1;
    other[last] ^= 1;
    shards.world.put(&shards.shards[1].key, &other);
    let builder = by_shards(&shards.world.endpoint()).objects(objects);
    let (rows, stats) = read(builder.on_error(OnError::Report));
    assert_eq!(failed(&rows), [(&*shards.shards[1].key, "ShardReplaced"); GROUPS]);
    assert_eq!((stats.errors, stats.retries), (GROUPS as u64, 0));
}

/// What has arrived before is delivered.
#[test]
fn a_shard_that_is_replaced_while_it_is_read_fails_from_there_on() {
    let photos = small_photos();
    let shards = pack(&photos, photos.len());
    let (_origin, builder) = scripted(&shards, |exchange, shard| match exchange.earlier_requests {
        0 => break_off(exchange, shard),
        _ => ranged(exchange, shard, "other"),
    });
    let (rows, stats) = read(builder);
    let failed = failed(&rows);
    assert!(!failed.is_empty() && failed.len() < rows.len(), "{failed:?}");
    assert!(
        failed.iter().all(|(_, code)| *code == "ShardReplaced"),
        "{failed:?}"
    );
    assert_eq!(stats.samples + stats.errors, photos.len() as u64);
}

#[test]
fn a_store_without_ranges_sends_each_shard_once() {
    let shards = pack(&small_photos(), GROUPS);
    let (origin, builder) = scripted(&shards, |exchange, shard| {
        exchange.send(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nETag: \"e\"\r\n\r\n",
            shard.len()
        ))?;
        exchange.send(shard)
    });
    let (rows, _) = read(builder);
    assert_eq!(failed(&rows), []);
    assert_eq!(origin.requests().len(), shards.len());
}

/// A consumer that stops does not let the reader read on, and a reader can be closed at any time.
#[test]
fn a_reader_that_stops_reads_no_more_than_its_buffer() {
    let photo = photos().into_values().max_by_key(Vec::len).unwrap();
    let photos = vec![photo; 1200];
    let shards = pack(&photos, photos.len());
    let total = shards[0].bytes.len() as u64;
    let sent = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&sent);
    let (origin, builder) = scripted(&shards, move |exchange, shard| {
        let (first, last) = bounds(&exchange.head).unwrap();
        exchange.send(format!(
            "HTTP/1.1 206 Partial Content\r\nContent-Length: {}\r\nETag: \"e\"\r\nContent-Range: bytes \
             {first}-{last}/{}\r\n\r\n",
            last - first + 1,
            shard.len()
        ))?;
        for piece in shard[first..=last].chunks(64 << 10) {
            exchange.send(piece)?;
            counter.fetch_add(piece.len() as u64, SeqCst);
        }
        Ok(())
    });
    let builder = builder
        .order(SampleOrder::Shards { buffer: 16 })
        .prefetch_bytes(1 << 20)
        .requests(2);
    run(async {
        let mut reader = builder.build().await.unwrap();
        assert_eq!(reader.next().await.unwrap().unwrap().len(), 4);
        let (mut before, mut rounds) = (0, 0);
        // Nothing is sent for a second.
        while rounds < 10 {
            sleep(Duration::from_millis(100)).await;
            let now = sent.load(SeqCst);
            rounds = if now == before { rounds + 1 } else { 0 };
            before = now;
        }
        assert!(before < total / 2, "{before} of {total} bytes");
        assert_eq!(origin.requests().len(), 1);
        let closed = timeout(Duration::from_secs(10), reader.close()).await;
        assert!(closed.is_ok(), "a stream that pauses holds nobody up");
    });
}
