//! The pipeline routes: one object, batches, tables and models, and what they refuse.

mod abandoned;
mod accounts;
mod admission;
mod bad_models;
mod batch;
mod batch_bodies;
mod cache;
mod cropped_jpeg;
mod demand;
mod external_models;
mod members;
mod memory_bounds;
mod micro_batches;
mod model_failures;
mod model_memory;
mod models;
mod object;
mod origins;
pub(super) mod parts;
mod providers;
mod refusals;
mod tables;
mod tenants;
mod warnings;
mod weight_eviction;

use std::net::SocketAddr;

use anyhow::{Result, ensure};
use pushdown::{Context, Image, Pipeline, Sample};
use pushdown_testkit::{Gateway, Keys, Payload, Request, Response};

use super::binary;
pub(super) use cache::{ATTACKS, Attack};

const BUCKET: &str = "/photos";
const SHORT: &str = "decode | resize(short=64) | center_crop(48)";

/// A gateway with the embedded store and one bucket.
struct Lab {
    gateway: Gateway,
    keys: Keys,
}

impl Lab {
    fn new(flags: &[&str]) -> Result<Self> {
        let keys = Keys::new("pushdowntestkey", "pushdowntestsecret");
        Self::with_gateway(Gateway::embedded(binary(), &keys, flags)?, keys)
    }

    fn with_gateway(gateway: Gateway, keys: Keys) -> Result<Self> {
        let lab = Self { gateway, keys };
        lab.put("", "")?;
        Ok(lab)
    }

    fn address(&self) -> SocketAddr {
        self.gateway.listen()
    }

    fn request(&self, method: &str, key: &str) -> Request {
        let target = format!("{BUCKET}{}{key}", if key.is_empty() { "" } else { "/" });
        Request::new(method, &target).header("Host", &self.address().to_string())
    }

    fn put(&self, key: &str, body: impl Into<Vec<u8>>) -> Result<()> {
        let response = self
            .keys
            .sign(self.request("PUT", key).body(body), Payload::Signed)?
            .send(self.address())?;
        ensure!(response.status == 200, "{response:?}");
        Ok(())
    }

    /// Sends a signed GET with a pipeline. The `unsigned` headers are added after signing.
    fn get(&self, key: &str, pipeline: &str, unsigned: &[(&str, &str)]) -> Result<Response> {
        self.send("GET", key, pipeline, unsigned)
    }

    fn send(&self, method: &str, key: &str, pipeline: &str, unsigned: &[(&str, &str)]) -> Result<Response> {
        let request = self.request(method, key).header("x-pushdown-pipeline", pipeline);
        let mut request = self.keys.sign(request, Payload::Signed)?;
        for (name, value) in unsigned {
            request = request.header(name, value);
        }
        request.send(self.address())
    }
}

/// An encoded photo of this size in pixels: a gradient with a pattern, so that neighbouring pixels differ.
#[expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failure to build a fixture is a bug in the test"
)]
pub(super) fn photo(width: u32, height: u32, encoding: &str) -> Vec<u8> {
    let mut pixels = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let pixel = [x * 255 / width, y * 255 / height, (x * 7 + y * 13) % 256];
            pixels.extend(pixel.map(|value| u8::try_from(value).unwrap_or(u8::MAX)));
        }
    }
    let image = Image::new(width, height, pixels).unwrap();
    let pipeline = Pipeline::parse(&format!("decode | encode({encoding})")).unwrap();
    match pipeline
        .run(1..2, Sample::Image(image), &Context::new(b""))
        .unwrap()
    {
        Sample::Bytes(bytes) => bytes.to_vec(),
        other => panic!("{other:?}"),
    }
}

/// Runs the pipeline on an object in this process and returns the value.
#[expect(
    clippy::unwrap_used,
    reason = "a failure to build a fixture is a bug in the test"
)]
pub(super) fn expected(object: &[u8], pipeline: &str) -> Sample {
    let pipeline = Pipeline::parse(pipeline).unwrap();
    pipeline
        .run(
            0..pipeline.len(),
            Sample::Bytes(object.to_vec().into()),
            &Context::new(b""),
        )
        .unwrap()
}

#[expect(
    clippy::panic,
    reason = "a value of another kind is the failure that the test detects"
)]
pub(super) fn pixels(sample: Sample) -> Vec<u8> {
    match sample {
        Sample::Image(image) => image.into_pixels(),
        other => panic!("{other:?}"),
    }
}
