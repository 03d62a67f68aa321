//! A request that the gateway signs, and the answers after which it is signed and sent again: once with another region, once with
//! other credentials.

use std::mem;
use std::sync::Arc;

use aws_credential_types::Credentials;
use aws_smithy_runtime_api::client::identity::Identity;
use http::request::Parts;
use http::{Method, Response};

use super::endpoint::Endpoint;
use super::refusal::{self, Remedy};
use super::unsent_body::UnsentBody;
use super::{Signing, StoreIdentity};
use crate::body::Body;
use crate::error::{Error, ErrorKind, Result};

/// The attempts to send one request. Not `Debug`: the target can have a presigned query.
pub(super) struct Attempts {
    signing: Signing,
    /// The head, unsigned, with a canonical path-style target.
    head: Parts,
    /// `None` before the first attempt.
    last: Option<LastAttempt>,
    can_learn_region: bool,
    can_replace_credentials: bool,
}

/// How the last attempt was signed.
#[derive(Debug)]
struct LastAttempt {
    region: Arc<str>,
    identity: Identity,
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
    pub(super) const fn new(signing: Signing, head: Parts) -> Self {
        Self {
            signing,
            head,
            last: None,
            can_learn_region: true,
            can_replace_credentials: true,
        }
    }

    /// What signs the attempts.
    pub(super) const fn signing(&self) -> &Signing {
        &self.signing
    }

    /// The method of the request.
    pub(super) const fn method(&self) -> &Method {
        &self.head.method
    }

    /// Addresses and signs the next attempt.
    ///
    /// # Errors
    /// Those of [`Signing::sign`] and [`Signing::identity`].
    pub(super) fn next(&mut self, endpoint: &Endpoint) -> Result<Parts> {
        let identity = self.signing.identity()?;
        let bucket = self.signing.bucket();
        let region = self.signing.regions().region(bucket);
        // The pool consumes what it sends, and any first answer can ask for a second attempt.
        let mut head = self.head.clone();
        let host = endpoint.address_signed(&mut head, bucket, &region)?;
        self.signing.sign(&mut head, host, &region, &identity)?;
        self.last = Some(LastAttempt { region, identity });
        Ok(head)
    }

    /// Decides whether `remedy` may help after the last attempt got `answer`, which is about the gateway's own signature.
    ///
    /// It can wait for other credentials. Meanwhile the connection of the last attempt cannot take `body`, which the next one
    /// needs.
    pub(super) async fn apply(
        &mut self,
        remedy: Remedy,
        answer: Result<Response<Body>>,
        body: Option<&UnsentBody>,
    ) -> AttemptResult {
        let Some(last) = self.last.take() else {
            return AttemptResult::Final(answer);
        };
        let has_changed = match remedy {
            Remedy::Region(region) if *region == *last.region => false,
            Remedy::Region(_) if !self.can_learn_region => {
                let message = "the store names one region of the bucket after another: try again later";
                return AttemptResult::Final(Err(Error::new(ErrorKind::SlowDown, message)));
            }
            Remedy::Region(region) => self.learn(&region),
            Remedy::Credentials | Remedy::UnconfirmedCredentials => {
                let Some((identity, refused)) = self.temporary(&last.identity) else {
                    return AttemptResult::Final(answer);
                };
                if !mem::take(&mut self.can_replace_credentials) {
                    // The store may not know yet what has just been issued.
                    return AttemptResult::Final(answer.map_err(|_error| refusal::temporarily_refused()));
                }
                if let Some(body) = body {
                    body.revoke();
                }
                let has_others = if remedy == Remedy::Credentials {
                    identity.replace(refused).await
                } else {
                    identity.replace_unconfirmed(refused).await
                };
                if !has_others {
                    // The source of temporary credentials has others sooner or later.
                    return AttemptResult::Final(answer.map_err(|_error| refusal::temporarily_refused()));
                }
                true
            }
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
            .signing
            .bucket()
            .filter(|_| error.kind() == ErrorKind::OriginUnavailable)
        {
            self.signing.regions().forget(bucket);
        }
    }

    fn learn(&mut self, region: &str) -> bool {
        let Some(bucket) = self.signing.bucket() else {
            return false;
        };
        self.can_learn_region = false;
        let is_learnt = self.signing.regions().learn(bucket, region);
        if is_learnt {
            tracing::info!(bucket, region, "the bucket is in another region");
        }
        is_learnt
    }

    /// The gateway's identity, and the access key of its refused credentials. `None` for permanent credentials.
    fn temporary<'a>(&self, refused: &'a Identity) -> Option<(StoreIdentity, &'a str)> {
        let credentials = refused.data::<Credentials>()?;
        credentials.session_token()?;
        let identity = self.signing.store_identity()?.clone();
        Some((identity, credentials.access_key_id()))
    }
}

/// The error if a request should be sent again whose body has left.
pub(super) fn body_was_sent() -> Error {
    let message = "the store accepts the request only with another region or other credentials, which are known now: try again";
    Error::new(ErrorKind::SlowDown, message)
}

#[cfg(test)]
mod tests;
