//! A gateway beside the store that ends, hangs, drains, or may not read the store: a reader that may read plainly goes on without it.

#[cfg(all(feature = "models", feature = "tables"))]
mod models;
mod moments;

use std::{
    collections::BTreeSet,
    fs, io,
    net::SocketAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use futures::{StreamExt as _, TryStreamExt as _};
use pushdown_client::{
    ErrorKind,
    reader::{Batch, Mode, OnError, PushdownReader, PushdownReaderBuilder, Row},
    store::{Credentials, RetryPolicy, Store, StoreBuilder},
};
use pushdown_testkit::{
    Exchange, Gateway, Request, ScriptedOrigin, Throttle, draining_relay, find_gateway, recording_relay,
    slow_relay,
};

use pushdown_exec::sync::Mutex;

use super::{
    shards::ShardWorld,
    world::{
        ACCESS_KEY, BUCKET, Objects, SECRET_KEY, World, assert_same_values, into_rows, large_photos,
        many_photos, pushed, read_rows, run,
    },
};

const PIPELINE: &str = "decode | resize(32, 32) | to_tensor";
/// Bytes per second of a link of 100 Mbit/s.
const LINK: u64 = 12_500_000;
/// No attempt is repeated: what is lost is read plainly at once, or is an error.
const NO_RETRIES: RetryPolicy = RetryPolicy::NEVER;

/// A store that records its requests, behind a link, and a gateway without an upstream.
struct Lab {
    gateway: Option<Gateway>,
    /// The address of the store, for reader and gateway.
    store: SocketAddr,
    link: Throttle,
    /// Between the link and the store.
    recorder: ScriptedOrigin,
    world: World,
}

/// What happens to a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    Killed,
    Frozen,
    /// It completes the batches that it has, and ends.
    Terminated,
}

impl Lab {
    fn new(world: World) -> Self {
        let (recorder, _) = recording_relay(world.gateway.store().unwrap()).unwrap();
        let (link, store) = Throttle::start(recorder.address()).unwrap();
        Self {
            gateway: Some(launch(store, "127.0.0.1:0")),
            store,
            link,
            recorder,
            world,
        }
    }

    /// Replaces the store, without a link.
    fn set_store(&mut self, recorder: ScriptedOrigin) {
        self.store = recorder.address();
        self.recorder = recorder;
        self.gateway = Some(launch(self.store, "127.0.0.1:0"));
    }

    fn gateway(&self) -> &Gateway {
        self.gateway.as_ref().unwrap()
    }

    fn lose(&mut self, loss: Loss) {
        match loss {
            Loss::Killed => drop(self.gateway.take()),
            Loss::Frozen => self.gateway().freeze().unwrap(),
            Loss::Terminated => self.gateway().terminate().unwrap(),
        }
    }

    fn store_through(&self, gateway: SocketAddr) -> StoreBuilder {
        self.store_at(&format!("http://{gateway}"))
    }

    fn store_at(&self, gateway: &str) -> StoreBuilder {
        Store::builder()
            .endpoint(format!("http://{}", self.store))
            .region("us-east-1")
            .credentials(Credentials::new(ACCESS_KEY, SECRET_KEY))
            .retry(NO_RETRIES)
            .gateway(gateway.to_string())
    }

    fn reader_through(&self, gateway: SocketAddr, pipeline: &str) -> PushdownReaderBuilder {
        self.reader_at(&format!("http://{gateway}"), pipeline)
    }

    fn reader_at(&self, gateway: &str, pipeline: &str) -> PushdownReaderBuilder {
        PushdownReader::builder()
            .store(self.store_at(gateway))
            .bucket(BUCKET)
            .pipeline(pipeline)
            .mode(Mode::Auto)
            .batch_size(8)
            .requests(2)
    }

    fn reader(&self, pipeline: &str) -> PushdownReaderBuilder {
        self.reader_through(self.gateway().listen(), pipeline)
    }

    /// GETs of an object so far, by reader and gateway.
    fn gets(&self, key: &str) -> usize {
        let start = format!("GET /{BUCKET}/{key}?");
        let requests = self.recorder.requests();
        requests.iter().filter(|head| head.starts_with(&start)).count()
    }
}

