//! Stores that fail, shards that are truncated or replaced, and the bound on memory.

use std::{
    collections::BTreeMap,
    io,
    net::TcpStream,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use futures::StreamExt as _;
use pushdown::shard::{Compression, TarWriter};
use pushdown_client::{
    ErrorKind,
    reader::{OnError, PushdownReaderBuilder, Row, SampleOrder},
    store::RetryPolicy,
};
use pushdown_testkit::{Exchange, ScriptedOrigin, eventually, ranged};

use super::{
    super::{
        shards::{Shard, pack},
        world::{BUCKET, photos, reader},
    },
    COMPRESSIONS, PIPELINE, assert_same, by_shards, compressed, read, run, shards, world,
};

/// A store that answers requests for shards by a script, and a reader of them.
fn scripted(
    shards: &[Shard],
    compression: Compression,
    answer: impl Fn(&mut Exchange, &str, &[u8]) -> io::Result<()> + Send + Sync + 'static,
) -> (ScriptedOrigin, PushdownReaderBuilder) {
    let bodies = shards.iter().map(|shard| compressed(shard, compression));
    let bodies: BTreeMap<String, Vec<u8>> = bodies.collect();
    let keys: Vec<String> = bodies.keys().cloned().collect();
    let origin = ScriptedOrigin::start(move |exchange| {
        let path = exchange.head.split(' ').nth(1).unwrap_or_default();
        let (path, _) = path.split_once('?').unwrap_or((path, ""));
        let key = path.trim_start_matches(&format!("/{BUCKET}/")).to_owned();
        answer(exchange, &key, &bodies[&key])
    })
    .unwrap();
    let builder = reader(&format!("http://{}", origin.address()), PIPELINE).keys(keys);
    (origin, by_shards(builder).requests(1))
}

/// Sends the head of the whole object.
fn send_head(exchange: &mut Exchange, length: usize, etag: &str) -> io::Result<()> {
    exchange.send(format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nETag: \"{etag}\"\r\n\r\n"
    ))
}

/// Sends a part of the object, and closes the connection.
fn break_off(exchange: &mut Exchange, object: &[u8], length: usize, etag: &str) -> io::Result<()> {
    exchange.close();
    send_head(exchange, object.len(), etag)?;
    exchange.send(&object[..length])
}

fn headers(head: &str) -> BTreeMap<String, &str> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .collect()
}

/// The codes of rows that failed.
fn codes(rows: &[Row]) -> Vec<&str> {
    let errors = rows.iter().filter_map(|row| row.value.as_ref().err());
    errors.map(|error| error.code.as_str()).collect()
}

#[test]
fn an_answer_that_breaks_off_is_continued() {
    let shards = shards();
    for compression in COMPRESSIONS {
        let expected = read(by_shards(world(&shards, compression).reader(PIPELINE))).0;
        // Every other request breaks off in the middle of what it would send.
        let (origin, builder) = scripted(&shards, compression, |exchange, _, object| {
            if !exchange.earlier_requests.is_multiple_of(2) {
                return ranged(exchange, object, "e");
            }
            break_off(exchange, object, object.len() / 2, "e")
        });
        let (rows, stats) = read(builder);
        assert_same(&rows, &expected);
        assert_eq!(stats.retries, shards.len() as u64);
        let requests = origin.requests();
        assert_eq!(requests.len(), 2 * shards.len());
        for pair in requests.chunks(2) {
            assert!(!headers(&pair[0]).contains_key("range"));
            let again = headers(&pair[1]);
            assert_eq!(again["if-match"], "\"e\"");
            assert!(
                again["range"].starts_with("bytes=") && again["range"].ends_with('-'),
                "{again:?}"
            );
        }
    }
}

#[test]
fn a_store_without_ranges_is_read_again_from_the_start() {
    let shards = shards();
    let expected = read(by_shards(world(&shards, Compression::Zstd).reader(PIPELINE))).0;
    let (_origin, builder) = scripted(&shards, Compression::Zstd, |exchange, _, object| {
        if !exchange.earlier_requests.is_multiple_of(3) {
            send_head(exchange, object.len(), "e")?;
            return exchange.send(object);
        }
        break_off(exchange, object, object.len() / 2, "e")
    });
    let (rows, stats) = read(builder);
    assert_same(&rows, &expected);
    assert!(stats.retries > 0);
}

#[test]
fn overload_is_retried() {
    let shards = &shards()[..2];
    let (_origin, builder) = scripted(shards, Compression::None, |exchange, _, object| {
        if exchange.earlier_requests == 0 {
            return exchange.answer("503 Slow Down", "<Error><Code>SlowDown</Code></Error>");
        }
        ranged(exchange, object, "e")
    });
    let (rows, stats) = read(builder);
    assert_eq!((rows.len(), stats.errors, stats.retries), (10, 0, 1));
}

/// Its samples before are delivered.
#[test]
fn a_shard_that_is_replaced_while_it_is_read_ends_with_an_error() {
    let shards = &shards()[..1];
    let (_origin, builder) = scripted(shards, Compression::None, |exchange, _, object| {
        if exchange.earlier_requests > 0 {
            return ranged(exchange, object, "other");
        }
        break_off(exchange, object, object.len() - 1500, "e")
    });
    let (rows, _) = read(builder.on_error(OnError::Report));
    assert_eq!(codes(&rows), ["ShardReplaced"]);
    assert_eq!(rows.len(), 5, "four samples, and a row for the last one");
}

