//! Law 5: whatever clients ask for, the process grows by no more than the memory budget and a constant.

use std::{net::SocketAddr, thread};

use anyhow::{Result, anyhow, ensure};
use proptest::{prelude::*, sample::Index, test_runner::TestRunner};
use pushdown::{Context, Image, Pipeline, Sample, wire::BatchRequest};
use pushdown_testkit::{Payload, Raw, Request};

use super::{Lab, batch, photo};

const MIB: u64 = 1 << 20;
/// What the process may grow by beyond its budget: buffers of connections, and memory that the allocator keeps.
const CONSTANT: u64 = 128 * MIB;
/// A PNG of 20 KB with 48 MB of pixels.
const LARGE: &str = "large.png";
const LARGE_SIDE: u32 = 4000;

/// A PNG in one colour: tiny, however large its pixels are.
pub(super) fn flat_png(side: u32) -> Result<Vec<u8>> {
    let bytes = side as usize * side as usize * 3;
    let image = Image::new(side, side, vec![7; bytes])?;
    let pipeline = Pipeline::parse("decode | encode(png)")?;
    match pipeline.run(1..2, Sample::Image(image), &Context::new(b""))? {
        Sample::Bytes(png) => Ok(png.to_vec()),
        other => Err(anyhow!("{other:?}")),
    }
}

/// Sends a request, and throws its answer away as it arrives.
fn read_through(address: SocketAddr, request: &Request) -> Result<u64> {
    let mut connection = Raw::connect(address)?;
    connection.write(&[request.head(), request.body.clone()].concat())?;
    let mut answer = connection.begin(&request.method)?;
    ensure!(matches!(answer.head.status, 200 | 503), "{:?}", answer.head);
    if let Some(length) = answer.head.header("content-length").map(str::parse).transpose()? {
        answer.skip(length)?;
        return Ok(length);
    }
    let mut bytes = 0;
    while let Some(chunk) = answer.chunk()? {
        bytes += chunk.len() as u64;
    }
    Ok(bytes)
}

fn post(lab: &Lab, request: &BatchRequest) -> Result<Request> {
    Ok(batch::post(lab, serde_json::to_vec(request)?))
}

/// Sends all requests at once. Returns the bytes of their answers.
fn send_at_once(lab: &Lab, requests: &[Request]) -> Result<u64> {
    let address = lab.address();
    thread::scope(|scope| {
        let clients: Vec<_> = requests
            .iter()
            .map(|request| scope.spawn(move || read_through(address, request)))
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().map_err(|_| anyhow!("a client panicked"))?)
            .sum()
    })
}

fn keys(key: &str, count: usize) -> Vec<String> {
    vec![key.to_owned(); count]
}

/// Rows of one object are one computation, and all of them are its pixels.
#[test]
fn rows_of_one_object_share_its_pixels() -> Result<()> {
    const ROWS: usize = 16;
    const BUDGET: u64 = 256 * MIB;
    let lab = Lab::new(&["--memory-budget=256MiB"])?;
    lab.put(LARGE, flat_png(LARGE_SIDE)?)?;
    let request = post(
        &lab,
        &batch::request(&lab, "decode".parse()?, &keys(LARGE, ROWS))?,
    )?;
    let idle = lab.gateway.reset_peak_memory()?;
    let bytes = send_at_once(&lab, &[request])?;
    let value_bytes = u64::from(LARGE_SIDE) * u64::from(LARGE_SIDE) * 3;
    ensure!(bytes > ROWS as u64 * value_bytes, "{bytes}");
    let grown = lab.gateway.peak_memory()? - idle;
    ensure!(grown < BUDGET + CONSTANT, "{} MiB", grown / MIB);
    Ok(())
}

/// A request of the property test: a batch of `rows` rows, or a GET of one object.
#[derive(Debug, Clone)]
struct Ask {
    object: Index,
    pipeline: Index,
    /// Zero for a GET.
    rows: usize,
    compressed: bool,
}

fn ask() -> impl Strategy<Value = Ask> {
    let rows = prop_oneof![1 => Just(0), 3 => 1_usize..40];
    (any::<Index>(), any::<Index>(), rows, any::<bool>()).prop_map(|(object, pipeline, rows, compressed)| {
        Ask {
            object,
            pipeline,
            rows,
            compressed,
        }
    })
}

