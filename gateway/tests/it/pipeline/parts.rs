//! Parts of data sets: batches whose values become one object of a store.

mod failures;
mod limits;
mod models;
mod uploads;
mod values;

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use md5::{Digest as _, Md5};
use pushdown::{
    Context, Pipeline, Sample,
    part::{PartFormat, PartNote, PartRow, PartWriter},
    wire::{
        BatchRequest, BatchSample, PartError, PartEvent, PartRequest, PartTarget, RefusedPart, WrittenPart,
    },
};
use pushdown_testkit::{Backend, Keys, Payload, Request, Response, Store};

use super::{binary, photo};

const BUCKET: &str = "/photos";
/// What the keys of all samples begin with.
const PREFIX: &str = "train/";
/// Where parts are written.
const PART: &str = "/photos/sets/part-00000";
const RESIZE: &str = "decode | resize(32, 24)";
const VALID: Duration = Duration::from_mins(5);

/// Keys of a store, and the gateway in front of it.
#[derive(Debug, Clone)]
struct Caller {
    keys: Keys,
    gateway: SocketAddr,
}

/// An object that a part has the value of.
#[derive(Debug, Clone)]
struct Object {
    path: String,
    etag: String,
    content: Vec<u8>,
}

impl Caller {
    fn request(&self, method: &str, path: &str) -> Request {
        Request::new(method, path).header("Host", &self.gateway.to_string())
    }

    /// Sends a signed request.
    fn send(&self, request: Request) -> Result<Response> {
        self.keys.sign(request, Payload::Signed)?.send(self.gateway)
    }

    /// Creates a bucket, or adds or replaces an object.
    fn put(&self, path: &str, content: impl Into<Vec<u8>>) -> Result<Object> {
        let content = content.into();
        let answer = self.send(self.request("PUT", path).body(content.clone()))?;
        ensure!(answer.status == 200, "{path}: {answer:?}");
        Ok(Object {
            path: path.to_owned(),
            etag: answer.header("etag").unwrap_or_default().to_owned(),
            content,
        })
    }

    /// The content of an object; `None` if it does not exist.
    fn get(&self, path: &str) -> Result<Option<Vec<u8>>> {
        let answer = self.send(self.request("GET", path))?;
        match answer.status {
            200 => Ok(Some(answer.body)),
            404 => Ok(None),
            _ => bail!("{path}: {answer:?}"),
        }
    }

    /// Photos of different sizes, below [`PREFIX`].
    fn put_photos(&self, count: u32) -> Result<Vec<Object>> {
        self.put(BUCKET, "")?;
        let photos = (0..count).map(|number| {
            let path = format!("{BUCKET}/{PREFIX}{number:03}.jpg");
            self.put(&path, photo(80 + number, 60, "jpeg"))
        });
        photos.collect()
    }

    /// A presigned PUT.
    fn target(&self, path: &str) -> Result<PartTarget> {
        let signed = self.keys.presign(self.request("PUT", path), VALID)?;
        let (path, query) = signed.target.split_once('?').context("no query")?;
        Ok(PartTarget {
            store: None,
            path: path.to_owned(),
            query: Some(query.to_owned()),
        })
    }

    /// A request for a part of these objects that is written to [`PART`].
    fn part(&self, pipeline: Pipeline, format: PartFormat, objects: &[Object]) -> Result<BatchRequest> {
        let (mut presign, mut samples) = (String::new(), Vec::new());
        // One signing time for all, so that the samples share the signing parameters.
        let signer = self.keys.with_time(std::time::SystemTime::now());
        for object in objects {
            let signed = signer.presign(self.request("GET", &object.path), VALID)?;
            let (path, query) = signed.target.split_once('?').context("no query")?;
            let (shared, signature) = query.split_once("&X-Amz-Signature=").context("no signature")?;
            shared.clone_into(&mut presign);
            samples.push(BatchSample {
                etag: Some(object.etag.clone()),
                ..BatchSample::new(path, signature)
            });
        }
        let mut request = BatchRequest::new(pipeline, presign, samples);
        (request.seed, request.epoch) = (Some(7), Some(2));
        request.part = Some(PartRequest {
            format,
            prefix: PREFIX.to_owned(),
            label: None,
            labels: Vec::new(),
            engine: None,
            target: Some(self.target(PART)?),
        });
        Ok(request)
    }

