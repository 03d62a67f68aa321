//! Reads objects as fast as possible and discards them: the client of the forwarding and growth scenarios of `bench/e2e`.
//! Prints one line of JSON.

use std::env;
use std::io::{self, Write as _};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::Instant;

use anyhow::{Context as _, Result};
use clap::Parser;
use pushdown_bench::cpu::CpuClock;
use pushdown_bench::load::Load;
use pushdown_testkit::{Keys, Payload, Request, peak_memory};
use serde_json::json;

/// Read objects of one size over persistent connections, signed with the keys of the AWS environment variables
#[derive(Debug, Parser)]
struct Cli {
    /// Store, gateway or proxy, as http://HOST:PORT
    endpoint: String,
    /// The objects' bucket
    bucket: String,
    /// The objects are PREFIX/0, PREFIX/1 and so on
    prefix: String,
    /// Number of objects
    #[arg(long)]
    objects: usize,
    /// Size of each object, in bytes
    #[arg(long)]
    bytes: u64,
    /// Total number of requests
    #[arg(long)]
    requests: u32,
    /// Number of connections
    #[arg(long, default_value_t = 8)]
    connections: usize,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let host = cli
        .endpoint
        .strip_prefix("http://")
        .context("expected http://HOST:PORT")?;
    let address: SocketAddr = host
        .to_socket_addrs()?
        .next()
        .with_context(|| format!("{host} has no address"))?;
    let variable = |name: &str| env::var(name).with_context(|| format!("{name} is not set"));
    let keys = Keys::new(
        &variable("AWS_ACCESS_KEY_ID")?,
        &variable("AWS_SECRET_ACCESS_KEY")?,
    );
    let signed_request = |index: usize| {
        let request = Request::new("GET", &format!("/{}/{}/{index}", cli.bucket, cli.prefix))
            .header("host", host)
            .header("accept-encoding", "identity");
        Ok(keys.sign(request, Payload::Signed)?.head())
    };
    let requests = (0..cli.objects).map(signed_request).collect::<Result<_>>()?;
    let clock = CpuClock::for_process(std::process::id())?;
    let started = Instant::now();
    let mut load = Load::new(address, cli.connections, requests, cli.bytes)?;
    let mut first_seconds = 0.0;
    let cpu = clock.measure(|| {
        load.send(1)?;
        first_seconds = started.elapsed().as_secs_f64();
        load.send(cli.requests.saturating_sub(1))
    })?;
    let figures = json!({
        "samples": cli.requests,
        "errors": 0,
        "epoch_seconds": [started.elapsed().as_secs_f64()],
        "first_batch_seconds": first_seconds,
        "cpu_seconds": cpu.as_secs_f64(),
        "peak_bytes": peak_memory(std::process::id())?,
        "value_bytes": u64::from(cli.requests) * cli.bytes,
    });
    writeln!(io::stdout(), "{figures}")?;
    Ok(())
}
