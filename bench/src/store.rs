//! The object store behind both proxies: SeaweedFS.

use std::net::SocketAddr;

use anyhow::{Result, ensure};
use pushdown_testkit::{Keys, Payload, Request, Weed};

const BUCKET: &str = "bench";

/// A running store with one bucket.
#[derive(Debug)]
pub struct Store {
    weed: Weed,
    keys: Keys,
}

impl Store {
    /// Starts a store with an empty bucket.
    pub fn launch() -> Result<Self> {
        let keys = Keys::new("benchkey", "benchsecret");
        let store = Self {
            weed: Weed::launch(std::slice::from_ref(&keys))?,
            keys,
        };
        store.put("", Vec::new())?;
        Ok(store)
    }

    /// The address of its S3 API.
    pub fn address(&self) -> SocketAddr {
        self.weed.address()
    }

    /// The credentials that it accepts.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The path of an object in signed requests.
    pub fn path(key: &str) -> String {
        format!("/{BUCKET}/{key}")
    }

    /// Stores an object.
    pub fn put(&self, key: &str, body: Vec<u8>) -> Result<()> {
        let target = if key.is_empty() {
            format!("/{BUCKET}")
        } else {
            Self::path(key)
        };
        let request = Request::new("PUT", &target)
            .header("host", &self.address().to_string())
            .body(body);
        let response = self.keys.sign(request, Payload::Unsigned)?.send(self.address())?;
        ensure!(
            response.status == 200,
            "PUT {target}: {} {}",
            response.status,
            response.text()
        );
        Ok(())
    }

    /// The bytes of a signed GET through the proxy at `host`, with additional headers. The signature expires after 15 minutes.
    pub fn get(&self, host: SocketAddr, key: &str, headers: &[(&str, &str)]) -> Result<Vec<u8>> {
        let mut request = Request::new("GET", &Self::path(key)).header("host", &host.to_string());
        for (name, value) in headers
            .iter()
            .chain(&[("accept-encoding", "identity"), ("user-agent", "pushdown-bench")])
        {
            request = request.header(name, value);
        }
        Ok(self.keys.sign(request, Payload::Signed)?.head())
    }
}
