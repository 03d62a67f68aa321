//! Memory: a storm of large photos on a small budget, and bodies far larger than memory passed through.
//!
//! The store is a thread in here that answers at once and keeps nothing, so that only the gateway is measured.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::thread;

use anyhow::{Result, bail, ensure};
use bytes::Bytes;
use pushdown_testkit::{Exchange, Gateway, Request, ScriptedOrigin};

use crate::load::Connection;
use crate::operators::SHORT_PIPELINE;
use crate::progress::say;

/// The gateway's `--memory-budget`.
const BUDGET: u64 = 256 << 20;
/// Peak resident memory beyond the budget.
const ALLOWANCE: u64 = 150 << 20;
/// What a forwarded body may add.
const FORWARD_ALLOWANCE: u64 = 32 << 20;
const PIECE: usize = 1 << 20;

/// What the storm came to.
#[derive(Debug, Clone, Copy)]
pub struct Storm {
    /// Answers with the value.
    pub served: usize,
    /// Answers `503 SlowDown`.
    pub refused: usize,
    /// Peak resident memory of the gateway in bytes.
    pub peak: u64,
}

/// Asks for `requests` photos at once, on a connection each, with a budget of 256 MiB.
///
/// # Errors
/// When a request hangs or is answered with anything but 200 or 503, or memory exceeds the budget by 150 MiB.
pub fn storm(gateway: &Path, photos: Vec<Bytes>, requests: usize) -> Result<Storm> {
    ensure!(!photos.is_empty(), "there are no photos");
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
        format!("--memory-budget={BUDGET}"),
    ];
    let gateway = Gateway::launch(gateway, flags)?;
    let address = gateway.listen();
    let statuses = thread::scope(|scope| {
        let askers: Vec<_> = (0..requests)
            .map(|index| scope.spawn(move || ask(address, index % count)))
            .collect();
        let statuses = askers
            .into_iter()
            .map(|asker| asker.join().unwrap_or_else(|_| bail!("a client panicked")));
        statuses.collect::<Result<Vec<u16>>>()
    })?;
    let answered = |wanted: u16| statuses.iter().filter(|status| **status == wanted).count();
    let storm = Storm {
        served: answered(200),
        refused: answered(503),
        peak: gateway.peak_memory()?,
    };
    ensure!(
        storm.served + storm.refused == requests,
        "answers other than 200 and 503: {statuses:?}"
    );
    ensure!(storm.served > 0, "no request was served");
    ensure!(
        storm.peak < BUDGET + ALLOWANCE,
        "peak memory of {} MiB on a budget of {} MiB",
        storm.peak >> 20,
        BUDGET >> 20
    );
    Ok(storm)
}

fn ask(address: SocketAddr, photo: usize) -> Result<u16> {
    let request = Request::new("GET", &format!("/photos/{photo}"))
        .header("host", &address.to_string())
        .header(pushdown::wire::header::PIPELINE, SHORT_PIPELINE);
    Ok(Connection::open(address)?.exchange(&request.head())?.status)
}

/// Sends `length` bytes up and as many down; gives what each added to the gateway's peak memory, in bytes.
///
/// # Errors
/// When one of them adds 32 MiB or more, or does not arrive whole.
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
    let up = connection.upload(&head("PUT", length), length)?;
    let between = gateway.peak_memory()?;
    let down = connection.exchange(&head("GET", 0))?;
    let after = gateway.peak_memory()?;
    ensure!(
        up.status == 200 && down.status == 200 && down.bytes == length,
        "PUT {up:?}, GET {down:?}"
    );
    // The kernel's own count is approximate, and may even shrink.
    let added = [between.saturating_sub(before), after.saturating_sub(between)];
    ensure!(
        added.iter().all(|added| *added < FORWARD_ALLOWANCE),
        "a body of {length} bytes added {added:?} bytes"
    );
    Ok(added)
}

/// Both, and a line about each.
pub fn run(gateway: &Path, photos: Vec<Bytes>, gibibytes: u64) -> Result<Vec<String>> {
    say("200 pushdown GETs of 12-megapixel photos at once");
    let Storm {
        served,
        refused,
        peak,
    } = storm(gateway, photos, 200)?;
    say(&format!("a body of {gibibytes} GiB each way"));
    let [up, down] = forward(gateway, gibibytes << 30)?.map(|added| added >> 10);
    Ok(vec![
        format!(
            "200 pushdown GETs of 12-megapixel photos at once, budget 256 MiB: {served} answered 200, {refused} \
             answered 503, peak memory {} MiB (bound 406 MiB)",
            peak >> 20
        ),
        format!(
            "{gibibytes} GiB forwarded: the upload added {up} KiB, the download {down} KiB (bound 32 MiB)"
        ),
    ])
}

fn word(head: &str, index: usize) -> &str {
    head.split(' ').nth(index).unwrap_or_default()
}

fn read_all(exchange: &mut Exchange, length: u64) -> io::Result<()> {
    let mut left = length;
    while left > 0 {
        let piece = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        left -= exchange.read(piece)?.len() as u64;
    }
    Ok(())
}

fn write_all(exchange: &mut Exchange, length: u64) -> io::Result<()> {
    let mut head = Vec::new();
    write!(head, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n")?;
    exchange.send(head)?;
    let zeros = vec![0; PIECE];
    let mut left = length;
    while left > 0 {
        let piece = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        exchange.send(&zeros[..piece])?;
        left -= piece as u64;
    }
    Ok(())
}
