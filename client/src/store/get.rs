//! Reads one object: as stored, or the value that a pipeline computes from it.

use std::{fmt, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header::ACCEPT};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use pushdown::{Engine, Limits, Pipeline, Sample, wire};

use super::Store;
use crate::{
    engine::check_engine,
    error::{Error, ErrorKind, Result},
    objects::{MemberRef, Object},
    sample_name::SampleName,
    sign::object_path,
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
    answer: Answer,
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

impl Store {
    /// Reads an object as stored.
    ///
    /// # Errors
    /// If the store refuses it, or the retries are exhausted.
    pub async fn get(&self, bucket: &str, key: &str, limits: &Limits) -> Result<Bytes> {
        let (path, about) = (object_path(bucket, key), format!("s3://{bucket}/{key}"));
        let answer = self
            .fetch(&path, &about, HeaderMap::new(), limits.max_object_bytes)
            .await?;
        Ok(answer.1)
    }

    /// Requests the value that the gateway computes from an object.
    ///
    /// # Errors
    /// If the gateway or the store refuses it; [`ErrorKind::NotAGateway`] if the endpoint sent the object itself.
    pub async fn get_value(
        &self,
        bucket: &str,
        key: &str,
        request: &ValueRequest<'_>,
        limits: &Limits,
    ) -> Result<Value> {
        let object = Object {
            key,
            bytes: None,
            etag: None,
            member: None,
        };
        self.get_sample_value(bucket, object, request, limits).await
    }

    /// The same of a sample: a whole object, or a member of a shard.
    ///
    /// # Errors
    /// As [`get_value`](Self::get_value); for a member also [`ErrorKind::NotAGateway`] if the gateway does not read members.
    pub async fn get_sample_value(
        &self,
        bucket: &str,
        object: Object<'_>,
        request: &ValueRequest<'_>,
        limits: &Limits,
    ) -> Result<Value> {
        let (path, name) = (object_path(bucket, object.key), SampleName::from(object));
        let mut headers = request.headers()?;
        headers.extend(member_headers(object)?);
        let max_bytes = limits.max_value_bytes.max(limits.max_object_bytes);
        let about = format!("s3://{bucket}/{name}");
        if object.member.is_some() {
            self.check_reads_members(&about).await?;
        }
        let (headers, body) = self.fetch(&path, &about, headers, max_bytes).await?;
        let (stage, content_type) = self.value_head(&headers)?;
        Ok(Value {
            stage,
            content_type,
            headers,
            body,
        })
    }

    /// The same as a stream. The request is retried until the answer begins, but not after that.
    ///
    /// # Errors
    /// As [`get_value`](Self::get_value).
    pub async fn stream_value(
        &self,
        bucket: &str,
        key: &str,
        request: &ValueRequest<'_>,
    ) -> Result<ValueStream> {
        let about = format!("s3://{bucket}/{key}");
        self.stream_at(&object_path(bucket, key), &about, request).await
    }

    /// The same for an object's path.
    pub(super) async fn stream_at(
        &self,
        path: &str,
        about: &str,
        request: &ValueRequest<'_>,
    ) -> Result<ValueStream> {
        let headers = request.headers()?;
        let answer = self.with_retries(about, || self.open(path, headers.clone()));
        self.value_stream(answer.await?)
    }

    /// The value in an answer.
    pub(super) fn value_stream(&self, answer: Answer) -> Result<ValueStream> {
        let (stage, content_type) = self.value_head(&answer.headers)?;
        Ok(ValueStream {
            stage,
            content_type,
            answer,
        })
    }

    /// Repeats `attempt` until it succeeds, fails permanently, or exhausts the retries.
    pub(super) async fn with_retries<T, A: Future<Output = Result<T, Failure>>>(
        &self,
        subject: &str,
        attempt: impl Fn() -> A,
    ) -> Result<T> {
        let mut backoff = self.backoff();
        loop {
            let (error, retry_after) = match attempt().await {
                Ok(done) => {
                    backoff.succeeded();
                    return Ok(done);
                }
                Err(failure) => failure.into_error(subject),
            };
            if !error.is_retryable() || !backoff.pause(&error, retry_after).await {
                return Err(error);
            }
        }
    }

    /// The stage and the content type of a value, from the headers of the gateway's answer.
    fn value_head(&self, headers: &HeaderMap) -> Result<(usize, String)> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let Some(stage) = text(wire::header::STAGE).and_then(|stage| stage.parse().ok()) else {
            let text = format!(
                "{} sent the object itself, so it is not a pushdown gateway: use plain mode",
                self.endpoint()
            );
            return Err(Error::new(ErrorKind::NotAGateway, text));
        };
        let content_type = text("content-type").unwrap_or_default().to_owned();
        // Engines of models are not compared: this host runs none on the value.
        let (host, gateway) = (Engine::all(), text(wire::header::ENGINE).unwrap_or("missing"));
        if let Err(why) = check_engine(&host, gateway) {
            tracing::warn!("{why}: values may differ from those computed on this host");
        }
        Ok((stage, content_type))
    }

    /// Checks that the endpoint is a gateway that reads members. Any other one would answer with the whole shard.
    async fn check_reads_members(&self, about: &str) -> Result<()> {
        let ask = || async { self.transport().known_features().await.map_err(Failure::from) };
        let features = self.with_retries(about, ask).await?;
        if features.is_some_and(|features| features.has(wire::Features::MEMBERS)) {
            return Ok(());
        }
        let text = format!(
            "{} does not read members of shards: its answers do not list the feature `members`; use plain mode",
            self.endpoint()
        );
        Err(Error::new(ErrorKind::NotAGateway, text))
    }

    async fn fetch(
        &self,
        path: &str,
        about: &str,
        headers: HeaderMap,
        limit: u64,
    ) -> Result<(HeaderMap, Bytes)> {
        self.with_retries(about, || self.attempt(path, headers.clone(), limit))
            .await
    }

    async fn attempt(
        &self,
        path: &str,
        headers: HeaderMap,
        limit: u64,
    ) -> Result<(HeaderMap, Bytes), Failure> {
        let mut answer = self.open(path, headers).await?;
        let headers = std::mem::take(&mut answer.headers);
        let body = answer.collect(limit).await?;
        body.map(|body| (headers, body)).ok_or(Failure::TooLarge(limit))
    }

    /// Sends a signed GET and waits for the head of its answer, with any status.
    pub(super) async fn send_get(&self, path: &str, headers: HeaderMap) -> Result<Answer, Failure> {
        let target = self.presigner().await?.target(path);
        let answer = self
            .transport()
            .send(Method::GET, &target, headers, Bytes::new())
            .await?;
        Ok(answer)
    }

    /// Sends a signed GET and waits for the head of a successful answer.
    pub(crate) async fn open(&self, path: &str, headers: HeaderMap) -> Result<Answer, Failure> {
        let answer = self.send_get(path, headers).await?;
        if answer.status.is_success() {
            Ok(answer)
        } else {
            Err(Failure::Refused(answer.refusal().await))
        }
    }
}

