//! Replicas: several gateways in front of one store.

use std::{
    ffi::OsStr,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
};

use anyhow::{Result, bail};

use crate::gateway::Gateway;

/// Ports that are tried, if the first ones are in use at some address.
const TRIED_PORTS: usize = 16;

/// How a replica starts, and starts again.
#[derive(Debug, Clone)]
pub struct Replica {
    /// Address of its S3 endpoint.
    pub listen: SocketAddr,
    /// Its id among the replicas.
    pub id: String,
    /// Versions of step families that it states instead of its own, such as `resample=99`; none if empty. It must be a debug build.
    pub stated_versions: String,
}

impl Replica {
    /// Replicas `replica-0`, `replica-1` and so on, at 127.0.0.2, .3 and so on: one free port at all addresses, as of one name.
    ///
    /// # Errors
    /// If no port is free at all of them.
    pub fn list(count: u8) -> Result<Vec<Self>> {
        let address = |index: u8| Ipv4Addr::new(127, 0, 0, 2 + index);
        for _ in 0..TRIED_PORTS {
            let first = TcpListener::bind((address(0), 0))?;
            let port = first.local_addr()?.port();
            let others: Result<Vec<_>, _> = (1..count)
                .map(|index| TcpListener::bind((address(index), port)))
                .collect();
            if others.is_ok() {
                let replica = |index| Self {
                    listen: (address(index), port).into(),
                    id: format!("replica-{index}"),
                    stated_versions: String::new(),
                };
                return Ok((0..count).map(replica).collect());
            }
        }
        bail!("found no port that is free at {count} addresses in {TRIED_PORTS} attempts");
    }

    /// Starts `binary serve` as this replica with additional flags, and waits until it serves.
    pub fn launch<S: AsRef<str>>(
        &self,
        binary: &Path,
        flags: impl IntoIterator<Item = S>,
    ) -> Result<Gateway> {
        let mut all = vec![
            format!("--listen={}", self.listen),
            format!("--replica-id={}", self.id),
        ];
        all.extend(flags.into_iter().map(|flag| flag.as_ref().to_owned()));
        let versions = ("PUSHDOWN_TEST_ENGINE_FAMILY", OsStr::new(&self.stated_versions));
        let environment = if self.stated_versions.is_empty() {
            &[][..]
        } else {
            &[versions][..]
        };
        Gateway::launch_with(binary, all, environment)
    }
}
