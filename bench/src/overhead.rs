//! CPU cost of a pushdown request at the gateway beyond its library calls.

use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use pushdown::wire::{BatchReader, BatchRequest, BatchSample, Compression, OnError, Order, Split, header};
use pushdown::{Limits, Pipeline};
use pushdown_testkit::{Gateway, Raw, Request};

use crate::cpu::CpuClock;
use crate::libraries::Libraries;
use crate::load::{Connection, Load};
use crate::operators::{SHORT_PIPELINE, run_all};
use crate::photos::{SMALL, count, mean_kilobytes, read_all};
use crate::progress::report;
use crate::report::{Table, Target};
use crate::rounds::{Contender, run_rounds};
use crate::store::Store;

const LIBRARIES: &str = "libjpeg-turbo and fast_image_resize";
const CONCURRENT_LIBRARIES: &str = "the same, as many at a time as the gateway runs";
const OURS: &str = "`Pipeline::run` in process";
const GET: &str = "pushdown GET";
const BATCH: &str = "pushdown batch of 256";
const SAMPLES: usize = 256;
const CONNECTIONS: usize = 4;

/// Returns one table: the libraries, GETs and batches over the same photos.
pub fn run(gateway: &Path, photos: &Path, rounds: u32) -> Result<Table> {
    // As many as the batch has samples; photos repeat.
    let files: Vec<_> = read_all(&photos.join(SMALL))?
        .into_iter()
        .cycle()
        .take(SAMPLES)
        .collect();
    let pipeline = Pipeline::parse(SHORT_PIPELINE)?;
    let store = Store::launch()?;
    let gateway = Gateway::launch(gateway, [format!("--upstream=http://{}", store.address())])?;
    let keys: Vec<_> = (0..files.len())
        .map(|index| format!("photos/{index:03}.jpg"))
        .collect();
    for (key, file) in keys.iter().zip(&files) {
        store.put(key, file.to_vec())?;
    }
    let clock = CpuClock::for_process(gateway.id())?;
    let per_sample = |time: Duration| time.as_secs_f64() * 1e3 / count(&files);
    let samples = u32::try_from(files.len())?;

    let libraries = {
        let (clock, files) = (CpuClock::for_this_thread(), &files);
        let mut libraries = Libraries::new()?;
        Contender::new(LIBRARIES, move || {
            let mut run = |file: &Bytes| libraries.decode_resize_crop(file).map(black_box).map(drop);
            Ok(per_sample(clock.measure(|| files.iter().try_for_each(&mut run))?))
        })
    };
    let concurrent_libraries = Contender::new(CONCURRENT_LIBRARIES, || {
        let time = on_all_threads(&files, || {
            let mut libraries = Libraries::new()?;
            Ok(move |file: &Bytes| libraries.decode_resize_crop(file).map(black_box).map(drop))
        })?;
        Ok(per_sample(time))
    });
    let ours = {
        let (clock, files, pipeline) = (CpuClock::for_this_thread(), &files, &pipeline);
        Contender::new(OURS, move || {
            Ok(per_sample(clock.measure(|| run_all(pipeline, files))?))
        })
    };
    let get = {
        let request = |key| store.get(gateway.listen(), key, &[(header::PIPELINE, SHORT_PIPELINE)]);
        let requests = keys.iter().map(|key| request(key)).collect::<Result<Vec<_>>>()?;
        let response = Connection::open(gateway.listen())?.exchange(&requests[0])?;
        ensure!(
            response.status == 200,
            "expected status 200 from the gateway, found {}",
            response.status
        );
        let mut load = Load::new(gateway.listen(), CONNECTIONS, requests, response.bytes)?;
        let clock = clock.clone();
        Contender::new(GET, move || Ok(per_sample(clock.measure(|| load.send(samples))?)))
    };
    let batch = {
        let (request, gateway) = (batch_request(&store, &gateway, &keys, &pipeline)?, &gateway);
        check_rows(&send(gateway, &request)?, samples)?;
        Contender::new(BATCH, move || {
            let time = clock.measure(|| {
                let rows = send(gateway, &request)?;
                // Rows of 224 x 224 x 3 bytes; a failed row would have none.
                ensure!(
                    rows.len() >= 224 * 224 * 3 * samples as usize,
                    "the batch response is too short"
                );
                Ok(())
            })?;
            Ok(per_sample(time))
        })
    };
    report(&format!("pushdown overhead, {samples} photos per round"));
    let title = format!(
        "Pushdown overhead, `{SHORT_PIPELINE}`, photos of 500 x 375, {} KB each on average",
        mean_kilobytes(&files)
    );
    let mut table = Table::new(
        title,
        "CPU milliseconds per sample",
        run_rounds(vec![libraries, concurrent_libraries, ours, get, batch], rounds)?,
    );
    table.compare(
        GET,
        (GET, LIBRARIES),
        "times the libraries",
        Some(Target::AtMost(1.2)),
    );
    table.compare(
        BATCH,
        (BATCH, LIBRARIES),
        "times the libraries",
        Some(Target::AtMost(1.12)),
    );
    table.compare(GET, (GET, CONCURRENT_LIBRARIES), "times as many at a time", None);
    table.compare(
        BATCH,
        (BATCH, CONCURRENT_LIBRARIES),
        "times as many at a time",
        None,
    );
    table.compare(GET, (GET, OURS), "times `Pipeline::run`", None);
    table.compare(BATCH, (BATCH, OURS), "times `Pipeline::run`", None);
    Ok(table)
}

