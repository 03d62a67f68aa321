//! Writes of small objects, and deletions.

use aws_sdk_s3::primitives::ByteStream;
use bytes::Bytes;
use http::StatusCode;

use crate::{error::Result, store::Store};

impl Store {
    /// Writes an object unless there is one. Returns whether it was written; a store may ignore the condition, and write it in place of an old
    /// one.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind) with the store's message; if it does not answer.
    pub(crate) async fn put_new(&self, bucket: &str, key: &str, content: Bytes) -> Result<bool> {
        let put = |sdk: aws_sdk_s3::Client| {
            let request = sdk.put_object().bucket(bucket).key(key).if_none_match("*");
            let request = request.body(ByteStream::from(content.clone()));
            async move {
                match request.send().await {
                    Ok(_) => Ok(true),
                    Err(error) => {
                        let status = error.raw_response().map(|answer| answer.status().as_u16());
                        let exists = [StatusCode::PRECONDITION_FAILED, StatusCode::CONFLICT];
                        if exists.iter().any(|exists| status == Some(exists.as_u16())) {
                            Ok(false)
                        } else {
                            Err(error)
                        }
                    }
                }
            }
        };
        let action = format!("write s3://{bucket}/{key}");
        Box::pin(self.with_sdk_retries(bucket, &action, put)).await
    }

    /// Deletes an object, if it is there.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`](crate::ErrorKind) with the store's message; if it does not answer.
    pub(crate) async fn delete(&self, bucket: &str, key: &str) -> Result<()> {
        let delete = |sdk: aws_sdk_s3::Client| {
            let request = sdk.delete_object().bucket(bucket).key(key);
            async move { request.send().await }
        };
        let action = format!("delete s3://{bucket}/{key}");
        let deleted = Box::pin(self.with_sdk_retries(bucket, &action, delete)).await;
        deleted.map(drop)
    }
}
