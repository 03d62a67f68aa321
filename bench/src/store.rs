//! The store that both proxies stand in front of: SeaweedFS, with the objects in it.

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
    /// Starts it, empty.
    pub fn launch() -> Result<Self> {
        let keys = Keys::new("benchkey", "benchsecret");
        let store = Self {
            weed: Weed::launch(std::slice::from_ref(&keys))?,
            keys,
        };
        store.put("", Vec::new())?;
        Ok(store)
    }

    /// Where it serves S3.
    pub fn address(&self) -> SocketAddr {
        self.weed.address()
    }

    /// The keys that it knows.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The path of an object, as it is signed.
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
        let answer = self.keys.sign(request, Payload::Unsigned)?.send(self.address())?;
        ensure!(
            answer.status == 200,
            "PUT {target}: {} {}",
            answer.status,
            answer.text()
        );
        Ok(())
    }

    /// The bytes of a signed GET through the proxy at `host`, with further headers. Good for 15 minutes.
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
