//! Listing of a prefix.

use std::sync::Arc;

use aws_sdk_s3::error::DisplayErrorContext;

use super::Store;
use crate::error::{Error, ErrorKind, Result};

/// An object that is a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The key, as it is, not percent-encoded.
    pub key: Arc<str>,
    /// Stored size in bytes, where it is known.
    pub bytes: Option<u64>,
}

impl Store {
    /// All objects under a prefix, in the order of the listing, without the empty objects that stand for
    /// folders (`photos/`).
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] with what the store said, after retries.
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
            let page = page.map_err(|error| {
                let text = format!(
                    "cannot list s3://{bucket}/{prefix}: {}",
                    DisplayErrorContext(&error)
                );
                Error::new(ErrorKind::Refused, text)
            })?;
            for object in page.contents.unwrap_or_default() {
                let bytes = object.size.and_then(|size| u64::try_from(size).ok());
                match object.key {
                    Some(key) if !(key.ends_with('/') && bytes == Some(0)) => {
                        objects.push(Object {
                            key: key.into(),
                            bytes,
                        });
                    }
                    _ => {}
                }
            }
        }
        Ok(objects)
    }
}
