//! Peak memory of the gateway: a burst of large photos with a small budget, and forwarded bodies far larger than memory.
//!
//! The store is a thread of this process that responds at once and stores nothing, so that only the gateway is measured.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::thread;

use anyhow::{Result, bail, ensure};
use bytes::Bytes;
use pushdown_testkit::{Exchange, Gateway, Request, ScriptedOrigin};

use crate::load::Connection;
use crate::operators::SHORT_PIPELINE;
use crate::progress::report;

/// The gateway's `--memory-budget`.
const BUDGET_BYTES: u64 = 256 << 20;
/// Maximum resident memory above the budget.
const ALLOWANCE_BYTES: u64 = 150 << 20;
/// Maximum memory that a forwarded body can add.
const FORWARD_ALLOWANCE_BYTES: u64 = 32 << 20;
/// Size of the pieces in which bodies are read and written.
const PIECE_BYTES: usize = 1 << 20;

/// The results of a burst of requests.
#[derive(Debug, Clone, Copy)]
pub struct BurstResult {
    /// Number of 200 responses.
    pub served: usize,
    /// Number of `503 SlowDown` responses.
    pub refused: usize,
    /// Peak resident memory of the gateway.
    pub peak_bytes: u64,
}

/// Requests `requests` photos at once, each on its own connection, with a budget of 256 MiB.
///
/// # Errors
/// If a request times out, a response is neither 200 nor 503, or memory exceeds the budget by 150 MiB.
pub fn burst(gateway: &Path, photos: Vec<Bytes>, requests: usize) -> Result<BurstResult> {
    ensure!(!photos.is_empty(), "the list of photos is empty");
    let count = photos.len();
    let store = ScriptedOrigin::start(move |exchange| {
        let index: usize = word(&exchange.head, 1)
            .trim_start_matches("/photos/")
            .parse()
            .unwrap_or(0);
        let photo = &photos[index % photos.len()];
        exchange.send(format!(
            "HTTP/1.1 200 OK\r\nETag: \"{index}\"\r\nContent-Length: {}\r\n\r\n",
            photo.len()
        ))?;
        exchange.send(photo)
    })?;
    let flags = [
        format!("--upstream=http://{}", store.address()),
        format!("--memory-budget={BUDGET_BYTES}"),
    ];
    let gateway = Gateway::launch(gateway, flags)?;
    let address = gateway.listen();
    let statuses = thread::scope(|scope| {
        let threads: Vec<_> = (0..requests)
            .map(|index| scope.spawn(move || request_photo(address, index % count)))
            .collect();
        let statuses = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| bail!("a client panicked")));
        statuses.collect::<Result<Vec<u16>>>()
    })?;
    let count_of = |expected: u16| statuses.iter().filter(|status| **status == expected).count();
    let result = BurstResult {
        served: count_of(200),
        refused: count_of(503),
        peak_bytes: gateway.peak_memory()?,
    };
    ensure!(
        result.served + result.refused == requests,
        "expected responses of 200 and 503 only, found {statuses:?}"
    );
    ensure!(result.served > 0, "no request was served");
    ensure!(
        result.peak_bytes < BUDGET_BYTES + ALLOWANCE_BYTES,
        "peak memory of {} MiB with a budget of {} MiB",
        result.peak_bytes >> 20,
        BUDGET_BYTES >> 20
    );
    Ok(result)
}

fn request_photo(address: SocketAddr, photo: usize) -> Result<u16> {
    let request = Request::new("GET", &format!("/photos/{photo}"))
        .header("host", &address.to_string())
        .header(pushdown::wire::header::PIPELINE, SHORT_PIPELINE);
    Ok(Connection::open(address)?.exchange(&request.head())?.status)
}

/// Uploads and downloads `length` bytes; returns what each of the two added to the gateway's peak memory, in bytes.
///
/// # Errors
/// If one of them adds 32 MiB or more, or is incomplete.
pub fn forward(gateway: &Path, length: u64) -> Result<[u64; 2]> {
    let store = ScriptedOrigin::start(move |exchange| match word(&exchange.head, 0) {
        "PUT" => {
            read_all(exchange, length)?;
            exchange.answer("200 OK", "")
        }
        _ => write_all(exchange, length),
    })?;
    let gateway = Gateway::launch(gateway, [format!("--upstream=http://{}", store.address())])?;
    let address = gateway.listen();
    let head = |method: &str, length: u64| {
        let request = Request::new(method, "/bucket/large").header("host", &address.to_string());
        request.header("content-length", &length.to_string()).head()
    };
    let mut connection = Connection::open(address)?;
    let before = gateway.peak_memory()?;
    let upload = connection.upload(&head("PUT", length), length)?;
    let between = gateway.peak_memory()?;
    let download = connection.exchange(&head("GET", 0))?;
    let after = gateway.peak_memory()?;
    ensure!(
        upload.status == 200 && download.status == 200 && download.bytes == length,
        "PUT: {upload:?}, GET: {download:?}"
    );
    // The kernel's counter is approximate and can even decrease.
    let added = [between.saturating_sub(before), after.saturating_sub(between)];
    ensure!(
        added.iter().all(|added| *added < FORWARD_ALLOWANCE_BYTES),
        "a body of {length} bytes added {added:?} bytes"
    );
    Ok(added)
}

/// Runs both measurements; returns a line about each.
pub fn run(gateway: &Path, photos: Vec<Bytes>, gibibytes: u64) -> Result<Vec<String>> {
    report("200 pushdown GETs of 12-megapixel photos at once");
    let BurstResult {
        served,
        refused,
        peak_bytes,
    } = burst(gateway, photos, 200)?;
    report(&format!("a body of {gibibytes} GiB each way"));
    let [up, down] = forward(gateway, gibibytes << 30)?.map(|added| added >> 10);
    Ok(vec![
        format!(
            "200 pushdown GETs of 12-megapixel photos at once, budget 256 MiB: {served} responses of 200, \
             {refused} of 503, peak memory {} MiB (bound 406 MiB)",
            peak_bytes >> 20
        ),
        format!(
            "{gibibytes} GiB forwarded: the upload added {up} KiB, the download {down} KiB (bound 32 MiB)"
        ),
    ])
}

/// A word of the request line.
fn word(head: &str, index: usize) -> &str {
    head.split(' ').nth(index).unwrap_or_default()
}

fn read_all(exchange: &mut Exchange, length: u64) -> io::Result<()> {
    let mut remaining = length;
    while remaining > 0 {
        let piece = usize::try_from(remaining).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        remaining -= exchange.read(piece)?.len() as u64;
    }
    Ok(())
}

fn write_all(exchange: &mut Exchange, length: u64) -> io::Result<()> {
    let mut head = Vec::new();
    write!(head, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n")?;
    exchange.send(head)?;
    let zeros = vec![0; PIECE_BYTES];
    let mut remaining = length;
    while remaining > 0 {
        let piece = usize::try_from(remaining).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        exchange.send(&zeros[..piece])?;
        remaining -= piece as u64;
    }
    Ok(())
}
