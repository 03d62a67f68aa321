//! Sends batch requests, signed as the gateway can verify them.

use http::{HeaderMap, Method, StatusCode};
use pushdown::wire::{Features, header::BATCH_PATH};

use super::{Store, gateway::Replica};
use crate::{
    error::Result,
    sign::{BatchAuthority, BatchPost, BatchSigner, RequestSigner, Validity},
    transport::{Answer, listed_features},
};

/// The answer to a batch request.
#[derive(Debug)]
pub(crate) struct BatchAnswer {
    pub(crate) answer: Answer,
    /// Of the signatures of its samples, if they had some.
    pub(crate) validity: Option<Validity>,
}

impl Store {
    /// Sends a batch request for objects of a bucket, with additional headers, to a replica with these features, and waits for the head of its
    /// answer, with any status. `write` makes the request, with what signs it. If the gateway was replaced by one that cannot verify the request,
    /// it is made and sent once more.
    ///
    /// # Errors
    /// Without credentials; those of `write`; if no answer arrives.
    pub(crate) async fn send_batch<W: Future<Output = Result<BatchPost>>>(
        &self,
        replica: &Replica,
        bucket: &str,
        headers: HeaderMap,
        mut features: Features,
        write: impl Fn(BatchSigner, Features) -> W,
    ) -> Result<BatchAnswer> {
        self.check_reads_stores(replica).await?;
        loop {
            let signer = self.batch_signer(bucket, &features).await?;
            let post = write(signer, features).await?;
            let (is_signed, validity) = (!post.signature.is_empty(), post.validity);
            let mut headers = headers.clone();
            headers.extend(post.signature);
            let sent = self.send_to_replica(replica, Method::POST, BATCH_PATH, headers, post.body);
            let answer = sent.await?;
            let listed = listed_features(&answer.headers).unwrap_or_default();
            if !is_signed || answer.status != StatusCode::BAD_REQUEST || listed.has(Features::SIGNED_BATCHES)
            {
                return Ok(BatchAnswer { answer, validity });
            }
            // Without the feature the next request is not signed.
            features = listed;
        }
    }

    /// What signs batch requests for objects of a bucket to a gateway with these features, with the current credentials.
    async fn batch_signer(&self, bucket: &str, features: &Features) -> Result<BatchSigner> {
        self.locate(bucket).await?;
        let endpoint = self.bucket_endpoint(bucket)?;
        let (gateway, paths) = (self.gateway()?, endpoint.paths().clone());
        if gateway.is_store() && features.has(Features::SIGNED_BATCHES) {
            let credentials = self.current_credentials(Some(bucket)).await?;
            let signer = RequestSigner::new(credentials, endpoint.region(), gateway.endpoint().host());
            return Ok(BatchSigner::new(BatchAuthority::Request(signer), paths, None));
        }
        let (presigner, stated) = self.stated_presigner(&endpoint).await?;
        Ok(BatchSigner::new(
            BatchAuthority::Samples(presigner),
            paths,
            stated,
        ))
    }
}
