//! One object: as it is stored, or what a pipeline makes of it.

use std::fmt;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header::ACCEPT};
use pushdown::{Engine, Limits, Pipeline, Sample, wire};

use super::Store;
use crate::{
    engine::beside,
    error::{Error, ErrorKind, Result},
    sign::object_path,
    transport::Answer,
};

/// What to ask the gateway for.
#[derive(Debug, Clone)]
pub struct GetValue<'a> {
    /// What to compute.
    pub pipeline: &'a Pipeline,
    /// Where to stop.
    pub split: wire::Split,
    /// Seed of the random steps that have none of their own.
    pub seed: Option<u64>,
    /// Epoch for the random steps.
    pub epoch: Option<u32>,
    /// The `Accept` header; `None` for the gateway's default.
    pub accept: Option<&'a str>,
}

/// What the gateway answers, as it comes: the rows of a table, say.
#[derive(Debug)]
pub struct ValueStream {
    /// How many steps the value has been through.
    pub stage: usize,
    /// `Content-Type`.
    pub content_type: String,
    answer: Answer,
}

/// What the gateway answered.
#[derive(Debug, Clone)]
pub struct Value {
    /// How many steps the value has been through.
    pub stage: usize,
    /// `Content-Type`.
    pub content_type: String,
    /// The answer's headers.
    pub headers: HeaderMap,
    /// The value in the form that was asked for.
    pub body: Bytes,
}

impl Store {
    /// The object as it is stored.
    ///
    /// # Errors
    /// As the store refuses it, or when it cannot be had after retries.
    pub async fn get(&self, bucket: &str, key: &str, limits: &Limits) -> Result<Bytes> {
        let answer = self
            .fetch(bucket, key, HeaderMap::new(), limits.max_object_bytes)
            .await?;
        Ok(answer.1)
    }

    /// What the gateway makes of the object.
    ///
    /// # Errors
    /// As the gateway or the store refuses it; [`ErrorKind::NotAGateway`] when the endpoint sent the object
    /// itself.
    pub async fn get_value(
        &self,
        bucket: &str,
        key: &str,
        what: &GetValue<'_>,
        limits: &Limits,
    ) -> Result<Value> {
        let headers = what.headers()?;
        let (headers, body) = self
            .fetch(
                bucket,
                key,
                headers,
                limits.max_value_bytes.max(limits.max_object_bytes),
            )
            .await?;
        let (stage, content_type) = self.value_head(&headers)?;
        Ok(Value {
            stage,
            content_type,
            headers,
            body,
        })
    }

    /// What the gateway makes of the object, in pieces. It is tried again until the answer begins, and not after that.
    ///
    /// # Errors
    /// As [`get_value`](Self::get_value).
    pub async fn stream_value(&self, bucket: &str, key: &str, what: &GetValue<'_>) -> Result<ValueStream> {
        let about = format!("s3://{bucket}/{key}");
        self.stream_at(&object_path(bucket, key), &about, what).await
    }

    /// The same of an object at a path.
    pub(super) async fn stream_at(
        &self,
        path: &str,
        about: &str,
        what: &GetValue<'_>,
    ) -> Result<ValueStream> {
        let headers = what.headers()?;
        let answer = self.retrying(about, || self.open(path, headers.clone()));
        self.value_stream(answer.await?)
    }

    /// The value that an answer brings.
    pub(super) fn value_stream(&self, answer: Answer) -> Result<ValueStream> {
        let (stage, content_type) = self.value_head(&answer.headers)?;
        Ok(ValueStream {
            stage,
            content_type,
            answer,
        })
    }

    /// Tries until it is done, or until it is no use.
    pub(super) async fn retrying<T, A: Future<Output = Result<T, Failure>>>(
        &self,
        what: &str,
        attempt: impl Fn() -> A,
    ) -> Result<T> {
        let mut backoff = self.backoff();
        loop {
            let (error, asked) = match attempt().await {
                Ok(done) => {
                    backoff.succeeded();
                    return Ok(done);
                }
                Err(failure) => failure.into_error(what),
            };
            if !error.is_retryable() || !backoff.pause(&error, asked).await {
                return Err(error);
            }
        }
    }

