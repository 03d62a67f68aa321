//! A request that the gateway signs, and the answers after which it is signed and sent again: once with another region, once with
//! other credentials.

use std::sync::Arc;

use aws_credential_types::Credentials;
use aws_smithy_runtime_api::client::identity::Identity;
use http::Response;
use http::request::Parts;

use super::Signing;
use super::endpoint::{Endpoint, bucket_in};
use super::refusal::{self, CheckedAnswer, Remedy};
use super::signer::drop_own_parameters;
use crate::body::Body;
use crate::error::{Error, ErrorKind, Result};

/// The attempts to send one request.
#[derive(Debug)]
pub(super) struct Attempts {
    signing: Signing,
    /// The head, unsigned, with a canonical path-style target.
    head: Parts,
    bucket: Option<String>,
    /// The region of the last attempt.
    region: Arc<str>,
    /// What signed the last attempt.
    identity: Option<Identity>,
    can_learn_region: bool,
    can_replace_credentials: bool,
}

/// What follows from an answer.
#[derive(Debug)]
pub(super) enum AttemptResult {
    /// It is for the caller.
    Final(Result<Response<Body>>),
    /// The request is sent again.
    Retry,
}

impl Attempts {
    /// The attempts for a request that may be sent.
    pub(super) fn new(signing: Signing, mut head: Parts) -> Result<Self> {
        drop_own_parameters(&mut head)?;
        let bucket = bucket_in(head.uri.path()).map(str::to_owned);
        Ok(Self {
            region: signing.regions().region(bucket.as_deref()),
            signing,
            head,
            bucket,
            identity: None,
            can_learn_region: true,
            can_replace_credentials: true,
        })
    }

    /// Addresses and signs the next attempt.
    ///
    /// # Errors
    /// Those of [`Signing::sign`] and [`Signing::identity`].
    pub(super) fn next(&mut self, endpoint: &Endpoint) -> Result<Parts> {
        let identity = self.signing.identity()?;
        let mut head = self.head.clone();
        self.region = self.signing.regions().region(self.bucket.as_deref());
        let host = endpoint.address_signed(&mut head, &self.region)?;
        self.signing.sign(&mut head, host, &self.region, &identity)?;
        self.identity = Some(identity);
        Ok(head)
    }

    /// Decides on the answer to the last attempt. Answers about the gateway's own signature are not for the caller.
    pub(super) async fn evaluate(&mut self, answer: Response<Body>) -> AttemptResult {
        let CheckedAnswer { answer, remedy } = refusal::check(answer, self.signing.upstream()).await;
        let has_changed = match remedy {
            Some(Remedy::Region(region)) if *region == *self.region => false,
            Some(Remedy::Region(_)) if !self.can_learn_region => {
                let message = "the store names one region of the bucket after another: try again later";
                return AttemptResult::Final(Err(Error::new(ErrorKind::SlowDown, message)));
            }
            Some(Remedy::Region(region)) => self.learn(&region),
            Some(Remedy::Credentials) => self.replace_credentials(false).await,
            Some(Remedy::PerhapsCredentials) => self.replace_credentials(true).await,
            None => false,
        };
        if has_changed {
            AttemptResult::Retry
        } else {
            AttemptResult::Final(answer)
        }
    }

    /// Forgets the region of the last attempt if the store could not be reached: its host may not exist.
    pub(super) fn forget_region(&self, error: &Error) {
        if let Some(bucket) = self
            .bucket
            .as_ref()
            .filter(|_| error.kind() == ErrorKind::OriginUnavailable)
        {
            self.signing.regions().forget(bucket);
        }
    }

    fn learn(&mut self, region: &str) -> bool {
        let Some(bucket) = self.bucket.as_deref() else {
            return false;
        };
        self.can_learn_region = false;
        let is_learnt = self.signing.regions().learn(bucket, region);
        if is_learnt {
            tracing::info!(bucket, region, "the bucket is in another region");
        }
        is_learnt
    }

    async fn replace_credentials(&mut self, is_guess: bool) -> bool {
        let credentials = self.identity.as_ref().and_then(Identity::data::<Credentials>);
        let temporary = credentials.filter(|credentials| credentials.session_token().is_some());
        let (Some(refused), Some(identity), true) = (
            temporary,
            self.signing.store_identity().cloned(),
            self.can_replace_credentials,
        ) else {
            return false;
        };
        self.can_replace_credentials = false;
        if is_guess && !identity.may_guess() {
            return false;
        }
        identity.replace(refused.access_key_id()).await
    }
}

/// The error if a request should be sent again whose body has left.
pub(super) fn body_was_sent() -> Error {
    let message = "the store accepts the request only with another region or other credentials, which are known now: try again";
    Error::new(ErrorKind::SlowDown, message)
}