/// Starts a gateway for a store.
fn launch(store: SocketAddr, listen: &str) -> Gateway {
    let flags = [
        format!("--allow-store=http://{store}"),
        format!("--listen={listen}"),
    ];
    Gateway::launch(&find_gateway().unwrap(), flags).unwrap()
}

/// Loses the gateway once the consumer has this number of batches, while others are in flight.
fn lose_gateway(loss: Loss, batches_before: usize) {
    let world = World::with_objects(many_photos(96));
    let expected = read_rows(world.reader(PIPELINE).mode(Mode::Plain).seed(5).batch_size(8));
    let mut lab = Lab::new(world);
    lab.link.set_rate(LINK);
    run(async {
        let mut reader = lab.reader(PIPELINE).seed(5).build().await.unwrap();
        let mut batches: Vec<Batch> = reader.by_ref().take(batches_before).try_collect().await.unwrap();
        // The first batch tries both routes.
        assert!(batches_before == 0 || pushed(batches[0].rows()) > 0);
        lab.lose(loss);
        let lost = Instant::now();
        while let Some(batch) = reader.try_next().await.unwrap() {
            batches.push(batch);
        }
        let took = lost.elapsed();
        // Three seconds of silence, and one for the probe; the machine may be busy.
        assert!(took < Duration::from_secs(30), "{took:?} after the loss");
        let rows = into_rows(batches);
        assert_same_values(&rows, &expected);
        assert_eq!(reader.stats().retries, 0, "nothing waits for retries");
        let last = &rows[rows.len() - 16..];
        assert_eq!(pushed(last), 0, "batches that begin later are read plainly");
        for row in &rows {
            // One of the gateway, and one of the reader if the value did not arrive.
            let most = if row.stage > 0 { 1 } else { 2 };
            let gets = lab.gets(&row.key);
            assert!(
                (1..=most).contains(&gets),
                "{} at stage {}: {gets}",
                row.key,
                row.stage
            );
        }
    });
}

#[test]
fn a_gateway_that_is_killed_loses_and_repeats_no_sample() {
    lose_gateway(Loss::Killed, 2);
}

#[test]
fn a_gateway_that_hangs_loses_and_repeats_no_sample() {
    lose_gateway(Loss::Frozen, 3);
}

#[test]
fn a_gateway_that_is_terminated_loses_and_repeats_no_sample() {
    lose_gateway(Loss::Terminated, 2);
}

#[test]
#[ignore = "two minutes: make test-full"]
fn gateways_lost_at_any_moment_lose_and_repeat_no_sample() {
    for batches_before in 0..10 {
        lose_gateway(Loss::Killed, batches_before);
        lose_gateway(Loss::Frozen, batches_before);
        lose_gateway(Loss::Terminated, batches_before);
    }
}

#[test]
fn members_are_read_without_a_lost_gateway() {
    let photos: Vec<Vec<u8>> = many_photos(56).into_values().collect();
    let shards = ShardWorld::new(&photos, 14);
    let samples = shards.samples(&["cls"]);
    let expected = shards.reader(PIPELINE).objects(samples.clone()).mode(Mode::Plain);
    let expected = read_rows(expected);
    for loss in [Loss::Killed, Loss::Frozen] {
        let mut lab = Lab::new(World::with_objects(Objects::new()));
        // The shards are in another store.
        let (recorder, _) = recording_relay(shards.world.gateway.store().unwrap()).unwrap();
        lab.set_store(recorder);
        run(async {
            let reader = lab
                .reader(PIPELINE)
                .objects(samples.clone())
                .requests(1)
                .prefetch_bytes(0);
            let mut reader = reader.build().await.unwrap();
            let mut batches = vec![reader.next().await.unwrap().unwrap()];
            lab.lose(loss);
            batches.extend(reader.by_ref().try_collect::<Vec<_>>().await.unwrap());
            let rows = into_rows(batches);
            assert_same_values(&rows, &expected);
            for (row, expected) in rows.iter().zip(&expected) {
                assert_eq!(row.columns, expected.columns);
            }
        });
    }
}

