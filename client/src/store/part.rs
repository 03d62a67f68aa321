//! Parts of data sets at a store: the right to write one, for a gateway, and reads of what one says.

use std::{ops::Range, sync::Arc, time::SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use pushdown::wire::PartTarget;

use super::Store;
use crate::{
    error::{Error, Result},
    sign::Presigner,
};

impl Store {
    /// The presigned PUT of an object of `target`, for the gateway of this store. In a signed batch, of which the gateway signs each request,
    /// only its path.
    ///
    /// # Errors
    /// Without credentials; for an endpoint that cannot be stated.
    pub(crate) async fn part_target(
        &self,
        target: &Self,
        bucket: &str,
        key: &str,
        is_signed_batch: bool,
    ) -> Result<PartTarget> {
        target.locate(bucket).await?;
        let endpoint = target.bucket_endpoint(bucket)?;
        let path = endpoint.path(key);
        if is_signed_batch {
            return Ok(PartTarget {
                store: None,
                path,
                query: None,
            });
        }
        let (presigner, store) = if Arc::ptr_eq(&self.shared, &target.shared) {
            self.stated_presigner(&endpoint).await?
        } else {
            let stated = endpoint.stated()?;
            let credentials = target.current_credentials(Some(bucket)).await?;
            let (region, host) = (endpoint.region(), stated.url().authority());
            let presigner = Presigner::new(&credentials, region, &host, SystemTime::now())?;
            (presigner, Some(stated))
        };
        Ok(PartTarget {
            query: Some(presigner.put_query(&path)),
            store,
            path,
        })
    }

    /// Reads a range of an object.
    ///
    /// # Errors
    /// If the store refuses it, or sends something else; if the retries are exhausted.
    pub(crate) async fn get_range(&self, bucket: &str, key: &str, range: Range<u64>) -> Result<Bytes> {
        let about = format!("s3://{bucket}/{key}");
        let length = range.end - range.start;
        let text = format!("bytes={}-{}", range.start, range.end.saturating_sub(1));
        let value = HeaderValue::from_str(&text)
            .map_err(|error| Error::internal("a range is not a header value").with_source(error))?;
        let attempt = || {
            let headers = HeaderMap::from_iter([(header::RANGE, value.clone())]);
            async move {
                let answer = self.open(bucket, key, headers).await?;
                if answer.status != StatusCode::PARTIAL_CONTENT {
                    return Err(Error::protocol("expected a part of the object").into());
                }
                let piece = answer.collect(length).await?;
                let piece = piece.filter(|piece| piece.len() as u64 == length);
                piece.ok_or_else(|| Error::protocol("expected the requested range").into())
            }
        };
        self.with_retries(&about, attempt).await
    }

    /// Whether both are the same store by the same credentials.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}
