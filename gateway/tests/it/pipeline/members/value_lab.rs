//! Stores with a gateway in front of them: the embedded store, and SeaweedFS.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context as _, Result, ensure};
use pushdown::wire::{BatchRequest, BatchSample};
use pushdown_testkit::{Backend, Keys, Payload, Request, Response, Store};

use super::{Member, post};
use crate::it::binary;

const BUCKET: &str = "/photos";
pub(super) const VALID: Duration = Duration::from_mins(10);

/// A store with a gateway in front of it. Requests go to the gateway.
pub(super) struct ValueLab(Store);

impl ValueLab {
    /// The address of the gateway.
    pub(super) fn address(&self) -> SocketAddr {
        self.0.gateway.listen()
    }

    pub(super) fn request(&self, method: &str, key: &str) -> Request {
        let slash = if key.is_empty() { "" } else { "/" };
        let host = self.address().to_string();
        Request::new(method, &format!("{BUCKET}{slash}{key}")).header("Host", &host)
    }

    pub(super) fn keys(&self) -> &Keys {
        &self.0.keys
    }

    pub(super) fn put(&self, key: &str, body: &[u8]) -> Result<()> {
        let request = self.request("PUT", key).body(body);
        let answer = self.keys().sign(request, Payload::Signed)?;
        let answer = answer.send(self.address())?;
        ensure!(answer.status == 200, "{key}: {}", answer.text());
        Ok(())
    }

    pub(super) fn etag(&self, key: &str) -> Result<String> {
        let request = self.keys().sign(self.request("HEAD", key), Payload::Signed)?;
        let answer = request.send(self.address())?;
        Ok(answer.header("etag").context("no ETag")?.to_owned())
    }

    /// A request with a pipeline for an object, or for a member of it.
    pub(super) fn ask(
        &self,
        method: &str,
        key: &str,
        pipeline: &str,
        split: &str,
        member: Option<(&Member, &str)>,
    ) -> Result<Response> {
        let request = self.request(method, key);
        let request = if method == "GET" {
            self.keys().presign(request, VALID)?
        } else {
            self.keys().sign(request, Payload::Signed)?
        };
        let request = request
            .header("x-pushdown-pipeline", pipeline)
            .header("x-pushdown-split", split)
            .header("x-pushdown-seed", "7")
            .header("x-pushdown-epoch", "3");
        let request = match member {
            Some((member, etag)) => member.name_in(request, Some(etag)),
            None => request,
        };
        request.send(self.address())
    }

    /// A batch of members, which is presigned.
    pub(super) fn batch(
        &self,
        key: &str,
        pipeline: &str,
        members: &[Member],
        etag: &str,
    ) -> Result<BatchRequest> {
        let signed = self.keys().presign(self.request("GET", key), VALID)?;
        let (path, query) = signed.target.split_once('?').context("no query")?;
        let (presign, signature) = query.split_once("&X-Amz-Signature=").context("no signature")?;
        let shard = BatchSample::new(path, signature);
        let samples = members.iter().map(|member| member.sample(&shard, etag)).collect();
        let mut request = BatchRequest::new(pipeline.parse()?, presign, samples);
        (request.seed, request.epoch) = (Some(7), Some(3));
        Ok(request)
    }

    pub(super) fn send(&self, request: &BatchRequest) -> Result<Response> {
        let address = self.address();
        post(&address.to_string(), request)?.send(address)
    }
}

/// Runs a check on a store.
pub(super) fn on(backend: Backend, check: impl Fn(&ValueLab) -> Result<()>) -> Result<()> {
    if !backend.is_enabled()? {
        return Ok(());
    }
    let lab = ValueLab(backend.start(binary())?);
    lab.put("", b"")?;
    check(&lab).with_context(|| backend.to_string())
}

/// Two tests of each check: on SeaweedFS, and in `make test-full` on the embedded store.
macro_rules! on_each_store {
    ($($check:ident),+ $(,)?) => {$(
        mod $check {
            use pushdown_testkit::Backend;

            #[test]
            fn on_seaweedfs() -> anyhow::Result<()> {
                super::$check(Backend::SeaweedFs)
            }

            #[test]
            #[ignore = "a second store: make test-full"]
            fn on_the_embedded_store() -> anyhow::Result<()> {
                super::$check(Backend::Embedded)
            }
        }
    )+};
}
pub(super) use on_each_store;
