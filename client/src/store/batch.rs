//! Sends batch requests, signed as the gateway can verify them.

use http::{HeaderMap, Method, StatusCode};
use pushdown::wire::{Features, header::BATCH_PATH};

use super::Store;
use crate::{
    error::Result,
    sign::{BatchPost, BatchSigner, RequestSigner},
    transport::{Answer, listed_features},
};

/// The answer to a batch request.
#[derive(Debug)]
pub(crate) enum BatchAnswer {
    /// An answer with any status.
    Answered(Answer),
    /// The gateway was replaced by one with these features, which cannot verify the request. It is to be written again for them.
    Outdated(Features),
}

impl Store {
    /// What signs batch requests to a gateway with these features, with the current credentials.
    pub(crate) async fn batch_signer(&self, features: &Features) -> Result<BatchSigner> {
        if !features.has(Features::SIGNED_BATCHES) {
            return Ok(BatchSigner::Samples(self.presigner().await?));
        }
        let credentials = self.current_credentials().await?;
        let (region, host) = (&self.shared.region, self.transport().endpoint().host());
        Ok(BatchSigner::Request(RequestSigner::new(
            credentials,
            region,
            host,
        )))
    }

    /// Sends a batch request with additional headers, and waits for the head of its answer.
    pub(crate) async fn send_batch(&self, mut headers: HeaderMap, post: BatchPost) -> Result<BatchAnswer> {
        let is_signed = !post.signature.is_empty();
        headers.extend(post.signature);
        let sent = self
            .transport()
            .send(Method::POST, BATCH_PATH, headers, post.body);
        let answer = sent.await?;
        if is_signed && answer.status == StatusCode::BAD_REQUEST {
            let features = listed_features(&answer.headers).unwrap_or_default();
            if !features.has(Features::SIGNED_BATCHES) {
                return Ok(BatchAnswer::Outdated(features));
            }
        }
        Ok(BatchAnswer::Answered(answer))
    }
}
