//! The memory of the result cache is a part of the budget.

use std::{net::SocketAddr, thread};

use anyhow::{Context as _, Result, bail, ensure};
use pushdown_testkit::{GOOD_SIGNATURE, Gateway, Request, ScriptedOrigin, signed_by};

use super::{binary, photo};

const MIB: u64 = 1 << 20;
const BUDGET: u64 = 256 * MIB;
const OBJECTS: usize = 40;
/// Values of 4 MB, so that all of them are more than the memory and the buffers of the cache.
const LARGE: &str = "decode | resize(short=1000)";

/// All objects are one photo, whose ETag never changes.
fn store(photo: Vec<u8>) -> Result<ScriptedOrigin> {
    ScriptedOrigin::start(move |exchange| {
        let head = exchange.head.to_lowercase();
        if head.contains("if-none-match: \"1\"") {
            return exchange.send("HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n");
        }
        let length = photo.len();
        exchange.send(format!(
            "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: {length}\r\n\r\n"
        ))?;
        exchange.send(&photo)
    })
}

/// The status of the answer to a GET by an access key.
fn status(address: SocketAddr, access_key: &str, object: usize) -> Result<u16> {
    let request = Request::new("GET", &format!("/photos/{object}.jpg"))
        .header("Host", "store")
        .header("x-pushdown-pipeline", LARGE)
        .header("Accept", "application/octet-stream");
    Ok(signed_by(request, access_key, GOOD_SIGNATURE)
        .send(address)?
        .status)
}

#[test]
fn a_storm_of_photos_stays_within_the_memory_budget() -> Result<()> {
    check_storm(photo(2000, 1500, "jpeg"))
}

#[test]
#[ignore = "photos of 12 megapixels: make test-full"]
fn a_storm_of_large_photos_stays_within_the_memory_budget() -> Result<()> {
    check_storm(photo(4000, 3000, "jpeg"))
}

/// Two tenants ask for all objects at once, so that their values are worth caching. Then they ask again.
fn check_storm(photo: Vec<u8>) -> Result<()> {
    let (store, folder) = (store(photo)?, tempfile::tempdir()?);
    let flags = [
        format!("--upstream=http://{}", store.address()),
        format!("--memory-budget={BUDGET}"),
        "--queue-wait=60s".to_owned(),
        "--cache-memory=64MiB".to_owned(),
        format!("--cache-dir={}", folder.path().display()),
        "--cache-disk=512MiB".to_owned(),
    ];
    let gateway = Gateway::launch(binary(), flags)?;
    let address = gateway.listen();
    for _ in 0..2 {
        let mut served = 0;
        let statuses: Result<Vec<u16>> = thread::scope(|scope| {
            let clients: Vec<_> = (0..OBJECTS)
                .flat_map(|object| ["first", "second"].map(|key| (key, object)))
                .map(|(key, object)| scope.spawn(move || status(address, key, object)))
                .collect();
            let ended = clients
                .into_iter()
                .map(|client| client.join().ok().context("a client panicked")?);
            ended.collect()
        });
        for status in statuses? {
            match status {
                200 => served += 1,
                503 => {}
                status => bail!("expected 200 or 503, found {status}"),
            }
        }
        ensure!(served > 0, "no request was served");
    }
    let values =
        |origin: &str| gateway.metric(&format!("pushdown_cache_values_total{{origin=\"{origin}\"}}"));
    let hits = values("memory")? + values("disk")?;
    ensure!(hits > 0.0, "no value came from the cache");
    let peak = gateway.peak_memory()?;
    ensure!(
        peak < BUDGET + 150 * MIB,
        "{} MiB, with a budget of {} MiB",
        peak / MIB,
        BUDGET / MIB
    );
    Ok(())
}
