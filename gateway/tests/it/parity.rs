//! Law 3: the same signed bytes get the same answer from the store and through the gateway.
//!
//! Only values that differ between any two answers of the store are masked: dates and request ids. A request that changes
//! something runs twice, so times of modification and upload ids are masked too.

pub(super) mod compare;
mod reads;
mod writes;

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use pushdown_testkit::{Backend, Keys, Payload, RealStore, Request, Store};

use super::binary;

const BUCKET: &str = "/parity-bucket";

#[test]
fn the_gateway_answers_like_the_embedded_store() -> Result<()> {
    check_backend(Backend::Embedded)
}

#[test]
fn the_gateway_answers_like_seaweedfs() -> Result<()> {
    check_backend(Backend::SeaweedFs)
}

#[test]
#[ignore = "Ceph is not installed by default: make test-stores"]
fn the_gateway_answers_like_ceph() -> Result<()> {
    check(Store::with_gateway(RealStore::ceph()?, binary())?)
}

#[test]
#[ignore = "Garage is not installed by default: make test-stores"]
fn the_gateway_answers_like_garage() -> Result<()> {
    check(Store::with_gateway(RealStore::garage()?, binary())?)
}

fn check_backend(backend: Backend) -> Result<()> {
    if !backend.is_enabled()? {
        return Ok(());
    }
    check(backend.start(binary())?)
}

fn check(store: Store) -> Result<()> {
    let lab = Lab { store };
    lab.create_objects()?;
    let mut differences = Vec::new();
    let reads = reads::requests(&lab)?;
    let writes = writes::scenarios();
    let count = reads.len() + writes.len();
    ensure!(count >= 60, "only {count} requests");
    for (name, request) in reads {
        let direct = request
            .send(lab.store.address)
            .with_context(|| format!("{name}: direct"))?;
        let through = request
            .send(lab.store.gateway.listen())
            .with_context(|| format!("{name}: through"))?;
        differences.extend(compare::read_difference(name, &request, &direct, &through));
    }
    for (name, scenario) in writes {
        let direct = scenario(&lab, lab.store.address).with_context(|| format!("{name}: direct"))?;
        let through =
            scenario(&lab, lab.store.gateway.listen()).with_context(|| format!("{name}: through"))?;
        differences.extend(compare::write_difference(name, &direct, &through));
    }
    ensure!(
        differences.is_empty(),
        "{} of {count} differ:\n{}",
        differences.len(),
        differences.join("\n")
    );
    Ok(())
}

/// A store, a gateway with the store as its origin, and keys valid for both.
struct Lab {
    store: Store,
}

impl Lab {
    fn keys(&self) -> &Keys {
        &self.store.keys
    }

    /// A request with the gateway as its Host. Its bytes can be sent to the store or to the gateway.
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

    /// Creates the objects for the read requests.
    fn create_objects(&self) -> Result<()> {
        let direct = |request: Result<Request>| send_setup(self.store.address, &request?);
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

/// Sends a setup request and expects success.
fn send_setup(address: SocketAddr, request: &Request) -> Result<()> {
    let response = request.send(address)?;
    ensure!(
        response.status < 300,
        "{} {}: {response:?}",
        request.method,
        request.target
    );
    Ok(())
}

/// Keys in their percent-encoded form.
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