/// The cache is on: cached values, prefixes, and computations that requests share are all part of the mix.
#[test]
fn law5_any_mix_of_batches_over_few_objects_stays_within_the_budget() -> Result<()> {
    const BUDGET: u64 = 320 * MIB;
    const PIPELINES: [&str; 6] = [
        "decode",
        "decode | flip_h(0.5)",
        "decode | resize(short=1500)",
        "decode | resize(128, 128)",
        "decode | resize(128, 128) | to_float",
        "decode | center_crop(900) | color_jitter(brightness=0.2)",
    ];
    let lab = Lab::new(&["--memory-budget=320MiB", "--cache-memory=32MiB"])?;
    let objects = [
        (LARGE, flat_png(LARGE_SIDE)?),
        ("photo.jpg", photo(1600, 1200, "jpeg")),
        ("small.png", flat_png(900)?),
    ];
    for (key, object) in &objects {
        lab.put(key, object.clone())?;
    }
    let request = |ask: &Ask| -> Result<Request> {
        let (key, text) = (ask.object.get(&objects).0, *ask.pipeline.get(&PIPELINES));
        if ask.rows == 0 {
            let get = lab
                .request("GET", key)
                .header("x-pushdown-pipeline", text)
                .header("x-pushdown-seed", "1")
                .header("x-pushdown-epoch", "1");
            return lab.keys.sign(get, Payload::Signed);
        }
        let mut request = batch::request(&lab, text.parse()?, &keys(key, ask.rows))?;
        (request.seed, request.epoch) = (Some(1), Some(1));
        if ask.compressed {
            request.compression = pushdown::wire::Compression::Lz4;
        }
        post(&lab, &request)
    };
    let idle = lab.gateway.resident_memory()?;
    let mut runner = TestRunner::new(ProptestConfig {
        // One takes two seconds of CPU time: one in `make test`, 12 in `make test-full`.
        cases: ProptestConfig::default().cases / 64,
        max_shrink_iters: 0,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    runner.run(&prop::collection::vec(ask(), 1..16), |asks| {
        let grown = || -> Result<u64> {
            let requests: Vec<_> = asks.iter().map(request).collect::<Result<_>>()?;
            lab.gateway.reset_peak_memory()?;
            send_at_once(&lab, &requests)?;
            Ok(lab.gateway.peak_memory()?.saturating_sub(idle))
        };
        let grown = grown().map_err(|error| TestCaseError::fail(format!("{error:#}")))?;
        prop_assert!(grown < BUDGET + CONSTANT, "{} MiB", grown / MIB);
        Ok(())
    })?;
    Ok(())
}

/// Large decodes, bodies that do not end, and small batches of one object, all at once.
#[test]
#[ignore = "half a minute: make test-full"]
fn all_kinds_of_requests_together_stay_within_the_budget() -> Result<()> {
    const BUDGET: u64 = 512 * MIB;
    let lab = Lab::new(&["--memory-budget=512MiB", "--batch-body-idle-timeout=60s"])?;
    lab.put(LARGE, flat_png(LARGE_SIDE)?)?;
    lab.put("photo.jpg", photo(4000, 3000, "jpeg"))?;
    let decode = lab
        .request("GET", "photo.jpg")
        .header("x-pushdown-pipeline", "decode");
    let mut requests = vec![lab.keys.sign(decode, Payload::Signed)?; 200];
    let small = post(&lab, &batch::request(&lab, "decode".parse()?, &keys(LARGE, 2))?)?;
    requests.extend(vec![small; 40]);
    let idle = lab.gateway.reset_peak_memory()?;
    thread::scope(|scope| {
        let bodies: Vec<_> = (0..300)
            .map(|_| scope.spawn(|| open_body(lab.address())))
            .collect();
        send_at_once(&lab, &requests)?;
        let open: Vec<_> = bodies.into_iter().map(thread::ScopedJoinHandle::join).collect();
        drop(open);
        anyhow::Ok(())
    })?;
    let grown = lab.gateway.peak_memory()? - idle;
    ensure!(grown < BUDGET + CONSTANT, "{} MiB", grown / MIB);
    Ok(())
}

/// A connection that has sent all of a batch body of 4 MiB but its last byte, or as much of it as the gateway takes.
fn open_body(address: SocketAddr) -> Result<Raw> {
    const BODY_BYTES: usize = 4 << 20;
    let mut raw = Raw::connect(address)?;
    let head = Request::new("POST", "/_pushdown/v1/batch")
        .header("Host", &address.to_string())
        .header("Content-Length", &BODY_BYTES.to_string())
        .head();
    // The gateway may refuse the body for lack of memory, and close.
    drop(raw.write(&[head, vec![b' '; BODY_BYTES - 1]].concat()));
    Ok(raw)
}