    /// The stage and the type of a value, by the headers of the gateway's answer.
    fn value_head(&self, headers: &HeaderMap) -> Result<(usize, String)> {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let Some(stage) = text(wire::header::STAGE).and_then(|stage| stage.parse().ok()) else {
            let text = format!(
                "{} sent the object itself: it is no pushdown gateway; use plain mode",
                self.endpoint()
            );
            return Err(Error::new(ErrorKind::NotAGateway, text));
        };
        let content_type = text("content-type").unwrap_or_default().to_owned();
        // Models do not count: none runs here on what comes.
        let (here, gateway) = (Engine::default(), text(wire::header::ENGINE).unwrap_or("none"));
        if let Err(why) = beside(&here, gateway) {
            tracing::warn!("{why}: its values may differ from those computed here");
        }
        Ok((stage, content_type))
    }

    async fn fetch(
        &self,
        bucket: &str,
        key: &str,
        headers: HeaderMap,
        limit: u64,
    ) -> Result<(HeaderMap, Bytes)> {
        let (path, about) = (object_path(bucket, key), format!("s3://{bucket}/{key}"));
        self.retrying(&about, || self.attempt(&path, headers.clone(), limit))
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

    /// Sends a signed GET and waits for the answer, whatever it is.
    pub(super) async fn ask(&self, path: &str, headers: HeaderMap) -> Result<Answer, Failure> {
        let target = self.presigner().await?.target(path);
        let answer = self
            .transport()
            .send(Method::GET, &target, headers, Bytes::new())
            .await?;
        Ok(answer)
    }

    /// Sends a signed GET and waits for an answer that is none of an error.
    pub(crate) async fn open(&self, path: &str, headers: HeaderMap) -> Result<Answer, Failure> {
        let answer = self.ask(path, headers).await?;
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
    /// There was no whole answer.
    Lost(Error),
    /// The answer has more bytes than the limit.
    TooLarge(u64),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Lost(error) => error.fmt(f),
            Self::TooLarge(limit) => write!(f, "more than the limit of {limit} bytes"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Lost(error)
    }
}

impl Failure {
    /// As an error about an object, and the pause that the endpoint asks for.
    pub(super) fn into_error(self, what: &str) -> (Error, Option<std::time::Duration>) {
        match self {
            Self::Refused(refusal) => {
                let asked = refusal.retry_after;
                (refusal.into_error(what), asked)
            }
            Self::Lost(error) => (error, None),
            Self::TooLarge(limit) => (
                Error::new(
                    ErrorKind::Sample,
                    format!("{what} has more than the limit of {limit} bytes"),
                ),
                None,
            ),
        }
    }
}

impl GetValue<'_> {
    fn headers(&self) -> Result<HeaderMap> {
        let mut headers = HeaderMap::new();
        let mut insert = |name: &'static str, value: String| {
            let value = HeaderValue::try_from(value)
                .map_err(|error| Error::config(format!("{name} is no header value")).with_source(error))?;
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
        headers.extend(self.accepted()?);
        Ok(headers)
    }

    /// What is accepted as an answer.
    pub(super) fn accepted(&self) -> Result<HeaderMap> {
        let accept = self.accept.map(|accept| {
            HeaderValue::try_from(accept)
                .map_err(|error| Error::config("accept is no header value").with_source(error))
        });
        Ok(accept
            .transpose()?
            .map(|accept| (ACCEPT, accept))
            .into_iter()
            .collect())
    }
}

impl ValueStream {
    /// The next piece; `None` at the end, when the value is whole.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`] or [`ErrorKind::Timeout`] for an answer that breaks off.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        self.answer.chunk().await
    }
}

impl Value {
    /// Reads the value back.
    ///
    /// # Errors
    /// [`ErrorKind::Protocol`] when the body is not what its headers say.
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
