//! Listing of a prefix.

use std::{sync::Arc, time::Duration};

use aws_sdk_s3::{
    config::http::HttpResponse,
    error::{ProvideErrorMetadata, SdkError},
    operation::list_objects_v2::ListObjectsV2Output,
};
use http::StatusCode;

use super::Store;
use crate::{
    error::{Error, ErrorKind, Result},
    retry::is_transient,
    transport::root_cause,
};

/// An object of a data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The key, not percent-encoded.
    pub key: Arc<str>,
    /// Stored size in bytes, if known.
    pub bytes: Option<u64>,
    /// The ETag from the listing.
    pub etag: Option<Arc<str>>,
}

impl Object {
    /// An object of which only the key is known.
    pub(crate) fn from_key(key: Arc<str>) -> Self {
        Self {
            key,
            bytes: None,
            etag: None,
        }
    }
}

impl Store {
    /// All objects under a prefix, in the order of the listing, without empty objects that represent folders (`photos/`).
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] with the store's message; [`ErrorKind::Unreachable`] or [`ErrorKind::Unavailable`] after retries.
    pub async fn list(&self, bucket: &str, prefix: &str) -> Result<Vec<Object>> {
        self.list_with(bucket, prefix, |_| ()).await
    }

    /// The same, and calls `progress` after each page with the number of objects so far.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub async fn list_with(
        &self,
        bucket: &str,
        prefix: &str,
        progress: impl Fn(usize),
    ) -> Result<Vec<Object>> {
        let mut objects = Vec::new();
        let mut token = None;
        loop {
            let page = self.page(bucket, prefix, token.clone()).await?;
            for object in page.contents.unwrap_or_default() {
                let bytes = object.size.and_then(|size| u64::try_from(size).ok());
                match object.key {
                    Some(key) if !(key.ends_with('/') && bytes == Some(0)) => {
                        objects.push(Object {
                            key: key.into(),
                            bytes,
                            etag: object.e_tag.map(Into::into),
                        });
                    }
                    _ => {}
                }
            }
            progress(objects.len());
            let next = page.next_continuation_token.filter(|next| !next.is_empty());
            if next.is_none() {
                return Ok(objects);
            }
            if next == token {
                let location = describe(bucket, prefix, self);
                return Err(Error::protocol(format!(
                    "cannot list {location}: expected another page, found the same one again"
                )));
            }
            token = next;
        }
    }

    /// A page of a listing, the first one without a token. Retried like any other request.
    async fn page(&self, bucket: &str, prefix: &str, token: Option<String>) -> Result<ListObjectsV2Output> {
        let location = describe(bucket, prefix, self);
        let listing = self
            .shared
            .listing
            .list_objects_v2()
            .bucket(bucket)
            .prefix(prefix);
        let listing = listing.set_continuation_token(token);
        let mut backoff = self.backoff();
        loop {
            let error = match listing.clone().send().await {
                Ok(page) => {
                    backoff.succeeded();
                    return Ok(page);
                }
                Err(error) => error,
            };
            let retry_after = retry_after(&error);
            let error = list_error(&location, &error);
            if !error.is_retryable() || !backoff.pause(&error, retry_after).await {
                return Err(error);
            }
        }
    }
}

/// The listed location, for errors.
fn describe(bucket: &str, prefix: &str, store: &Store) -> String {
    format!("s3://{bucket}/{prefix} at {}", store.endpoint())
}

/// Converts an error of the SDK, with the store's own code and message if it answered.
fn list_error<E: ProvideErrorMetadata + std::error::Error + 'static>(
    location: &str,
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
    Error::new(kind, format!("cannot list {location}: {cause}"))
}

/// The pause that the store asks for.
fn retry_after<E>(error: &SdkError<E, HttpResponse>) -> Option<Duration> {
    let seconds = error.raw_response()?.headers().get("retry-after")?.trim();
    seconds.parse().ok().map(Duration::from_secs)
}
