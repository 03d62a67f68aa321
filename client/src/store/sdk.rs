//! Requests that the AWS SDK sends.

use std::time::Duration;

use aws_sdk_s3::{
    config::http::HttpResponse,
    error::{ProvideErrorMetadata, SdkError},
};
use http::StatusCode;
use pushdown_s3::{is_transient, parse_retry_after};

use super::{Store, failure::FailedAttempt};
use crate::{
    error::{Error, ErrorKind, Result},
    transport::root_cause,
};

impl Store {
    /// Sends a request of the SDK, which is retried like any other request. `action` is what an error says that cannot be done.
    pub(super) async fn with_sdk_retries<T, E, F>(
        &self,
        action: &str,
        send: impl Fn() -> F + Sync,
    ) -> Result<T>
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
        F: Future<Output = Result<T, SdkError<E, HttpResponse>>> + Send,
    {
        let failed = |error: SdkError<E, HttpResponse>| FailedAttempt {
            error: sdk_error(action, &error),
            retry_after: retry_after(&error),
        };
        let mut attempt = || async { send().await.map_err(failed) };
        let sent = self.retries().complete(&mut attempt).await;
        sent.map_err(|failed| failed.error)
    }
}

impl Store {
    /// The ETag of an object, if the store has one. Asked once, without retries.
    ///
    /// # Errors
    /// If the store does not answer, or refuses.
    pub(crate) async fn etag(&self, bucket: &str, key: &str) -> Result<Option<String>> {
        let head = self.shared.sdk.head_object().bucket(bucket).key(key).send().await;
        let action = || format!("read the ETag of s3://{bucket}/{key}");
        Ok(head.map_err(|error| sdk_error(&action(), &error))?.e_tag)
    }
}

/// Converts an error of the SDK, with the store's own code and message if it answered.
fn sdk_error<E: ProvideErrorMetadata + std::error::Error + 'static>(
    action: &str,
    error: &SdkError<E, HttpResponse>,
) -> Error {
    let kind = match error {
        SdkError::ServiceError(answer) => match StatusCode::from_u16(answer.raw().status().as_u16()) {
            Ok(status) if is_transient(status) => ErrorKind::Unavailable,
            _ => ErrorKind::Refused,
        },
        SdkError::ConstructionFailure(_) => ErrorKind::Refused,
        _ => ErrorKind::Unreachable,
    };
    let cause = match (error.code(), error.message()) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        _ => root_cause(error),
    };
    Error::new(kind, format!("cannot {action}: {cause}"))
}

/// The pause that the store asks for.
fn retry_after<E>(error: &SdkError<E, HttpResponse>) -> Option<Duration> {
    parse_retry_after(error.raw_response()?.headers().get("retry-after")?)
}
