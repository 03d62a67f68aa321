//! Uploads with every kind of signed body. What is no honest body is in `lies`.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use pushdown_testkit::{Backend, Gateway, Payload, Raw, RealStore, Request, eventually};

use super::{BUCKET, Client, EVERYTHING, KeysFile, binary, key_block, launch, trainer};

/// Longest wait for the end of a request.
const LIMIT: Duration = Duration::from_secs(20);

pub(super) const PAYLOADS: [Payload; 5] = [
    Payload::Signed,
    Payload::Unsigned,
    Payload::Chunks,
    Payload::ChunksAndTrailer,
    Payload::Trailer,
];

/// Lengths of bodies in bytes: none, less than a chunk, one chunk, several.
const LENGTHS: [usize; 4] = [0, 1, 8192, 70_001];

/// A store with one bucket, and a gateway in front of it with a key that the store does not know.
pub(super) struct Lab {
    pub(super) direct: Client,
    pub(super) through: Client,
    gateway: Gateway,
    _store: RealStore,
    _keys_file: KeysFile,
}

impl Lab {
    /// Starts a gateway in front of the store, and creates the bucket.
    pub(super) fn new(store: RealStore) -> Result<Self> {
        let (address, keys) = (store.address()?, trainer());
        let keys_file = KeysFile::new(&[key_block(&keys, "gateway", &[EVERYTHING])])?;
        let gateway = launch(address, &store.owner, &keys_file, &[])?;
        let lab = Self {
            direct: Client::new(&store.owner, address),
            through: Client::new(&keys, gateway.listen()),
            gateway,
            _store: store,
            _keys_file: keys_file,
        };
        lab.direct.store(BUCKET, "")?;
        Ok(lab)
    }

    /// A signed upload through the gateway.
    pub(super) fn upload(&self, target: &str, payload: Payload, length: usize) -> Result<Request> {
        upload(&self.through, target, payload, length)
    }

    /// Checks what the store itself has: an object with this body, or none.
    pub(super) fn check_object(&self, target: &str, expected: Option<&[u8]>) -> Result<()> {
        let answer = self.direct.call("GET", target)?;
        let is_expected = match expected {
            Some(body) => answer.status == 200 && answer.body == body,
            None => answer.status == 404,
        };
        ensure!(
            is_expected,
            "{target}: expected {:?} bytes, found the status {} and {} bytes",
            expected.map(<[u8]>::len),
            answer.status,
            answer.body.len()
        );
        Ok(())
    }

    /// Waits until the gateway forwards nothing.
    fn wait_until_idle(&self) -> Result<()> {
        eventually("no request is in flight", LIMIT, || {
            let in_flight = self
                .gateway
                .metric("pushdown_requests_in_flight{kind=\"forward\"}")?;
            Ok((in_flight == 0.0).then_some(()))
        })
    }
}

/// A signed upload of `length` bytes, with the declarations of a trailer that SDKs send.
pub(super) fn upload(client: &Client, target: &str, payload: Payload, length: usize) -> Result<Request> {
    let request = client.request("PUT", target);
    let request = match payload {
        Payload::ChunksAndTrailer | Payload::Trailer => {
            request.header("x-amz-sdk-checksum-algorithm", "CRC32")
        }
        Payload::Signed | Payload::Unsigned | Payload::Chunks => request,
    };
    client.keys.sign(request.body(bytes(length)), payload)
}

/// A body that repeats only after 251 bytes.
pub(super) fn bytes(length: usize) -> Vec<u8> {
    (0..=250).cycle().take(length).collect()
}

#[test]
fn the_embedded_store_gets_what_was_signed() -> Result<()> {
    if !Backend::Embedded.is_enabled()? {
        return Ok(());
    }
    check(RealStore::embedded(binary())?)
}

#[test]
fn seaweedfs_gets_what_was_signed() -> Result<()> {
    if !Backend::SeaweedFs.is_enabled()? {
        return Ok(());
    }
    check(RealStore::seaweedfs()?)
}

#[test]
#[ignore = "JuiceFS is not installed by default: make test-full"]
fn juicefs_drops_uploads_that_end_early() -> Result<()> {
    check_disconnects(&Lab::new(RealStore::juicefs()?)?)
}

fn check(store: RealStore) -> Result<()> {
    let lab = Lab::new(store)?;
    for payload in PAYLOADS {
        check_uploads(&lab, payload).with_context(|| format!("{payload:?}"))?;
        check_expect(&lab, payload).with_context(|| format!("{payload:?}, Expect"))?;
    }
    check_disconnects(&lab).context("disconnects")
}

fn check_uploads(lab: &Lab, payload: Payload) -> Result<()> {
    for length in LENGTHS {
        let target = format!("{BUCKET}/{payload:?}/{length}");
        let answer = lab.upload(&target, payload, length)?.send(lab.through.address)?;
        ensure!(answer.status == 200, "{length} bytes: {}", answer.text());
        lab.check_object(&target, Some(&bytes(length)))?;
        // The framing is decoded by the gateway, or by the store.
        if !matches!(payload, Payload::ChunksAndTrailer | Payload::Trailer) {
            let head = lab.direct.call("HEAD", &target)?;
            let encoding = head.header("content-encoding").unwrap_or_default();
            ensure!(!encoding.contains("aws-chunked"), "{length} bytes: {encoding}");
        }
    }
    Ok(())
}

/// The body follows only after the store's 100.
fn check_expect(lab: &Lab, payload: Payload) -> Result<()> {
    let target = format!("{BUCKET}/{payload:?}/expected");
    let request = lab
        .upload(&target, payload, 10_000)?
        .header("Expect", "100-continue");
    let mut raw = Raw::connect(lab.through.address)?;
    raw.write(&request.head())?;
    let head = raw.head()?;
    ensure!(head.status == 100, "{head:?}");
    raw.write(&request.body)?;
    let answer = raw.read("PUT")?;
    ensure!(answer.status == 200, "{}", answer.text());
    lab.check_object(&target, Some(&bytes(10_000)))
}

/// A client that disconnects before its last byte leaves the old object.
fn check_disconnects(lab: &Lab) -> Result<()> {
    let old: &[u8] = b"the old object";
    let targets = PAYLOADS.map(|payload| (payload, format!("{BUCKET}/{payload:?}/cut")));
    for (payload, target) in &targets {
        lab.direct.store(target, old)?;
        let request = lab.upload(target, *payload, 70_001)?;
        let (sent, _) = request.body.split_at(request.body.len() - 1);
        let mut raw = Raw::connect(lab.through.address)?;
        raw.write(&request.head())?;
        raw.write(sent)?;
        drop(raw);
        lab.wait_until_idle()?;
        lab.check_object(target, Some(old))?;
    }
    // The gateway may have seen the last disconnects late.
    lab.wait_until_idle()?;
    for (_, target) in &targets {
        lab.check_object(target, Some(old))?;
    }
    Ok(())
}
