//! `health`: asks a running gateway how it is, for container health checks.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;

/// A gateway that does not answer by then is not well.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub(super) struct Health {
    /// Address of the admin port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9901")]
    admin: SocketAddr,
    /// Ask whether the store can be reached, too
    #[arg(long)]
    ready: bool,
}

impl Health {
    /// Succeeds where the gateway says that it is well.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let page = if self.ready { "/readyz" } else { "/healthz" };
        let unreachable = || format!("no gateway answers at {}", self.admin);
        let mut stream = TcpStream::connect_timeout(&self.admin, PATIENCE).with_context(unreachable)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let host = self.admin;
        write!(
            stream,
            "GET {page} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        )
        .with_context(unreachable)?;
        let mut status = String::new();
        BufReader::new(stream)
            .read_line(&mut status)
            .with_context(unreachable)?;
        if status.split(' ').nth(1) == Some("200") {
            return Ok(());
        }
        bail!("{page} at {host} answers `{}`, expected 200", status.trim_end())
    }
}
