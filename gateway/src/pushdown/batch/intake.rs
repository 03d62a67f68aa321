//! A batch request: collected, inflated, parsed, checked, each step within the memory budget.

use std::{io::Read as _, ops::Deref};

use bytes::{Buf as _, Bytes};
use flate2::bufread::GzDecoder;
use http::{header, request::Parts};
use pushdown::wire::{BatchRequest, BatchSample};

use super::{
    Pushdown,
    body::{BodyLimits, Permits, collect, too_large},
};
use crate::{
    body::BoxError,
    compute::Tenant,
    error::{Error, ErrorKind, Result},
};

/// A batch request that holds the memory for its own bytes.
#[derive(Debug)]
pub(in crate::pushdown) struct HeldRequest {
    request: BatchRequest,
    _permits: Permits,
}

impl Deref for HeldRequest {
    type Target = BatchRequest;

    fn deref(&self) -> &BatchRequest {
        &self.request
    }
}

impl Pushdown {
    /// Reads and checks the request.
    pub(super) async fn intake<B>(&self, parts: &Parts, body: B) -> Result<HeldRequest>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
        B::Error: Into<BoxError>,
    {
        let limits = BodyLimits {
            bytes: self.limits.batch_body_bytes,
            idle: self.limits.batch_body_idle_timeout,
            total: self.limits.batch_body_timeout,
        };
        let gzip = match parts
            .headers
            .get(header::CONTENT_ENCODING)
            .map(http::HeaderValue::as_bytes)
        {
            None | Some(b"identity") => false,
            Some(b"gzip") => true,
            Some(other) => {
                let other = String::from_utf8_lossy(other);
                return Err(invalid(format!(
                    "the Content-Encoding is `{other}`, expected gzip or none"
                )));
            }
        };
        let (bytes, mut permits) = collect(&self.memory, body, limits).await?;
        self.metrics.bytes_from_clients.inc_by(bytes.len() as u64);
        // What is inflated, and what is parsed, which has at most as many bytes as its JSON.
        let inflated = if gzip { limits.bytes } else { 0 };
        let parsed = inflated.max(bytes.len() as u64);
        permits.acquire(&self.memory, inflated + parsed).await?;
        let request = match self.parse(bytes.clone(), gzip).await {
            // The pipeline may name a model that has not been looked at yet.
            Err(_) if !self.models.are_ready() => {
                self.models.ready(self.limits.queue_wait).await?;
                self.parse(bytes, gzip).await
            }
            request => request,
        }?;
        if request.samples.iter().any(|sample| sample.member.is_some()) {
            return Err(invalid(
                "members of shard objects are not served by this version: leave `member` out",
            ));
        }
        for sample in &request.samples {
            if let split @ (pushdown::wire::Split::Full | pushdown::wire::Split::At(_)) =
                sample.split.unwrap_or(request.split)
            {
                let stage = split.resolve(&request.pipeline, &pushdown::BytesKind::default())?;
                request
                    .pipeline
                    .check_randomness(stage, request.seed, request.epoch)?;
            }
        }
        permits.shrink_to(bytes_of(&request));
        Ok(HeldRequest {
            request,
            _permits: permits,
        })
    }

    /// Thousands of samples take milliseconds to parse: too long for the I/O threads.
    async fn parse(&self, bytes: Bytes, gzip: bool) -> Result<BatchRequest> {
        let (limit, max_samples) = (self.limits.batch_body_bytes, self.limits.batch_samples);
        let models = self.models.clone();
        let parse = move || {
            let json = if gzip { inflate(bytes, limit)? } else { bytes };
            Ok(BatchRequest::parse(&json, max_samples, &models)?)
        };
        self.cpu.run(&Tenant::default().now(), parse).await?
    }
}

/// The memory of a parsed request, in bytes.
fn bytes_of(request: &BatchRequest) -> u64 {
    let texts = request.samples.iter().map(|sample| {
        let BatchSample {
            path,
            signature,
            member,
            version,
            split: _,
            max_bytes: _,
        } = sample;
        let optional = [member, version].into_iter().flatten().map(String::len);
        size_of::<BatchSample>() + path.len() + signature.len() + optional.sum::<usize>()
    });
    (texts.sum::<usize>() + request.presign.len()) as u64
}

fn inflate(bytes: Bytes, limit: u64) -> Result<Bytes> {
    let mut inflated = Vec::new();
    GzDecoder::new(bytes.reader())
        .take(limit + 1)
        .read_to_end(&mut inflated)
        .map_err(|error| invalid(format!("invalid body: expected gzip, found {error}")))?;
    if inflated.len() as u64 > limit {
        Err(too_large(limit))
    } else {
        Ok(inflated.into())
    }
}

fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidRequest, message)
}
