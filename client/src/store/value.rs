//! A request for the value of an object, and the gateway's answer.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header::ACCEPT};
use pushdown::{
    Limits, Pipeline, Sample,
    wire::{self, ObjectForm, StoreEndpoint},
};
use pushdown_s3::escapes::encode_for_header;

use super::gateway::Replica;
use crate::{
    error::{Error, Result},
    objects::{MemberRef, Object},
    transport::Answer,
};

/// A request for a value.
#[derive(Debug, Clone)]
pub struct ValueRequest<'a> {
    /// The pipeline to run.
    pub pipeline: &'a Pipeline,
    /// The stage to stop at.
    pub split: wire::Split,
    /// Seed of random steps without their own seed.
    pub seed: Option<u64>,
    /// Epoch for the random steps.
    pub epoch: Option<u32>,
    /// The `Accept` header; `None` for the gateway's default.
    pub accept: Option<&'a str>,
}

/// The gateway's answer as a stream, such as the rows of a table.
#[derive(Debug)]
pub struct ValueStream {
    /// Number of steps already applied to the value.
    pub stage: usize,
    /// `Content-Type`.
    pub content_type: String,
    pub(super) replica: Arc<Replica>,
    pub(super) answer: Answer,
}

/// The gateway's whole answer.
#[derive(Debug, Clone)]
pub struct Value {
    /// Number of steps already applied to the value.
    pub stage: usize,
    /// `Content-Type`.
    pub content_type: String,
    /// The answer's headers.
    pub headers: HeaderMap,
    /// The value in the requested form.
    pub body: Bytes,
}

impl ValueRequest<'_> {
    pub(super) fn headers(&self) -> Result<HeaderMap> {
        let mut headers = HeaderMap::new();
        let mut insert = |name: &'static str, value: String| {
            headers.extend([header(HeaderName::from_static(name), value)?]);
            Ok::<_, Error>(())
        };
        insert(wire::header::PIPELINE, self.pipeline.to_string())?;
        insert(wire::header::SPLIT, self.split.to_string())?;
        if let Some(seed) = self.seed {
            insert(wire::header::SEED, seed.to_string())?;
        }
        if let Some(epoch) = self.epoch {
            insert(wire::header::EPOCH, epoch.to_string())?;
        }
        headers.extend(self.accept_header()?);
        Ok(headers)
    }

    /// The `Accept` header, if set.
    pub(super) fn accept_header(&self) -> Result<HeaderMap> {
        let accept = self.accept.map(|accept| header(ACCEPT, accept.to_owned()));
        Ok(accept.transpose()?.into_iter().collect())
    }
}

/// # Errors
/// If HTTP does not allow the value in a header.
fn header(name: HeaderName, value: String) -> Result<(HeaderName, HeaderValue)> {
    let value = HeaderValue::try_from(value)
        .map_err(|error| Error::config(format!("{name} is not a valid header value")).with_source(error))?;
    Ok((name, value))
}

/// The header that states the store that a GET is signed for.
pub(super) fn store_header(store: &StoreEndpoint) -> Result<(HeaderName, HeaderValue)> {
    header(HeaderName::from_static(wire::header::STORE), store.to_string())
}

/// The header that asks for a form of the object.
pub(in crate::store) fn form_header(form: ObjectForm) -> Result<(HeaderName, HeaderValue)> {
    header(HeaderName::from_static(wire::header::FORM), form.to_string())
}

/// The headers that name the member of a shard; none for a whole object.
pub(super) fn member_headers(object: Object<'_>) -> Result<HeaderMap> {
    let Some(MemberRef { name, range }) = object.member else {
        return Ok(HeaderMap::new());
    };
    let headers = [
        (wire::header::MEMBER, encode_for_header(name)),
        (wire::header::OFFSET, range.offset().to_string()),
        (wire::header::SIZE, range.size().to_string()),
        (wire::header::HEADER_SIZE, range.header_bytes().to_string()),
        (
            wire::header::SHARD_ETAG,
            object.etag.unwrap_or_default().to_owned(),
        ),
    ];
    let header = |(name, value)| header(HeaderName::from_static(name), value);
    headers.into_iter().map(header).collect()
}

impl ValueStream {
    /// The next piece; `None` at the end of a complete value.
    ///
    /// # Errors
    /// [`Interrupted`](crate::ErrorKind::Interrupted) or [`Timeout`](crate::ErrorKind::Timeout) if the answer breaks off.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        self.answer.chunk().await
    }
}

impl Value {
    /// Decodes the value.
    ///
    /// # Errors
    /// [`Protocol`](crate::ErrorKind::Protocol) if the body does not match its headers.
    pub fn decode(&self, limits: &Limits) -> Result<Sample> {
        let header = |name: &str| self.headers.get(name).and_then(|value| value.to_str().ok());
        Ok(wire::decode(
            &self.content_type,
            header,
            self.body.clone(),
            limits,
        )?)
    }
}