/// The CPU time of work on every file, on one thread per CPU. The threads share caches and memory bandwidth, as the gateway's
/// threads do.
fn on_all_threads<W: FnMut(&Bytes) -> Result<()>>(
    files: &[Bytes],
    worker: impl Fn() -> Result<W> + Sync,
) -> Result<Duration> {
    let threads = thread::available_parallelism()?.get();
    let (worker, next) = (&worker, &AtomicUsize::new(0));
    let work = || {
        let mut work = worker()?;
        CpuClock::for_this_thread().measure(|| {
            while let Some(file) = files.get(next.fetch_add(1, Relaxed)) {
                work(file)?;
            }
            Ok(())
        })
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let times = threads.into_iter().map(|thread| match thread.join() {
            Ok(time) => time,
            Err(_panic) => bail!("a worker panicked"),
        });
        times.sum()
    })
}

/// A batch request of all samples, presigned for the gateway's host as a reader does it.
pub(crate) fn batch_request(
    store: &Store,
    gateway: &Gateway,
    keys: &[String],
    pipeline: &Pipeline,
) -> Result<Request> {
    let host = gateway.listen().to_string();
    // All samples are signed at the same time, since they share the query parameters that contain it.
    let signer = store.keys().with_time(std::time::SystemTime::now());
    let mut shared = String::new();
    let mut samples = Vec::new();
    for key in keys {
        let request = Request::new("GET", &Store::path(key)).header("host", &host);
        let target = signer.presign(request, Duration::from_hours(1))?.target;
        let (path, query) = target.split_once('?').context("a presigned target has a query")?;
        let (presign, signature) = query
            .split_once("&X-Amz-Signature=")
            .context("a presigned query ends with its signature")?;
        presign.clone_into(&mut shared);
        samples.push(BatchSample::new(path, signature));
    }
    let body = BatchRequest {
        store: None,
        pipeline: pipeline.clone(),
        split: Split::Full,
        seed: None,
        epoch: None,
        on_error: OnError::Row,
        order: Order::Request,
        compression: Compression::None,
        table: None,
        cache: None,
        demand: None,
        deliver: true,
        pin: None,
        part: None,
        columns: Vec::new(),
        presign: Some(shared),
        samples,
    };
    let request = Request::new("POST", header::BATCH_PATH).header("host", &host);
    Ok(request
        .header("content-type", "application/json")
        .body(serde_json::to_vec(&body)?))
}

pub(crate) fn send(gateway: &Gateway, request: &Request) -> Result<Vec<u8>> {
    let mut connection = Raw::connect(gateway.listen())?;
    connection.write(&[request.head(), request.body.clone()].concat())?;
    let response = connection.read("POST")?;
    ensure!(
        response.status == 200,
        "expected status 200 for the batch, found {} {}",
        response.status,
        response.text()
    );
    Ok(response.body)
}

pub(crate) fn check_rows(response: &[u8], samples: u32) -> Result<()> {
    let rows = BatchReader::new(Limits::default()).push(Bytes::copy_from_slice(response))?;
    ensure!(
        rows.len() == samples as usize,
        "expected {samples} rows, found {}",
        rows.len()
    );
    for row in rows {
        row.value
            .map_err(|error| anyhow::anyhow!("row {}: {error}", row.row))?;
    }
    Ok(())
}
