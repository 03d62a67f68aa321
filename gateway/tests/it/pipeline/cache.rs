//! The result cache and single flight: what is shared, and that it is shared only with whom the store authorizes.

mod addresses;
mod adversary;
mod answers;
mod cells;
mod disk;
mod equality;
mod first_computation;
mod flights;
mod jobs;
mod memory;
mod remembered;
mod soak;
mod stores;
mod undelivered;

use anyhow::{Context as _, Result, ensure};
use pushdown::wire::{BatchReader, BatchRequest, BatchSample, CacheHints, Row};
use pushdown_testkit::{GOOD_SIGNATURE, Gateway, PolicyStore, Request, Response, signed_by};

pub(in crate::it) use adversary::{ATTACKS, Attack};

use super::{binary, expected, photo, pixels};

const PATH: &str = "/photos/cat.jpg";
const PIPELINE: &str = "decode | resize(short=64) | center_crop(48)";
const MEMORY: &str = "--cache-memory=64MiB";

/// A gateway in front of a store with a policy.
struct CacheLab {
    gateway: Gateway,
    store: PolicyStore,
    photo: Vec<u8>,
    /// All requests have it, since it is a part of an object's address.
    host: &'static str,
}

impl CacheLab {
    /// The store has one photo, at [`PATH`].
    fn new(flags: &[&str]) -> Result<Self> {
        let store = PolicyStore::start()?;
        let photo = photo(600, 400, "jpeg");
        store.put(PATH, "\"1\"", photo.clone());
        Ok(Self {
            gateway: launch(&store, flags)?,
            store,
            photo,
            host: "store",
        })
    }

    fn request(&self, pipeline: &str) -> Request {
        Request::new("GET", PATH)
            .header("Host", self.host)
            .header("x-pushdown-pipeline", pipeline)
            .header("Accept", "application/octet-stream")
    }

    /// A GET by an access key.
    fn get_by(&self, access_key: &str, pipeline: &str) -> Result<Response> {
        signed_by(self.request(pipeline), access_key, GOOD_SIGNATURE).send(self.gateway.listen())
    }

    /// A GET that is answered with a value.
    fn get(&self, pipeline: &str) -> Result<Response> {
        let answer = self.get_by("first", pipeline)?;
        ensure!(answer.status == 200, "{}", answer.text());
        Ok(answer)
    }

    /// Asks for the value twice: the first answer brings it into the cache.
    fn warm(&self, pipeline: &str) -> Result<Response> {
        self.get(pipeline)?;
        let answer = self.get(pipeline)?;
        ensure!(
            origin(&answer)? == "memory",
            "the value of {pipeline} is not cached"
        );
        Ok(answer)
    }

    /// The values of the gateway so far that came from `origin`.
    fn values(&self, origin: &str) -> Result<f64> {
        self.gateway
            .metric(&format!("pushdown_cache_values_total{{origin=\"{origin}\"}}"))
    }

    /// The rows of a batch with the same object `count` times, signed by an access key.
    fn rows(&self, access_key: &str, pipeline: &str, count: usize) -> Result<Vec<Row>> {
        let presign = format!(
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={access_key}%2F20260101%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20260101T000000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host"
        );
        let samples = vec![BatchSample::new(PATH, GOOD_SIGNATURE); count];
        let mut request = BatchRequest::new(pipeline.parse()?, presign, samples);
        request.cache = Some(CacheHints {
            epochs: 2,
            samples: 1,
        });
        let answer = Request::new("POST", "/_pushdown/v1/batch")
            .header("Host", self.host)
            .body(serde_json::to_vec(&request)?)
            .send(self.gateway.listen())?;
        ensure!(answer.status == 200, "{}", answer.text());
        let mut reader = BatchReader::new(pushdown::Limits::default());
        let rows = reader.push(answer.body.into())?;
        reader.finish()?;
        Ok(rows)
    }
}

fn launch(store: &PolicyStore, flags: &[&str]) -> Result<Gateway> {
    let upstream = format!("--upstream=http://{}", store.address());
    Gateway::launch(binary(), [&[upstream.as_str()], flags].concat())
}

/// Where the value of an answer came from.
fn origin(answer: &Response) -> Result<&str> {
    answer.header("x-pushdown-cache").context("no x-pushdown-cache")
}

/// The headers that must be equal, however an answer was made, and at whichever gateway.
fn constant_headers(answer: &Response) -> Vec<(String, String)> {
    let varies = |name: &str| {
        [
            "date",
            "server-timing",
            "x-pushdown-cache",
            "x-pushdown-cached-ratio",
            "x-pushdown-replica",
        ]
        .contains(&name)
    };
    let headers = answer.headers.iter();
    let mut headers: Vec<_> = headers
        .map(|(name, value)| (name.to_lowercase(), value.clone()))
        .filter(|(name, _)| !varies(name))
        .collect();
    headers.sort();
    headers
}
