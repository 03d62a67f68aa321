//! Writes a part by the caller's own right: its presigned PUT, or in re-sign mode what its key may write.

use std::{fmt, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header, uri::PathAndQuery};
use pushdown::wire::{PartAction, RefusedPart};
use pushdown_s3::{
    AttemptError, FailingRequest, RetriesLeft, RetryContext, RetryEnvironment, RetryPolicy, is_transient,
};

use super::{super::Batch, maker::refused};
use crate::{
    error::{Error, ErrorKind, Result},
    origin::{OriginRequest, drain},
    resign::SampleSignatures,
    routes::{Services, http::StoreRefusal},
};

/// MD5 of the content in base64.
const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");
/// A store that has no time gets the part again: computing it anew takes longer.
const RETRIES: RetryPolicy = RetryPolicy {
    attempts: 5,
    base: Duration::from_millis(500),
    cap: Duration::from_secs(5),
};

/// The PUT of a part, without its content.
#[derive(Debug)]
pub(super) struct PartUpload {
    request: OriginRequest,
}

/// Why an attempt has not written the part.
#[derive(Debug)]
enum Unwritten {
    Failed(Error),
    Refused {
        status: StatusCode,
        refusal: StoreRefusal,
    },
}

/// Retries of the gateway are logged, and nothing more.
struct Environment;

#[derive(Debug)]
struct Failing;

impl Batch {
    /// The PUT that the request asks for; `None` without a target. In re-sign mode this is a decision, and is recorded.
    ///
    /// # Errors
    /// [`ErrorKind::StoreNotAllowed`] and [`ErrorKind::NoUpstream`] for the target's store; [`ErrorKind::InvalidRequest`] for an invalid
    /// path; in re-sign mode, if the target's signature is refused, or if the key may not write it.
    pub(super) fn part_upload(&self) -> Result<Option<PartUpload>> {
        let Some(target) = self.request.part.as_ref().and_then(|part| part.target.as_ref()) else {
            return Ok(None);
        };
        let origin = &self.services.origin;
        let path: PathAndQuery = target.request_target().parse().map_err(|error| {
            Error::new(
                ErrorKind::InvalidRequest,
                format!("invalid path of the target `{}`: {error}", target.path),
            )
        })?;
        let request = match &self.signatures {
            SampleSignatures::ForStore => {
                let request = if let Some(store) = &target.store {
                    let store = origin.admit_store(store.clone())?;
                    origin.check_bucket(&store, &target.path)?;
                    OriginRequest::for_stated_sample(store, path)
                } else {
                    origin.check_own_store()?;
                    OriginRequest::for_sample(self.host.clone(), path)
                };
                request.into_put()
            }
            SampleSignatures::OfBatch(gate, signed) => gate.admit_part(Some(signed), self.put_head(path))?,
            SampleSignatures::ForGateway(gate) => gate.admit_part(None, self.put_head(path))?,
        };
        Ok(Some(PartUpload { request }))
    }
}

impl PartUpload {
    /// Writes the content with this MD5, by which the store checks it.
    ///
    /// # Errors
    /// The store's refusal with its own text, or that it does not answer, after retries.
    pub(super) async fn write(
        self,
        services: &Services,
        content: Bytes,
        md5: &[u8; 16],
    ) -> Result<(), RefusedPart> {
        let mut request = self.request;
        let md5 = HeaderValue::from_str(&STANDARD.encode(md5));
        request.add(header::CONTENT_LENGTH, content.len().into());
        request.add(CONTENT_MD5, md5.unwrap_or_else(|_| HeaderValue::from_static("")));
        let write = services.cache.begin_write_of(&request);
        let mut attempt = || {
            let (request, content) = (request.clone(), content.clone());
            async move {
                let answer = services.origin.write(request, content).await;
                let answer = answer.map_err(Unwritten::Failed)?;
                if answer.status.is_success() {
                    drain(answer).await;
                    return Ok(());
                }
                let status = answer.status;
                let refusal = StoreRefusal::read(answer).await;
                Err(Unwritten::Refused { status, refusal })
            }
        };
        let done = RetryContext::new(RETRIES, Environment)
            .complete(&mut attempt)
            .await;
        drop(write);
        done.map_err(|unwritten| match unwritten {
            Unwritten::Failed(error) => refused(PartAction::Write, &error),
            Unwritten::Refused { refusal, .. } => RefusedPart {
                action: PartAction::Write,
                code: refusal.code,
                message: refusal.message,
                errors: Vec::new(),
            },
        })
    }
}

impl AttemptError for Unwritten {
    fn is_retryable(&self) -> bool {
        match self {
            Self::Failed(error) => error.retry_after().is_some(),
            Self::Refused { status, .. } => is_transient(*status),
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        None
    }
}

impl fmt::Display for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => write!(f, "{error}"),
            Self::Refused { refusal, .. } => write!(f, "{}: {}", refusal.code, refusal.message),
        }
    }
}

impl RetryEnvironment for Environment {
    type Failing = Failing;

    fn begin_failing(&self) -> Failing {
        Failing
    }

    fn on_retry(&self) {}

    fn random(&self) -> f64 {
        rand::random()
    }

    async fn sleep(&self, pause: Duration) {
        tokio::time::sleep(pause).await;
    }
}

impl FailingRequest for Failing {
    fn retrying(&self, error: &dyn fmt::Display, left: RetriesLeft) {
        tracing::debug!(%error, attempts = left.attempts, "a part is written again");
    }

    fn recovered(self) {}
}