/// Why an attempt to read an object failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The endpoint answered with an error.
    Refused(crate::transport::Refusal),
    /// No complete answer arrived.
    Lost(Error),
    /// The answer exceeds this limit in bytes.
    TooLarge(u64),
    /// The shard is not the one of the list.
    Unusable(wire::RowError),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Lost(error) => error.fmt(f),
            Self::TooLarge(limit) => write!(f, "too large: expected at most {limit} bytes"),
            Self::Unusable(error) => error.fmt(f),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Lost(error)
    }
}

impl Failure {
    /// Whether another attempt may succeed, and the pause before it that the endpoint asks for.
    pub(crate) fn retry(&self) -> (bool, Option<Duration>) {
        match self {
            Self::Refused(refusal) => (refusal.is_transient(), refusal.retry_after),
            Self::Lost(error) => (error.is_retryable(), None),
            Self::TooLarge(_) | Self::Unusable(_) => (false, None),
        }
    }

    /// Converts to an error about `subject`, and the pause that the endpoint asks for.
    pub(super) fn into_error(self, subject: &str) -> (Error, Option<Duration>) {
        match self {
            Self::Refused(refusal) => {
                let retry_after = refusal.retry_after;
                (refusal.into_error(subject), retry_after)
            }
            Self::Lost(error) => (error, None),
            Self::TooLarge(limit) => (
                Error::new(
                    ErrorKind::Sample,
                    format!("{subject} is too large: expected at most {limit} bytes"),
                ),
                None,
            ),
            Self::Unusable(error) => (Error::new(ErrorKind::Sample, format!("{subject}: {error}")), None),
        }
    }
}

impl ValueRequest<'_> {
    fn headers(&self) -> Result<HeaderMap> {
        let mut headers = HeaderMap::new();
        let mut insert = |name: &'static str, value: String| {
            let value = HeaderValue::try_from(value).map_err(|error| {
                Error::config(format!("{name} is not a valid header value")).with_source(error)
            })?;
            headers.insert(HeaderName::from_static(name), value);
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
        let accept = self.accept.map(|accept| {
            HeaderValue::try_from(accept)
                .map_err(|error| Error::config("accept is not a valid header value").with_source(error))
        });
        Ok(accept
            .transpose()?
            .map(|accept| (ACCEPT, accept))
            .into_iter()
            .collect())
    }
}

/// The headers that name the member of a shard; none for a whole object.
fn member_headers(object: Object<'_>) -> Result<HeaderMap> {
    let Some(MemberRef { name, range }) = object.member else {
        return Ok(HeaderMap::new());
    };
    let headers = [
        (
            wire::header::MEMBER,
            utf8_percent_encode(name, NON_ALPHANUMERIC).to_string(),
        ),
        (wire::header::OFFSET, range.offset().to_string()),
        (wire::header::SIZE, range.size().to_string()),
        (wire::header::HEADER_SIZE, range.header_bytes().to_string()),
        (
            wire::header::SHARD_ETAG,
            object.etag.unwrap_or_default().to_owned(),
        ),
    ];
    let header = |(name, value): (&'static str, String)| {
        let value = HeaderValue::try_from(value).map_err(|error| {
            Error::config(format!("{name} is not a valid header value")).with_source(error)
        })?;
        Ok::<_, Error>((HeaderName::from_static(name), value))
    };
    headers.into_iter().map(header).collect()
}

impl ValueStream {
    /// The next piece; `None` at the end of a complete value.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] or [`ErrorKind::Timeout`] if the answer breaks off.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        self.answer.chunk().await
    }
}

impl Value {
    /// Decodes the value.
    ///
    /// # Errors
    /// [`ErrorKind::Protocol`] if the body does not match its headers.
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