#[test]
fn a_missing_or_truncated_shard_is_one_row() {
    let shards = &shards()[..3];
    let script = |exchange: &mut Exchange, key: &str, object: &[u8]| {
        if key.starts_with("train-000000") {
            return exchange.answer("404 Not Found", "<Error><Code>NoSuchKey</Code></Error>");
        }
        let object = if key.starts_with("train-000002") {
            &object[..object.len() - 1100]
        } else {
            object
        };
        ranged(exchange, object, "e")
    };
    for compression in COMPRESSIONS {
        let (origin, builder) = scripted(shards, compression, script);
        let (rows, stats) = read(builder.clone().on_error(OnError::Report));
        let mut failed = codes(&rows);
        failed.sort_unstable();
        assert_eq!(failed, ["InvalidShard", "NoSuchKey"], "{compression:?}");
        assert_eq!((stats.errors, stats.retries), (2, 0));
        let members = |number: &str| {
            let of_shard = rows.iter().filter(|row| row.key.starts_with(number));
            of_shard.filter(|row| row.member.is_some()).count()
        };
        assert_eq!((members("train-000000"), members("train-000001")), (0, 5));
        let found = members("train-000002");
        // Of a zstd block that is not complete, nothing can be read.
        let least = usize::from(compression != Compression::Zstd);
        assert!((least..5).contains(&found), "{compression:?}: {found}");
        assert_eq!(origin.requests().len(), 3);
        run(async {
            let mut reader = builder.build_shards().await.unwrap();
            let error = loop {
                match reader.next().await.unwrap() {
                    Ok(_) => {}
                    Err(error) => break error,
                }
            };
            assert_eq!(error.kind(), ErrorKind::Sample);
            let text = error.to_string();
            assert!(text.starts_with(&format!("s3://{BUCKET}/train-00000")), "{text}");
        });
    }
}

/// The error ends the stream, and the state is that of the last batch.
#[test]
fn after_an_outage_the_rest_is_read() {
    let shards = shards();
    let expected = read(by_shards(world(&shards, Compression::None).reader(PIPELINE))).0;
    let store = || {
        scripted(&shards, Compression::None, |exchange, _, object| {
            // Each shard takes a connection of its own.
            exchange.close();
            exchange.send(format!(
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\nETag: \"e\"\r\n\r\n",
                object.len()
            ))?;
            exchange.send(object)
        })
    };
    let (origin, builder) = store();
    let (mut rows, state) = run(async {
        let builder = builder.retry(RetryPolicy::NEVER).prefetch_bytes(0);
        let mut reader = builder.build_shards().await.unwrap();
        let mut rows = reader.next().await.unwrap().unwrap().into_rows();
        let address = origin.address();
        drop(origin);
        let is_gone = || Ok(TcpStream::connect(address).is_err().then_some(()));
        eventually("the store is gone", Duration::from_secs(10), is_gone).unwrap();
        let error = loop {
            match reader.next().await.unwrap() {
                Ok(batch) => rows.extend(batch.into_rows()),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
        assert!(reader.next().await.is_none());
        (rows, reader.shards_read())
    });
    assert!(rows.len() < expected.len());
    let (_origin, builder) = store();
    rows.extend(read(builder.shards_read(vec![state])).0);
    assert_same(&rows, &expected);
}

/// A consumer that stops does not let the reader read on.
#[test]
fn memory_is_bounded() {
    const SHARDS: usize = 8;
    let photo = photos().into_values().max_by_key(Vec::len).unwrap();
    let mut tar = TarWriter::new(Vec::new());
    for number in 0..(40 << 20) / photo.len() {
        tar.append(&format!("{number:06}.jpg"), &photo).unwrap();
    }
    let shard = Arc::new(tar.finish().unwrap());
    let total = (SHARDS * shard.len()) as u64;
    let sent = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&sent);
    let origin = ScriptedOrigin::start(move |exchange| {
        send_head(exchange, shard.len(), "e")?;
        for piece in shard.chunks(64 << 10) {
            exchange.send(piece)?;
            counter.fetch_add(piece.len() as u64, SeqCst);
        }
        Ok(())
    })
    .unwrap();
    let keys = (0..SHARDS).map(|number| format!("{number}.tar"));
    let builder = reader(&format!("http://{}", origin.address()), "decode")
        .keys(keys)
        .seed(1)
        .order(SampleOrder::Shards { buffer: 16 })
        .prefetch_bytes(4 << 20)
        .requests(2);
    run(async {
        let mut reader = builder.build_shards().await.unwrap();
        assert_eq!(reader.next().await.unwrap().unwrap().len(), 4);
        let (mut before, mut rounds) = (0, 0);
        // Nothing is sent for a second.
        while rounds < 10 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let now = sent.load(SeqCst);
            rounds = if now == before { rounds + 1 } else { 0 };
            before = now;
        }
        // The budget, a batch, the buffer, and what the connections hold.
        assert!(before < total / 4, "{before} of {total} bytes");
        assert_eq!(origin.requests().len(), 2);
    });
}

#[test]
fn members_over_the_limit_are_rows_and_no_memory() {
    let mut photos: Vec<Vec<u8>> = photos()
        .into_values()
        .filter(|photo| photo.len() < 4000)
        .take(3)
        .collect();
    photos[1] = vec![0; 100_000];
    let shards = pack(&photos, 3);
    let world = world(&shards, Compression::Gzip);
    let limits = pushdown::Limits {
        max_object_bytes: 50_000,
        ..pushdown::Limits::default()
    };
    let builder = by_shards(world.reader(PIPELINE)).limits(limits);
    let (rows, stats) = read(builder.on_error(OnError::Report));
    assert_eq!((codes(&rows), stats.samples), (vec!["EntityTooLarge"], 2));
    let failed = rows.iter().find(|row| row.value.is_err()).unwrap();
    assert_eq!(failed.member.as_deref(), Some("0/001.jpg"));
}