#[test]
fn a_gateway_that_is_down_from_the_start_is_no_error() {
    let world = World::with_objects(many_photos(24));
    let expected = read_rows(world.reader(PIPELINE).mode(Mode::Plain));
    for loss in [Loss::Killed, Loss::Frozen] {
        let mut lab = Lab::new(World::with_objects(many_photos(24)));
        let gateway = lab.gateway().listen();
        lab.lose(loss);
        run(async {
            let mut reader = lab.reader_through(gateway, PIPELINE).build().await.unwrap();
            let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
            let rows = into_rows(batches);
            assert_same_values(&rows, &expected);
            assert_eq!((pushed(&rows), reader.mode()), (0, Mode::Auto));
        });
    }
}

/// A gateway whose certificate this host does not trust.
#[test]
fn an_untrusted_gateway_is_done_without() {
    let world = World::with_objects(many_photos(24));
    let expected = read_rows(world.reader(PIPELINE).mode(Mode::Plain));
    let mut lab = Lab::new(World::with_objects(many_photos(24)));
    let issued = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let file = |name: &str, text: String| {
        let path = lab.world.folder().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let flags = [
        format!("--allow-store=http://{}", lab.store),
        format!("--tls-cert={}", file("cert.pem", issued.cert.pem())),
        format!(
            "--tls-key={}",
            file("key.pem", issued.signing_key.serialize_pem())
        ),
    ];
    let gateway = Gateway::launch(&find_gateway().unwrap(), flags).unwrap();
    let url = format!("https://{}", gateway.listen());
    lab.gateway = Some(gateway);
    run(async {
        let mut reader = lab.reader_at(&url, PIPELINE).build().await.unwrap();
        let rows = into_rows(reader.by_ref().try_collect().await.unwrap());
        assert_same_values(&rows, &expected);
        assert_eq!((pushed(&rows), reader.stats().errors), (0, 0));
        let reader = lab.reader_at(&url, PIPELINE).mode(Mode::Pushdown).build();
        let error = reader
            .await
            .unwrap()
            .try_collect::<Vec<Batch>>()
            .await
            .unwrap_err();
        assert!(error.to_string().contains("certificate"), "{error}");
    });
}

/// Reads epochs until samples are pushed down again.
async fn read_until_pushed(reader: &mut PushdownReader) {
    let began = Instant::now();
    for epoch in 1.. {
        reader.set_epoch(epoch);
        let batches: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
        if pushed(&into_rows(batches)) > 0 {
            return;
        }
        assert!(
            began.elapsed() < Duration::from_secs(45),
            "nothing is pushed down again"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

#[test]
fn a_gateway_that_is_back_computes_again() {
    come_back_after(Duration::ZERO);
}

/// The pauses between probes have grown to 30 seconds then.
#[test]
#[ignore = "three minutes: make test-full"]
fn a_gateway_that_is_back_after_a_minute_computes_again() {
    come_back_after(Duration::from_mins(1));
}

fn come_back_after(pause: Duration) {
    for loss in [Loss::Killed, Loss::Frozen] {
        let mut lab = Lab::new(World::with_objects(many_photos(48)));
        let listen = lab.gateway().listen();
        run(async {
            let reader = lab.reader(PIPELINE).requests(1).prefetch_bytes(0);
            let mut reader = reader.build().await.unwrap();
            reader.next().await.unwrap().unwrap();
            lab.lose(loss);
            let rest: Vec<Batch> = reader.by_ref().try_collect().await.unwrap();
            assert_eq!(pushed(&into_rows(rest)[32..]), 0);
            tokio::time::sleep(pause).await;
            match loss {
                Loss::Killed | Loss::Terminated => lab.gateway = Some(launch(lab.store, &listen.to_string())),
                Loss::Frozen => lab.gateway().resume().unwrap(),
            }
            read_until_pushed(&mut reader).await;
        });
    }
}

#[test]
fn mode_pushdown_insists_on_its_gateway() {
    let mut lab = Lab::new(World::with_objects(many_photos(24)));
    run(async {
        let retry = RetryPolicy {
            attempts: 3,
            base: Duration::from_millis(1),
            cap: Duration::from_millis(1),
        };
        let reader = lab.reader(PIPELINE).retry(retry).mode(Mode::Pushdown);
        let mut reader = reader.requests(1).prefetch_bytes(0).build().await.unwrap();
        reader.next().await.unwrap().unwrap();
        lab.lose(Loss::Killed);
        let error = reader.by_ref().try_collect::<Vec<Batch>>().await.unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Unreachable | ErrorKind::Interrupted),
            "{error}"
        );
        assert_eq!(reader.stats().retries, 2);
    });
}

#[test]
fn a_draining_gateway_gets_no_new_batches_until_it_serves_again() {
    let lab = Lab::new(World::with_objects(many_photos(48)));
    let is_draining = Arc::new(AtomicBool::new(true));
    let relay = draining_relay(lab.gateway().listen(), Arc::clone(&is_draining)).unwrap();
    run(async {
        let reader = lab
            .reader_through(relay.address(), PIPELINE)
            .requests(1)
            .prefetch_bytes(0);
        let mut reader = reader.build().await.unwrap();
        let rows = into_rows(reader.by_ref().try_collect().await.unwrap());
        assert_eq!(pushed(&rows), 0);
        let heads = relay.requests();
        let batches = heads.iter().filter(|head| head.starts_with("POST ")).count();
        assert_eq!(batches, 1, "the one after which the gateway was probed");
        is_draining.store(false, SeqCst);
        read_until_pushed(&mut reader).await;
    });
}

/// A gateway may load a model for its first answer.
#[test]
fn a_slow_gateway_is_waited_for() {
    let world = World::with_objects(many_photos(16));
    let expected = read_rows(world.reader(PIPELINE).mode(Mode::Plain));
    let lab = Lab::new(world);
    let relay = slow_relay(lab.gateway().listen(), Duration::from_secs(5)).unwrap();
    run(async {
        let mut reader = lab
            .reader_through(relay.address(), PIPELINE)
            .build()
            .await
            .unwrap();
        let rows = into_rows(reader.by_ref().try_collect().await.unwrap());
        assert_same_values(&rows, &expected);
        assert!(pushed(&rows) > 0, "its values are used");
        for row in rows.iter().filter(|row| row.stage > 0) {
            assert_eq!(lab.gets(&row.key), 1, "{} was read by the gateway alone", row.key);
        }
        let probes = relay.requests();
        let probes = probes
            .iter()
            .filter(|head| head.starts_with("HEAD /_pushdown/v1/version "));
        assert!(
            probes.count() >= 2,
            "one for its features, and one in the silence"
        );
    });
}

/// The refusal by a policy on the address of a caller.
const FORBIDDEN: (&str, &str) = (
    "403 Forbidden",
    "<Error><Code>AccessDenied</Code><Message>no address of yours</Message></Error>",
);

/// A store that refuses a part of its requests, by their heads, with this status and document.
fn refusing_store(
    store: SocketAddr,
    (status, document): (&'static str, &'static str),
    refuses: impl Fn(&Exchange) -> bool + Send + Sync + 'static,
) -> ScriptedOrigin {
    let relay = recording_relay(store).unwrap().0;
    ScriptedOrigin::start(move |exchange| {
        if refuses(exchange) {
            return exchange.answer(status, document);
        }
        let mut request = Request::new("GET", exchange.head.split(' ').nth(1).unwrap());
        for line in exchange.head.lines().skip(1).filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(": ").ok_or(io::ErrorKind::InvalidData)?;
            request = request.header(name, value);
        }
        let answer = request.send(relay.address()).map_err(io::Error::other)?;
        let mut head = format!(
            "HTTP/1.1 {} OK\r\nContent-Length: {}\r\n",
            answer.status,
            answer.body.len()
        );
        if let Some(etag) = answer.header("etag") {
            head.extend(["ETag: ", etag, "\r\n"]);
        }
        exchange.send(head + "\r\n")?;
        exchange.send(&answer.body)
    })
    .unwrap()
}

/// A policy refuses four samples of the first batch to the address of the gateway.
#[test]
fn what_the_store_refuses_to_the_gateway_alone_is_read_plainly() {
    let world = World::with_objects(many_photos(48));
    let expected = read_rows(world.reader(PIPELINE).mode(Mode::Plain));
    let mut lab = Lab::new(world);
    let seen = Mutex::new(BTreeSet::new());
    // The first batch asks the gateway for every second photo. The host asks for one of those only if the gateway does not have it.
    let refused = ["0001", "0003", "0005", "0007"].map(|name| format!("GET /{BUCKET}/{name}.jpg?"));
    let refuses = move |exchange: &Exchange| {
        let start = refused.iter().find(|start| exchange.head.starts_with(*start));
        start.is_some_and(|start| seen.lock().insert(start.clone()))
    };
    let store = lab.world.gateway.store().unwrap();
    lab.set_store(refusing_store(store, FORBIDDEN, refuses));
    run(async {
        let reader = lab.reader(PIPELINE).requests(1).prefetch_bytes(0);
        let mut reader = reader.build().await.unwrap();
        let rows = into_rows(reader.by_ref().try_collect().await.unwrap());
        assert_same_values(&rows, &expected);
        assert_eq!(pushed(&rows[8..]), 0, "all later samples are read plainly");
        assert_eq!(reader.mode(), Mode::Plain);
    });
    let batches = lab
        .gateway()
        .metric(r#"pushdown_requests_total{kind="batch",status="2xx"}"#);
    assert!(
        batches.unwrap() <= 2.0,
        "the first batch may have a second request"
    );
}

/// The store fails for the gateway alone. Both batches try both routes: the gateway is asked for every second photo.
#[test]
fn retries_of_rows_are_not_repeated_in_each_batch() {
    let world = World::with_objects(many_photos(16));
    let expected = read_rows(world.reader(PIPELINE).mode(Mode::Plain));
    let mut lab = Lab::new(world);
    let admin = Arc::new(OnceLock::<SocketAddr>::new());
    let found = Arc::clone(&admin);
    let unavailable = (
        "503 Service Unavailable",
        "<Error><Code>SlowDown</Code><Message>not now</Message></Error>",
    );
    let refuses = move |exchange: &Exchange| {
        let number = exchange.head.strip_prefix(&format!("GET /{BUCKET}/"));
        let number = number.and_then(|rest| rest.split('.').next()?.parse::<usize>().ok());
        // On a busy machine the request before may be counted, too.
        let in_flight = |line: &str| {
            let count = line.strip_prefix(r#"pushdown_requests_in_flight{kind="batch"} "#);
            count.is_some_and(|count| count != "0")
        };
        number.is_some_and(|number| number % 2 == 1)
            && found.get().is_some_and(|admin| {
                let page = Request::new("GET", "/metrics").send(*admin).unwrap();
                page.text().lines().any(in_flight)
            })
    };
    let store = lab.world.gateway.store().unwrap();
    lab.set_store(refusing_store(store, unavailable, refuses));
    admin.set(lab.gateway().admin()).unwrap();
    let retry = RetryPolicy {
        attempts: 3,
        base: Duration::from_millis(1),
        cap: Duration::from_millis(1),
    };
    run(async {
        let reader = lab.reader(PIPELINE).retry(retry).requests(1).prefetch_bytes(0);
        let mut reader = reader.build().await.unwrap();
        let rows = into_rows(reader.by_ref().try_collect().await.unwrap());
        assert_same_values(&rows, &expected);
        assert_eq!(pushed(&rows), 0);
    });
    let batches = lab
        .gateway()
        .metric(r#"pushdown_requests_total{kind="batch",status="2xx"}"#);
    let batches = batches.unwrap();
    assert!((batches - 4.0).abs() < 0.5, "three attempts, then one: {batches}");
}

#[test]
fn a_sample_that_nobody_may_read_is_its_own_error() {
    let mut lab = Lab::new(World::with_objects(many_photos(48)));
    let store = lab.world.gateway.store().unwrap();
    lab.set_store(refusing_store(store, FORBIDDEN, |exchange| {
        exchange.head.starts_with("GET /photos/0007.jpg?")
    }));
    run(async {
        let reader = lab.reader(PIPELINE).on_error(OnError::Report);
        let mut reader = reader.build().await.unwrap();
        let rows = into_rows(reader.by_ref().try_collect().await.unwrap());
        for row in &rows {
            let code = row.value.as_ref().err().map(|error| error.code.as_str());
            let expected = (&*row.key == "0007.jpg").then_some("AccessDenied");
            assert_eq!(code, expected, "{}", row.key);
        }
        assert_eq!(reader.mode(), Mode::Auto, "the gateway stays");
    });
}

#[cfg(feature = "tables")]
mod tables {
    use pushdown::{Limits, Pipeline};
    use pushdown_testkit::Parquet;

    use super::*;

    #[test]
    fn row_groups_are_read_without_a_lost_gateway() {
        let photos: Vec<Vec<u8>> = many_photos(64).into_values().collect();
        let images: Vec<&[u8]> = photos.iter().map(Vec::as_slice).collect();
        let table = Parquet::of_photos(&images, 4).unwrap();
        let objects = Objects::from([("images.parquet".to_owned(), table)]);
        let pipeline = "select(row_number=at) | each(photo: decode | random_resized_crop(8) | flip_h)";
        let rows = |builder: PushdownReaderBuilder, lab: Option<(&mut Lab, Loss)>| {
            run(async {
                let builder = builder.pipeline(pipeline).seed(7).requests(1).prefetch_bytes(0);
                let mut reader = builder.build_table().await.unwrap();
                let mut batches = Vec::new();
                batches.extend(reader.next().await);
                if let Some((lab, loss)) = lab {
                    assert!(reader.row_stage().steps > 0, "it is pushed down");
                    lab.lose(loss);
                }
                batches.extend(reader.by_ref().collect::<Vec<_>>().await);
                let batches = batches.into_iter().map(Result::unwrap);
                batches.map(|batch| (batch.ids, batch.rows)).collect::<Vec<_>>()
            })
        };
        let world = World::with_objects(objects.clone());
        let expected = rows(world.reader("").mode(Mode::Plain).batch_size(8), None);
        for loss in [Loss::Killed, Loss::Frozen] {
            let mut lab = Lab::new(World::with_objects(objects.clone()));
            let reader = lab.reader("");
            assert!(rows(reader, Some((&mut lab, loss))) == expected, "{loss:?}");
            let reader = lab.reader_through(SocketAddr::from(([127, 0, 0, 1], 1)), "");
            assert!(rows(reader, None) == expected, "no gateway from the start");
        }
    }

    #[test]
    fn tables_are_read_without_a_lost_gateway() {
        let table = Parquet {
            rows: 250_000,
            noise: 2,
            row_group: 25_000,
        };
        let objects = Objects::from([("t.parquet".to_owned(), table.write().unwrap())]);
        // 4 MB are read for 600 KB.
        let select = Pipeline::parse("select(columns=[c000], where='c001 < 0.3')").unwrap();
        let count = async |store: StoreBuilder, lost: Option<(&mut Lab, Loss)>| {
            let store = store.build().await.unwrap();
            let table = store.table(BUCKET, "t.parquet", &Limits::default());
            let mut rows = table.rows(&select, None, 0).await.unwrap();
            let mut count = rows.next().await.unwrap().unwrap().num_rows();
            if let Some((lab, loss)) = lost {
                let answers = lab
                    .gateway()
                    .metric(r#"pushdown_requests_in_flight{kind="pipeline"}"#);
                assert!(answers.unwrap() > 0.0, "the gateway computes the rows");
                lab.lose(loss);
            }
            while let Some(batch) = rows.next().await.unwrap() {
                count += batch.num_rows();
            }
            count
        };
        for loss in [Loss::Killed, Loss::Frozen] {
            let mut lab = Lab::new(World::with_objects(objects.clone()));
            let store = lab.store_through(lab.gateway().listen());
            let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
            let expected = run(count(lab.store_through(nowhere), None));
            assert!((70_000..80_000).contains(&expected), "{expected}");
            lab.link.set_rate(2 << 20);
            assert_eq!(
                run(count(store, Some((&mut lab, loss)))),
                expected,
                "each row once"
            );
            lab.link.set_rate(1 << 40);
            let flags = [
                format!("--allow-store=http://{}", lab.store),
                "--allow-bucket=another".to_owned(),
            ];
            lab.gateway = Some(Gateway::launch(&find_gateway().unwrap(), flags).unwrap());
            let store = lab.store_through(lab.gateway().listen());
            assert_eq!(run(count(store, None)), expected, "a gateway that refuses");
        }
    }
}
