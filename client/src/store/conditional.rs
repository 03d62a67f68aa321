//! One GET with a condition, signed rightly or not, for checks of a store.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method,
    header::{ETAG, IF_NONE_MATCH},
};
use pushdown_s3::ErrorDocument;

use super::{BucketEndpoint, Store};
use crate::error::{Error, ErrorKind, Result};

/// How long ago an expired signature was made: its validity and more than the difference of two clocks.
const EXPIRED: Duration = Duration::from_hours(2);

/// How a [`ConditionalGet`] is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signature {
    /// By the credentials of the store.
    Right,
    /// By the same, with a wrong signature.
    Wrong,
    /// By the same, two hours ago.
    Expired,
    /// Not at all.
    Missing,
}

/// A GET of an object, without `Range`, in the form in which the gateway revalidates a value.
#[derive(Debug, Clone, Copy)]
pub struct ConditionalGet<'a> {
    /// The bucket.
    pub bucket: &'a str,
    /// The key.
    pub key: &'a str,
    /// `If-None-Match`, which is not signed; `None` for no condition.
    pub if_none_match: Option<&'a str>,
    /// How it is signed.
    pub signature: Signature,
}

/// The answer to a [`ConditionalGet`], whatever its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionalAnswer {
    /// The status.
    pub status: u16,
    /// `ETag`, as it was sent.
    pub etag: Option<String>,
    /// The code of S3's error document, if the answer is an error.
    pub error_code: Option<String>,
    /// The body.
    pub body: Bytes,
}

impl Store {
    /// Sends a GET once, without retries.
    ///
    /// # Errors
    /// If no complete answer arrives, or its body has more than `max_bytes`. An answer with an error status is no error.
    pub async fn get_conditionally(
        &self,
        get: &ConditionalGet<'_>,
        max_bytes: u64,
    ) -> Result<ConditionalAnswer> {
        let bucket = self.bucket_endpoint(get.bucket)?;
        let target = self.target_of(&bucket, get).await?;
        let mut headers = HeaderMap::new();
        if let Some(etag) = get.if_none_match {
            let etag = HeaderValue::from_str(etag).map_err(|error| {
                Error::protocol("the ETag is not a valid header value").with_source(error)
            })?;
            headers.insert(IF_NONE_MATCH, etag);
        }
        let answer = self
            .transport()
            .send(bucket.endpoint(), Method::GET, &target, headers, Bytes::new())
            .await?;
        let (status, etag) = (answer.status, answer.header(ETAG.as_str()).map(str::to_owned));
        let body = answer.collect(max_bytes).await?.ok_or_else(|| {
            let text = format!("the answer is too large: expected at most {max_bytes} bytes");
            Error::new(ErrorKind::Protocol, text)
        })?;
        let is_error = status.is_client_error() || status.is_server_error();
        Ok(ConditionalAnswer {
            status: status.as_u16(),
            etag,
            error_code: is_error.then(|| ErrorDocument::parse(&body).code).flatten(),
            body,
        })
    }

    async fn target_of(&self, bucket: &BucketEndpoint, get: &ConditionalGet<'_>) -> Result<String> {
        let path = bucket.path(get.key);
        let now = SystemTime::now();
        Ok(match get.signature {
            Signature::Right => self.presigner(bucket).await?.target(&path),
            Signature::Wrong => with_other_last_digit(self.presigner(bucket).await?.target(&path)),
            Signature::Expired => self.presigner_at(bucket, now - EXPIRED).await?.target(&path),
            Signature::Missing => path,
        })
    }
}

/// A signed target, whose signature is at its end, with another last digit.
fn with_other_last_digit(mut target: String) -> String {
    let digit = target.pop();
    target.push(if digit == Some('0') { '1' } else { '0' });
    target
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_signature_differs_in_one_digit() {
        for (right, wrong) in [
            ("/b/k?X-Amz-Signature=ab0", "/b/k?X-Amz-Signature=ab1"),
            ("/b/k?X-Amz-Signature=abf", "/b/k?X-Amz-Signature=ab0"),
        ] {
            assert_eq!(with_other_last_digit(right.to_owned()), wrong);
        }
    }
}