    fn post(&self, request: &BatchRequest) -> Result<Request> {
        Ok(self
            .request("POST", "/_pushdown/v1/batch")
            .body(request.to_json()?))
    }

    fn ask(&self, request: &BatchRequest) -> Result<Response> {
        self.post(request)?.send(self.gateway)
    }
}

/// The same request without a target.
fn trial(request: &BatchRequest) -> BatchRequest {
    let mut request = request.clone();
    if let Some(part) = &mut request.part {
        part.target = None;
    }
    request
}

/// All stores of tests, each with a gateway in front of it.
fn stores() -> Result<Vec<(Caller, Store)>> {
    let mut stores = Vec::new();
    for backend in [Backend::Embedded, Backend::SeaweedFs] {
        if backend.is_enabled()? {
            let store = backend.start(binary())?;
            let caller = Caller {
                keys: store.keys.clone(),
                gateway: store.gateway.listen(),
            };
            stores.push((caller, store));
        }
    }
    Ok(stores)
}

/// What happened to a part, in order.
pub(in crate::it) fn events(answer: &Response) -> Result<Vec<PartEvent>> {
    ensure!(answer.status == 200, "{}", answer.text());
    ensure!(answer.header("content-type") == Some("application/x-ndjson"));
    let text = answer.text();
    ensure!(text.ends_with('\n'), "{text}");
    Ok(text
        .lines()
        .map(serde_json::from_str)
        .collect::<serde_json::Result<_>>()?)
}

pub(in crate::it) fn written(answer: &Response) -> Result<WrittenPart> {
    match events(answer)?.pop() {
        Some(PartEvent::Written(part)) => Ok(part),
        other => bail!("expected a part, found {other:?}"),
    }
}

pub(in crate::it) fn refused(answer: &Response) -> Result<RefusedPart> {
    match events(answer)?.pop() {
        Some(PartEvent::Refused(part)) => Ok(part),
        other => bail!("expected a refusal, found {other:?}"),
    }
}

pub(in crate::it) fn md5(content: &[u8]) -> String {
    hex::encode(Md5::digest(content))
}

/// The part of a request as it is computed in this process, without the samples of these errors.
fn expected_part(request: &BatchRequest, contents: &[Vec<u8>], errors: &[PartError]) -> Result<Vec<u8>> {
    let part = request.part.as_ref().context("no part")?;
    let names = request.samples.iter().map(|sample| {
        let key = sample.path.split('/').skip(2).collect::<Vec<_>>().join("/");
        let name = key.strip_prefix(&part.prefix).context("another prefix")?;
        Ok(match &sample.member {
            Some(member) => format!("{name}/{member}"),
            None => name.to_owned(),
        })
    });
    let names: Vec<String> = names.collect::<Result<_>>()?;
    let spec = request.part_spec()?.context("no part")?;
    let mut writer = PartWriter::new(spec, names.iter().map(String::as_str))?;
    for (index, content) in contents.iter().enumerate() {
        if errors.iter().any(|error| error.row as usize == index) {
            continue;
        }
        let id = request.samples[index].id(None);
        let context = Context {
            seed: request.seed,
            epoch: request.epoch,
            ..Context::new(&id)
        };
        let object = Sample::Bytes(content.clone().into());
        let value = request
            .pipeline
            .run(0..request.pipeline.len(), object, &context)?;
        writer.push(&PartRow {
            index,
            label: part.labels.get(index),
            columns: Vec::new(),
            value: &value,
        })?;
    }
    let notes = errors.iter().map(|error| PartNote {
        name: names[error.row as usize].clone(),
        code: error.code.clone(),
        message: error.message.clone(),
    });
    Ok(writer.finish(&notes.collect::<Vec<_>>())?)
}

fn contents(objects: &[Object]) -> Vec<Vec<u8>> {
    objects.iter().map(|object| object.content.clone()).collect()
}
