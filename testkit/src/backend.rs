//! The stores that tests run in front of.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::gateway::Gateway;
use crate::sign::Keys;
use crate::weed::Weed;

/// A kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// The gateway's own embedded store.
    Embedded,
    /// SeaweedFS.
    SeaweedFs,
}

/// A running store with a gateway in front of it.
#[derive(Debug)]
pub struct Store {
    /// The gateway.
    pub gateway: Gateway,
    /// The keys that the store knows.
    pub keys: Keys,
    /// The store's own socket.
    pub address: SocketAddr,
    _weed: Option<Weed>,
}

impl Backend {
    /// Whether this run is to test it: `PUSHDOWN_TEST_BACKENDS` names some, separated by commas; all by default.
    /// One that is left out says so.
    pub fn is_wanted(self) -> Result<bool> {
        let Some(list) = std::env::var_os("PUSHDOWN_TEST_BACKENDS") else {
            return Ok(true);
        };
        let list = list.to_str().context("PUSHDOWN_TEST_BACKENDS is not text")?;
        for name in list.split(',') {
            if ![Self::Embedded, Self::SeaweedFs]
                .iter()
                .any(|backend| backend.to_string() == name)
            {
                bail!("PUSHDOWN_TEST_BACKENDS: `{name}` is neither embedded nor seaweedfs");
            }
        }
        let wanted = list.split(',').any(|name| name == self.to_string());
        if !wanted {
            skipped(self, list);
        }
        Ok(wanted)
    }

    /// Starts it, and a gateway in front of it.
    pub fn start(self, gateway: &Path) -> Result<Store> {
        let keys = Keys::new("pushdowntestkey", "pushdowntestsecret");
        match self {
            Self::Embedded => {
                let gateway = Gateway::embedded(gateway, &keys, [""; 0])?;
                let address = gateway.store().context("no store's address in the ready file")?;
                Ok(Store {
                    gateway,
                    keys,
                    address,
                    _weed: None,
                })
            }
            Self::SeaweedFs => {
                let weed = Weed::launch(std::slice::from_ref(&keys))?;
                let address = weed.address();
                let gateway = Gateway::launch(gateway, [format!("--upstream=http://{address}")])?;
                Ok(Store {
                    gateway,
                    keys,
                    address,
                    _weed: Some(weed),
                })
            }
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

#[expect(clippy::print_stderr, reason = "a test that was left out must be seen")]
fn skipped(backend: Backend, list: &str) {
    eprintln!("SKIPPED: no test in front of {backend}, because PUSHDOWN_TEST_BACKENDS={list}");
}
