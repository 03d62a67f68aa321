//! Law 3: the same signed bytes, sent to the store and through the gateway, are answered the same.
//!
//! Only what differs between any two answers of the store itself is masked: dates and request ids; and, where a
//! request changes something and so runs twice, times of modification and upload ids.

mod compare;
mod reads;
mod writes;

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use pushdown_testkit::{Backend, Keys, Payload, Request, Store};

use super::binary;

const BUCKET: &str = "/parity-bucket";

#[test]
fn the_embedded_store_cannot_be_told_from_the_gateway() -> Result<()> {
    check(Backend::Embedded)
}

#[test]
fn seaweedfs_cannot_be_told_from_the_gateway() -> Result<()> {
    check(Backend::SeaweedFs)
}

fn check(backend: Backend) -> Result<()> {
    if !backend.is_wanted()? {
        return Ok(());
    }
    let lab = Lab {
        store: backend.start(binary())?,
    };
    lab.furnish()?;
    let mut differences = Vec::new();
    let reads = reads::all(&lab)?;
    let writes = writes::all();
    let count = reads.len() + writes.len();
    ensure!(count >= 60, "only {count} requests");
    for (name, request) in reads {
        let direct = request
            .send(lab.store.address)
            .with_context(|| format!("{name}: direct"))?;
        let through = request
            .send(lab.store.gateway.listen())
            .with_context(|| format!("{name}: through"))?;
        differences.extend(compare::read(name, &request, &direct, &through));
    }
    for (name, life) in writes {
        let direct = life(&lab, lab.store.address).with_context(|| format!("{name}: direct"))?;
        let through = life(&lab, lab.store.gateway.listen()).with_context(|| format!("{name}: through"))?;
        differences.extend(compare::write(name, &direct, &through));
    }
    ensure!(
        differences.is_empty(),
        "{} of {count} differ:\n{}",
        differences.len(),
        differences.join("\n")
    );
    Ok(())
}

/// A store with a gateway in front, and keys to both.
struct Lab {
    store: Store,
}

impl Lab {
    fn keys(&self) -> &Keys {
        &self.store.keys
    }

    /// A request for the gateway's Host, wherever its bytes will be sent.
    fn request(&self, method: &str, target: &str) -> Request {
        Request::new(method, target).header("Host", &self.store.gateway.listen().to_string())
    }

    fn signed(&self, method: &str, target: &str) -> Result<Request> {
        self.keys().sign(self.request(method, target), Payload::Signed)
    }

    fn put(&self, target: &str, body: impl Into<Vec<u8>>) -> Result<Request> {
        self.keys()
            .sign(self.request("PUT", target).body(body), Payload::Signed)
    }

    /// What the read requests read.
    fn furnish(&self) -> Result<()> {
        let direct = |request: Result<Request>| arrange(self.store.address, &request?);
        direct(self.put(BUCKET, ""))?;
        direct(self.put(&format!("{BUCKET}/plain"), "0123456789abcdef"))?;
        direct(self.put(&format!("{BUCKET}/empty"), ""))?;
        direct(self.put(&format!("{BUCKET}/large"), vec![b'x'; 1 << 20]))?;
        for (index, key) in ODD_KEYS.into_iter().enumerate() {
            direct(self.put(&format!("{BUCKET}/{key}"), format!("odd {index}")))
                .with_context(|| format!("the key {key}"))?;
        }
        Ok(())
    }
}

/// Sends and expects success: for what is not under test.
fn arrange(address: SocketAddr, request: &Request) -> Result<()> {
    let response = request.send(address)?;
    ensure!(
        response.status < 300,
        "{} {}: {response:?}",
        request.method,
        request.target
    );
    Ok(())
}

/// Keys as they stand on the wire.
const ODD_KEYS: [&str; 8] = [
    "with%20space",
    "with%2Bplus",
    "with%25percent",
    "gr%C3%BC%C3%9Fe/%E6%97%A5%E6%9C%AC",
    "deep/er/still",
    "semi%3Bcolon%2Ccomma%3Dequals",
    "tilde~dash-dot.under_",
    "quote%27paren%28%29star%2Abang%21",
];
