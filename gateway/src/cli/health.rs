//! `health`: checks a running gateway, for container health checks.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;

/// A gateway that takes longer to answer counts as unhealthy.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Enough for the head and the reason.
const MAX_ANSWER_BYTES: u64 = 16 << 10;

#[derive(Debug, Args)]
pub(super) struct HealthArguments {
    /// Address of the admin port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9901")]
    admin: SocketAddr,
    /// Also check that the store is reachable
    #[arg(long)]
    ready: bool,
}

impl HealthArguments {
    /// Fails unless the gateway reports that it is healthy.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let page = if self.ready { "/readyz" } else { "/healthz" };
        let unreachable = || format!("no gateway answers at {}", self.admin);
        let mut stream = TcpStream::connect_timeout(&self.admin, TIMEOUT).with_context(unreachable)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let host = self.admin;
        write!(
            stream,
            "GET {page} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        )
        .with_context(unreachable)?;
        let mut answer = String::new();
        stream
            .take(MAX_ANSWER_BYTES)
            .read_to_string(&mut answer)
            .with_context(unreachable)?;
        let (head, reason) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.lines().next().unwrap_or_default();
        if status.split(' ').nth(1) == Some("200") {
            return Ok(());
        }
        bail!(
            "unhealthy: expected status 200 for {page} at {host}, found `{status}`: {}",
            reason.trim()
        )
    }
}
