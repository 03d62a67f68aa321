//! Re-sign mode: callers sign with keys of the gateway, which verifies them, decides by their grants, and signs again for the
//! store.
//!
//! [`Resign::admit`] is the only way in, and for samples of a batch that is signed as a whole [`Resign::admit_sample`]. What they
//! return has the canonical target, the headers that the store may get, and a [`Signing`] that the origin requires to send it.

mod answers;
mod body_check;
mod buckets;
mod deletes;
mod head;
mod signed_batch;

use std::{io, sync::Arc, time::SystemTime};

use http::{HeaderMap, HeaderValue, Method, header, request::Parts};
use pushdown::{Pipeline, Step};

use crate::{
    access::{Access, Action, Denied, Grants, Key, Keys, KeysWatcher, ModelScope, Needs, Reload, Upstream},
    audit::AuditRecord,
    config,
    error::{Error, ErrorKind, Result},
    origin::{IdentityRefresher, SignedPayload, Signer, Signing, StoreIdentity},
    s3::{
        AddressStyle, RequestAddress,
        action::Operation,
        auth::{PayloadMode, Verified, Verifier},
        errors::ACCESS_DENIED,
    },
};
pub use body_check::BodyCheck;
pub use buckets::BucketFilter;
pub use deletes::{Deletion, MAX_DELETION_BYTES};
pub use signed_batch::SignedBatch;

/// Verifies, decides and signs. Clones share everything.
#[derive(Debug, Clone)]
pub struct Resign(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    verifier: Verifier,
    domains: Vec<String>,
    keys: Keys,
    signer: Signer,
    _watcher: KeysWatcher,
    _refresher: IdentityRefresher,
}

impl Resign {
    /// Reads the keys file, and watches it. Fetches the gateway's credentials for the store if a key needs them.
    ///
    /// # Errors
    /// All faults of the keys file at once.
    pub async fn build(config: &config::Resign) -> io::Result<Self> {
        let keys = Keys::from_file(&config.keys).map_err(io::Error::other)?;
        let identity = StoreIdentity::new(config.upstream_credentials, &config.region).await;
        let is_needed = keys.all().iter().any(|key| key.upstream() == Upstream::Gateway);
        let refresher = identity.start(is_needed).await;
        let signer = Signer::new(keys.clone(), &config.region, identity);
        let watcher = KeysWatcher::start(keys.clone(), config.keys.clone(), log_reload)?;
        Ok(Self(Arc::new(Inner {
            verifier: Verifier::new(
                config.regions.clone(),
                config.domains.clone(),
                config.public_hosts.clone(),
            ),
            domains: config.domains.clone(),
            keys,
            signer,
            _watcher: watcher,
            _refresher: refresher,
        })))
    }

    /// Verifies the head of a request, decides on it, and returns the head that the store gets.
    ///
    /// # Errors
    /// Those of verification, as AWS words them; [`ErrorKind::AccessDenied`] without a grant.
    pub fn admit(&self, mut parts: Parts, has_pipeline: bool) -> Result<Parts> {
        let verified = self.0.verifier.verify(&parts, &self.0.keys, SystemTime::now())?;
        AuditRecord::set_caller(&parts, verified.key());
        if ![
            Method::GET,
            Method::HEAD,
            Method::PUT,
            Method::POST,
            Method::DELETE,
        ]
        .contains(&parts.method)
        {
            let message = "invalid method: expected GET, HEAD, PUT, POST or DELETE";
            return Err(Error::new(ErrorKind::MethodNotAllowed, message));
        }
        let address = verified.address();
        let operation = Operation::new(&parts.method, address, verified.query(), &parts.headers);
        AuditRecord::set_operation(&parts, address, &operation);
        let is_restricted = !verified.key().is_unrestricted();
        if is_restricted && operation.is_delete_objects() && !has_pipeline {
            return self.defer_deletion(parts, &verified, &operation);
        }
        let accesses = accesses(&operation, &verified);
        let needs = Needs {
            pipelines: has_pipeline,
            models: Vec::new(),
        };
        let allowed = Grants::decide(verified.key(), &accesses, &needs).map_err(|denied| refuse(&denied))?;
        AuditRecord::set_grant(&parts, &allowed);
        let allowed = allowed.signed_with(verified.secret());
        let payload = signed_payload(verified.payload());
        let signing = self.0.signer.signing(allowed, verified.secret().clone(), payload);
        let check = BodyCheck::new(&parts, &verified);
        head::rewrite(&mut parts, &verified)?;
        parts.extensions.insert(signing);
        parts.extensions.insert(check);
        parts
            .extensions
            .insert(ModelScope::Key(Arc::clone(verified.key())));
        if is_restricted && operation.is_list_buckets() {
            BucketFilter::insert(&mut parts, verified.key());
        }
        Ok(parts)
    }

