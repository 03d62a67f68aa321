//! Forwarding compared with nginx: CPU time of the proxy for a signed GET.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;
use pushdown_testkit::Gateway;

use crate::cpu::CpuClock;
use crate::load::Load;
use crate::nginx::Nginx;
use crate::progress::report;
use crate::report::{Table, Target};
use crate::rounds::{Contender, run_rounds};
use crate::store::Store;

const GATEWAY: &str = "pushdown-gateway";
const NGINX: &str = "nginx `proxy_pass`";
const UNBUFFERED: &str = "nginx `proxy_pass`, `proxy_buffering off`";
const CONNECTIONS: usize = 8;

/// A set of objects of one size.
struct ObjectSize {
    name: &'static str,
    bytes: usize,
    objects: usize,
    /// Requests per round, enough for tens of milliseconds of CPU time.
    requests: u32,
    /// Minimum ratio of the gateway's request rate to nginx's.
    min_rate_ratio: f64,
}

const SIZES: [ObjectSize; 3] = [
    ObjectSize {
        name: "4 KB",
        bytes: 4_000,
        objects: 64,
        requests: 4_000,
        min_rate_ratio: 0.75,
    },
    ObjectSize {
        name: "100 KB",
        bytes: 100_000,
        objects: 64,
        requests: 1_500,
        min_rate_ratio: 1.3,
    },
    ObjectSize {
        name: "8 MiB",
        bytes: 8 << 20,
        objects: 4,
        requests: 48,
        min_rate_ratio: 1.3,
    },
];

/// Returns a table for each object size.
pub fn run(gateway: &Path, rounds: u32) -> Result<Vec<Table>> {
    let store = Store::launch()?;
    let gateway = Gateway::launch(gateway, [format!("--upstream=http://{}", store.address())])?;
    let nginx = Nginx::launch(store.address(), true)?;
    let unbuffered = Nginx::launch(store.address(), false)?;
    let proxies = [
        (GATEWAY, gateway.listen(), gateway.id()),
        (NGINX, nginx.address(), nginx.id()),
        (UNBUFFERED, unbuffered.address(), unbuffered.id()),
    ];
    SIZES
        .iter()
        .map(|size| measure(size, &store, &proxies, rounds))
        .collect()
}

fn measure(
    size: &ObjectSize,
    store: &Store,
    proxies: &[(&str, SocketAddr, u32)],
    rounds: u32,
) -> Result<Table> {
    report(&format!(
        "forwarding {}, {} requests a round",
        size.name, size.requests
    ));
    let keys: Vec<_> = (0..size.objects)
        .map(|index| format!("{}/{index}", size.bytes))
        .collect();
    for (index, key) in keys.iter().enumerate() {
        store.put(key, random_bytes(size.bytes, index))?;
    }
    let contenders = proxies.iter().map(|&(name, address, process)| {
        let requests = keys
            .iter()
            .map(|key| store.get(address, key, &[]))
            .collect::<Result<_>>()?;
        let mut load = Load::new(address, CONNECTIONS, requests, size.bytes as u64)?;
        let clock = CpuClock::for_process(process)?;
        Ok(Contender::new(name, move || {
            let time = clock.measure(|| load.send(size.requests))?;
            Ok(time.as_secs_f64() * 1e6 / f64::from(size.requests))
        }))
    });
    let measured = run_rounds(contenders.collect::<Result<_>>()?, rounds)?;
    let title = format!("Forwarding, GET of {}, {CONNECTIONS} connections", size.name);
    let mut table = Table::new(title, "CPU microseconds of the proxy per request", measured);
    // Rates are the inverse of costs, so the ratio of rates is nginx over the gateway.
    table.compare(
        GATEWAY,
        (NGINX, GATEWAY),
        "times nginx's rate",
        Some(Target::AtLeast(size.min_rate_ratio)),
    );
    table.compare(
        GATEWAY,
        (UNBUFFERED, GATEWAY),
        "times nginx's rate, unbuffered",
        None,
    );
    Ok(table)
}

/// Incompressible bytes.
fn random_bytes(length: usize, seed: usize) -> Vec<u8> {
    use rand::{RngCore, SeedableRng};
    let mut bytes = vec![0; length];
    rand::rngs::StdRng::seed_from_u64(seed as u64).fill_bytes(&mut bytes);
    bytes
}
