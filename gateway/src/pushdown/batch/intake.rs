//! The body of a batch request: bounded, inflated, parsed.

use std::io::Read as _;

use bytes::{Buf as _, Bytes};
use flate2::bufread::GzDecoder;
use http::{header, request::Parts};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use pushdown::wire::BatchRequest;

use super::Pushdown;
use crate::{
    body::BoxError,
    compute::Tenant,
    error::{Error, ErrorKind, Result},
};

impl Pushdown {
    /// Reads and checks the request.
    pub(super) async fn intake<B>(&self, parts: &Parts, body: B) -> Result<BatchRequest>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
        B::Error: Into<BoxError>,
    {
        let limit = self.limits.batch_body_bytes;
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
        let bytes = collect(body, limit).await?;
        self.metrics.bytes_from_clients.inc_by(bytes.len() as u64);
        let request = match self.parse(bytes.clone(), gzip).await {
            // The pipeline may name a network that has not been looked at yet.
            Err(_) if !self.networks.are_ready() => {
                self.networks.ready(self.limits.queue_wait).await?;
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
        Ok(request)
    }

    /// Thousands of samples take milliseconds to parse: too long for the network's threads.
    async fn parse(&self, bytes: Bytes, gzip: bool) -> Result<BatchRequest> {
        let (limit, max_samples) = (self.limits.batch_body_bytes, self.limits.batch_samples);
        let networks = self.networks.clone();
        let parse = move || {
            let json = if gzip { inflate(bytes, limit)? } else { bytes };
            Ok(BatchRequest::parse(&json, max_samples, &networks)?)
        };
        self.cpu.run(&Tenant::default().now(), parse).await?
    }
}

async fn collect<B>(body: B, limit: u64) -> Result<Bytes>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    let limited = Limited::new(body, usize::try_from(limit).unwrap_or(usize::MAX));
    match limited.collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(too_large(limit)),
        Err(error) => Err(Error::new(ErrorKind::RequestTimeout, "the request broke off").with_source(error)),
    }
}

fn inflate(bytes: Bytes, limit: u64) -> Result<Bytes> {
    let mut inflated = Vec::new();
    GzDecoder::new(bytes.reader())
        .take(limit + 1)
        .read_to_end(&mut inflated)
        .map_err(|error| invalid(format!("the body is no gzip: {error}")))?;
    if inflated.len() as u64 > limit {
        Err(too_large(limit))
    } else {
        Ok(inflated.into())
    }
}

fn too_large(limit: u64) -> Error {
    Error::new(
        ErrorKind::EntityTooLarge,
        format!("the batch request has more than the limit of {limit} bytes"),
    )
}

fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidRequest, message)
}