    /// Verifies the signature of a request, and decides nothing. Returns the key that signed.
    ///
    /// # Errors
    /// Those of verification.
    pub fn verify(&self, parts: &Parts) -> Result<Arc<Key>> {
        let verified = self.0.verifier.verify(parts, &self.0.keys, SystemTime::now())?;
        Ok(Arc::clone(verified.key()))
    }

    /// Admits a request whose body says what it needs. Nothing signs it for the store before its body is decided on.
    fn defer_deletion(&self, mut parts: Parts, verified: &Verified, operation: &Operation) -> Result<Parts> {
        let deletion = Deletion::new(&self.0.signer, verified, operation.accesses())?;
        let check = BodyCheck::new(&parts, verified);
        head::rewrite(&mut parts, verified)?;
        parts.extensions.insert(deletion);
        parts.extensions.insert(check);
        Ok(parts)
    }

    /// Whether the host of a request names its bucket.
    pub fn is_virtual_host(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(header::HOST).map_or(&b""[..], HeaderValue::as_bytes);
        let address = RequestAddress::from_decoded(host, b"/", &self.0.domains);
        address.is_some_and(|address| address.style() == AddressStyle::VirtualHost)
    }

    /// Verifies a request for models. Only those of its key exist for the caller.
    ///
    /// # Errors
    /// Those of verification.
    pub fn admit_to_models(&self, mut parts: Parts) -> Result<Parts> {
        let key = self.verify(&parts)?;
        AuditRecord::set_caller(&parts, &key);
        parts.extensions.insert(ModelScope::Key(key));
        Ok(parts)
    }

    /// Checks that the key of an admitted sample may run all models of its batch: the key may have changed since the pipeline was
    /// parsed.
    ///
    /// # Errors
    /// [`ErrorKind::AccessDenied`] for the first model that it may not run.
    pub fn check_models(signing: &Signing, pipeline: &Pipeline) -> Result<()> {
        let allowed = signing.allowed().key().models();
        let mut models = pipeline.steps().iter().flat_map(Step::models);
        match models.find(|model| !allowed.contains(model.name())) {
            None => Ok(()),
            Some(model) => Err(refuse(&Denied::NoModel(model.name().to_owned()))),
        }
    }

    /// The account of an access key that a caller claims.
    pub fn claimed_tenant(&self, access_key: &str) -> Option<String> {
        Some(self.0.keys.get(access_key)?.tenant().to_owned())
    }
}

/// What a request needs.
fn accesses(operation: &Operation, verified: &Verified) -> Vec<Access> {
    let mut accesses = operation.accesses().to_vec();
    if operation.is_delete_objects() {
        // The objects are not decided on one by one, so all of the bucket must be granted.
        let everything = |action| Access::prefix(action, verified.address().bucket(), b"");
        accesses.extend([Action::Delete, Action::Versions].map(everything));
    }
    accesses
}

/// What the signature for the store says about a body that was verified in this way.
const fn signed_payload(mode: PayloadMode) -> SignedPayload {
    match mode {
        PayloadMode::Hash(hash) => SignedPayload::Hash(hash),
        PayloadMode::Unsigned | PayloadMode::SignedChunks => SignedPayload::Unsigned,
        PayloadMode::UnsignedTrailer | PayloadMode::SignedChunksTrailer => SignedPayload::UnsignedTrailer,
    }
}

fn refuse(denied: &Denied) -> Error {
    tracing::info!(reason = denied.audit_reason(), "denied");
    let error = match denied {
        Denied::InvalidBucket => {
            Error::new(ErrorKind::InvalidBucketName, "The specified bucket is not valid.")
        }
        Denied::UnsafeKey => Error::new(
            ErrorKind::InvalidRequest,
            "invalid key: expected one without NUL, and without a segment . or ..",
        ),
        Denied::NoAccess | Denied::NoGrant(_) | Denied::NoPipelines | Denied::NoModel(_) => access_denied(),
    };
    error.with_source(denied.clone())
}

fn access_denied() -> Error {
    Error::new(ErrorKind::AccessDenied, ACCESS_DENIED)
}

fn log_reload(reload: &Reload) {
    match reload {
        Reload::Replaced { generation, keys } => tracing::info!(generation, keys, "keys file reloaded"),
        Reload::Unchanged => {}
        Reload::Failed(faults) => {
            tracing::error!(%faults, "cannot reload the keys file: the earlier keys stay in use");
        }
    }
}
