//! Sends batch requests, signed as the gateway can verify them.

use http::{HeaderMap, Method, StatusCode};
use pushdown::wire::{Features, header::BATCH_PATH};

use super::Store;
use crate::{
    error::Result,
    sign::{BatchPost, BatchSigner, RequestSigner},
    transport::{Answer, listed_features},
};

impl Store {
    /// Sends a batch request with additional headers to a gateway with these features, and waits for the head of its answer, with
    /// any status. `write` makes the request, with what signs it. If the gateway was replaced by one that cannot verify the request,
    /// it is made and sent once more.
    ///
    /// # Errors
    /// Without credentials; those of `write`; if no answer arrives.
    pub(crate) async fn send_batch<W: Future<Output = Result<BatchPost>>>(
        &self,
        headers: HeaderMap,
        mut features: Features,
        write: impl Fn(BatchSigner, Features) -> W,
    ) -> Result<Answer> {
        loop {
            let signer = self.batch_signer(&features).await?;
            let post = write(signer, features).await?;
            let is_signed = !post.signature.is_empty();
            let mut headers = headers.clone();
            headers.extend(post.signature);
            let sent = self
                .transport()
                .send(Method::POST, BATCH_PATH, headers, post.body);
            let answer = sent.await?;
            let listed = listed_features(&answer.headers).unwrap_or_default();
            if !is_signed || answer.status != StatusCode::BAD_REQUEST || listed.has(Features::SIGNED_BATCHES)
            {
                return Ok(answer);
            }
            // Without the feature the next request is not signed.
            features = listed;
        }
    }

    /// What signs batch requests to a gateway with these features, with the current credentials.
    async fn batch_signer(&self, features: &Features) -> Result<BatchSigner> {
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
}
