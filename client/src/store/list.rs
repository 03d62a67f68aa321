//! Listing of a prefix.

use std::sync::Arc;

use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};

use super::Store;
use crate::{
    error::{Error, ErrorKind, Result},
    transport::root,
};

/// An object that is a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The key, as it is, not percent-encoded.
    pub key: Arc<str>,
    /// Stored size in bytes, where it is known.
    pub bytes: Option<u64>,
    /// The ETag, as the listing has it.
    pub etag: Option<Arc<str>>,
}

impl Object {
    /// An object of which only the key is known.
    pub(crate) fn of_key(key: Arc<str>) -> Self {
        Self {
            key,
            bytes: None,
            etag: None,
        }
    }
}

impl Store {
    /// All objects under a prefix, in the order of the listing, without the empty objects that stand for
    /// folders (`photos/`).
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] with what the store said; [`ErrorKind::Unreachable`] after retries.
    pub async fn list(&self, bucket: &str, prefix: &str) -> Result<Vec<Object>> {
        let mut pages = self
            .shared
            .listing
            .list_objects_v2()
            .bucket(bucket)
            .prefix(prefix)
            .into_paginator()
            .send();
        let mut objects = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page
                .map_err(|error| fault(&format!("s3://{bucket}/{prefix} at {}", self.endpoint()), &error))?;
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
        }
        Ok(objects)
    }
}

/// An error of the SDK, with the store's own code and message where it answered.
fn fault<E: ProvideErrorMetadata + std::error::Error + 'static>(what: &str, error: &SdkError<E>) -> Error {
    let kind = match error {
        SdkError::ServiceError(_) | SdkError::ConstructionFailure(_) => ErrorKind::Refused,
        _ => ErrorKind::Unreachable,
    };
    let cause = match (error.code(), error.message()) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        _ => root(error),
    };
    Error::new(kind, format!("cannot list {what}: {cause}"))
}
