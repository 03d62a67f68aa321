//! Readers with two addresses: requests state the store that they are signed for, and the gateway fetches exactly what was signed.

mod adversary;
mod certificates;
mod leaks;
mod parts;
mod refusals;
mod separation;
mod values;

use anyhow::{Context as _, Result, ensure};
use pushdown::wire::{BatchReader, BatchRequest, BatchSample, Row};
use pushdown_testkit::{GOOD_SIGNATURE, Gateway, PolicyStore, Request, Response};

use super::{
    binary,
    pipeline::{expected, photo, pixels},
};

const PIPELINE: &str = "decode | resize(short=64) | center_crop(48)";
const KEY: &str = "train/cat 1.jpg";
const STORE: &str = "x-pushdown-store";
const MEMORY: &str = "--cache-memory=64MiB";

/// Where a request names its bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// `/bucket/key`.
    Path,
    /// `bucket.localhost`.
    VirtualHost,
}

const STYLES: [Style; 2] = [Style::Path, Style::VirtualHost];

/// A gateway without an upstream, and a store that requests state.
struct StoresLab {
    store: PolicyStore,
    gateway: Gateway,
    style: Style,
}

impl StoresLab {
    fn new(style: Style, flags: &[&str]) -> Result<Self> {
        let store = PolicyStore::start()?;
        let port = store.address().port();
        let allowed = match style {
            Style::Path => vec![format!("--allow-store=http://127.0.0.1:{port}")],
            Style::VirtualHost => vec![
                format!("--allow-store=http://*.localhost:{port}"),
                "--allow-store-network=127.0.0.0/8".to_owned(),
            ],
        };
        let flags = allowed.iter().map(String::as_str).chain(flags.iter().copied());
        Ok(Self {
            gateway: Gateway::launch(binary(), flags)?,
            store,
            style,
        })
    }

    /// The `Host` header of the store.
    fn authority(&self) -> String {
        let port = self.store.address().port();
        match self.style {
            Style::Path => format!("127.0.0.1:{port}"),
            Style::VirtualHost => format!("photos.localhost:{port}"),
        }
    }

    /// The store as requests state it.
    fn stated(&self) -> String {
        let url = format!("http://{}", self.authority());
        match self.style {
            Style::Path => url,
            Style::VirtualHost => format!("{url}; bucket=photos"),
        }
    }

    /// The path of an object of the bucket `photos`.
    fn path(&self, key: &str) -> String {
        let key = key.replace(' ', "%20");
        match self.style {
            Style::Path => format!("/photos/{key}"),
            Style::VirtualHost => format!("/{key}"),
        }
    }

    fn put(&self, key: &str, etag: &str, body: impl Into<Vec<u8>>) {
        self.store.put(&self.path(key), etag, body);
    }

    /// A GET that an access key has presigned for the store.
    fn request(&self, access_key: &str, key: &str, pipeline: &str) -> Request {
        let target = format!("{}?{}", self.path(key), signed_query(access_key));
        get(&self.gateway, &target, pipeline).header(STORE, &self.stated())
    }

    /// The answer to it, which is a value.
    fn get(&self, key: &str, pipeline: &str) -> Result<Response> {
        let answer = self.request("first", key, pipeline).send(self.gateway.listen())?;
        ensure!(answer.status == 200, "{}", answer.text());
        Ok(answer)
    }

    /// A batch of these keys, presigned for the store by an access key.
    fn batch(&self, access_key: &str, keys: &[&str], pipeline: &str) -> Result<BatchRequest> {
        let samples = keys
            .iter()
            .map(|key| BatchSample::new(self.path(key), GOOD_SIGNATURE));
        let mut request = BatchRequest::new(pipeline.parse()?, presign(access_key), samples.collect());
        request.store = Some(self.stated().parse()?);
        Ok(request)
    }

    fn post(&self, request: &BatchRequest) -> Result<Response> {
        post(&self.gateway, request)
    }

    fn rows(&self, request: &BatchRequest) -> Result<Vec<Row>> {
        rows(&self.post(request)?)
    }
}

/// The query that an access key has signed, without the signature.
fn presign(access_key: &str) -> String {
    format!(
        "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={access_key}%2F20260101%2Fus-east-1%2Fs3%2Faws4_request\
         &X-Amz-Date=20260101T000000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host"
    )
}

fn signed_query(access_key: &str) -> String {
    format!("{}&X-Amz-Signature={GOOD_SIGNATURE}", presign(access_key))
}

/// A GET with a pipeline at the gateway, whose own name is its host.
fn get(gateway: &Gateway, target: &str, pipeline: &str) -> Request {
    Request::new("GET", target)
        .header("Host", &gateway.listen().to_string())
        .header("x-pushdown-pipeline", pipeline)
        .header("Accept", "application/octet-stream")
}

fn post(gateway: &Gateway, request: &BatchRequest) -> Result<Response> {
    Request::new("POST", "/_pushdown/v1/batch")
        .header("Host", &gateway.listen().to_string())
        .body(request.to_json()?)
        .send(gateway.listen())
}

fn rows(answer: &Response) -> Result<Vec<Row>> {
    ensure!(answer.status == 200, "{}", answer.text());
    let mut reader = BatchReader::new(pushdown::Limits::default());
    let rows = reader.push(answer.body.clone().into())?;
    reader.finish()?;
    Ok(rows)
}

/// Where the value of an answer came from.
fn origin(answer: &Response) -> Result<&str> {
    answer.header("x-pushdown-cache").context("no x-pushdown-cache")
}

fn code(answer: &Response) -> Option<String> {
    answer.element("Code")
}
