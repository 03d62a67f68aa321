//! The stores for tests of the gateway.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::gateway::Gateway;
use crate::real_store::RealStore;
use crate::sign::Keys;
use crate::world::{ACCESS_KEY, SECRET_KEY};

/// A kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// The embedded store of the gateway.
    Embedded,
    /// SeaweedFS.
    SeaweedFs,
}

/// A running store with a gateway in front of it.
#[derive(Debug)]
pub struct Store {
    /// The gateway.
    pub gateway: Gateway,
    /// The keys of the store.
    pub keys: Keys,
    /// The address of the store.
    pub address: SocketAddr,
    /// Ends with this value; the embedded store ends with the gateway.
    _running: Option<RealStore>,
}

impl Store {
    /// Starts a gateway in front of a running store, whose owner's keys it has.
    pub fn with_gateway(store: RealStore, gateway: &Path) -> Result<Self> {
        let address = store.address()?;
        Ok(Self {
            gateway: Gateway::launch(gateway, [format!("--upstream=http://{address}")])?,
            keys: store.owner.clone(),
            address,
            _running: Some(store),
        })
    }
}

impl Backend {
    /// Whether tests should use this backend: `PUSHDOWN_TEST_BACKENDS` is a comma-separated list; default: all. Reports a skipped
    /// backend on stderr.
    pub fn is_enabled(self) -> Result<bool> {
        let Some(list) = std::env::var_os("PUSHDOWN_TEST_BACKENDS") else {
            return Ok(true);
        };
        let list = list.to_str().context("PUSHDOWN_TEST_BACKENDS is not UTF-8")?;
        for name in list.split(',') {
            if ![Self::Embedded, Self::SeaweedFs]
                .iter()
                .any(|backend| backend.to_string() == name)
            {
                bail!("invalid PUSHDOWN_TEST_BACKENDS: expected embedded or seaweedfs, found `{name}`");
            }
        }
        let enabled = list.split(',').any(|name| name == self.to_string());
        if !enabled {
            report_skipped(self, list);
        }
        Ok(enabled)
    }

    /// Starts the store, and a gateway in front of it.
    pub fn start(self, gateway: &Path) -> Result<Store> {
        match self {
            Self::Embedded => {
                let keys = Keys::new(ACCESS_KEY, SECRET_KEY);
                let gateway = Gateway::embedded(gateway, &keys, [""; 0])?;
                let address = gateway.store().context("no store address in the ready file")?;
                Ok(Store {
                    gateway,
                    keys,
                    address,
                    _running: None,
                })
            }
            Self::SeaweedFs => Store::with_gateway(RealStore::seaweedfs()?, gateway),
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Embedded => "embedded",
            Self::SeaweedFs => "seaweedfs",
        })
    }
}

#[expect(clippy::print_stderr, reason = "a skipped test must be visible")]
fn report_skipped(backend: Backend, list: &str) {
    eprintln!("SKIPPED: tests with {backend}, because PUSHDOWN_TEST_BACKENDS={list}");
}
