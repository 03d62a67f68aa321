//! Re-sign mode: callers sign with keys of the gateway, which verifies them, decides by their grants, and signs again for the
//! store.
//!
//! Each route has one way in: [`Resign::admit_forward`], [`Resign::admit_read`], [`Resign::admit_batch`] with a [`SampleGate`] for its
//! samples, and [`Resign::admit_to_models`]. What may be sent to the store has the canonical target, the headers that the store may
//! get, and a [`Signing`] that the origin requires.

mod admission;
mod answers;
mod body_check;
mod buckets;
mod deletes;
mod head;
mod signed_batch;

use std::{io, sync::Arc, time::SystemTime};

use http::{Method, request::Parts};

use crate::{
    access::{
        Access, Action, Denied, Grants, Key, Keys, KeysWatcher, ModelScope, Needs, Reload, UNSAFE_KEY,
        Upstream,
    },
    audit::AuditedHead,
    config,
    error::{Error, ErrorKind, Result},
    origin::{IdentityRefresher, SignedPayload, Signer, StoreIdentity, StoreSignature, can_be_late},
    s3::{
        RequestAddress,
        action::Operation,
        auth::{PayloadMode, Verified, Verifier},
        errors::ACCESS_DENIED,
    },
};
pub use admission::{
    BatchAdmission, DeletionRequest, ForwardAdmission, ModelsAdmission, PublicAdmission, ReadAdmission,
    SampleGate, SampleSignatures, SignedRequest,
};
pub use body_check::BodyCheck;
pub use buckets::BucketFilter;
pub use deletes::{Deletion, MAX_DELETION_BYTES};
pub use signed_batch::SignedBatch;

use head::Purpose;

/// The methods of S3.
const METHODS: [Method; 5] = [
    Method::GET,
    Method::HEAD,
    Method::PUT,
    Method::POST,
    Method::DELETE,
];

/// Verifies, decides and signs. Clones share everything.
#[derive(Debug, Clone)]
pub struct Resign(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    verifier: Verifier,
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
            keys,
            signer,
            _watcher: watcher,
            _refresher: refresher,
        })))
    }

    /// Verifies the head of a request for the store, and decides on it.
    ///
    /// # Errors
    /// Those of verification, as AWS words them; [`ErrorKind::AccessDenied`] without a grant.
    pub fn admit_forward(&self, head: AuditedHead) -> Result<ForwardAdmission> {
        let (mut head, address, audit) = head.into_parts();
        let Inner {
            verifier,
            keys,
            signer,
            ..
        } = &*self.0;
        let verified = verifier.verify(&head, address, keys, SystemTime::now())?;
        audit.set_caller(verified.key());
        if !METHODS.contains(&head.method) {
            return Err(method_not_allowed());
        }
        let operation = Operation::new(&head.method, verified.address(), verified.query(), &head.headers);
        audit.set_operation(verified.address(), &operation);
        let is_restricted = !verified.key().is_unrestricted();
        let is_filtered = is_restricted && operation.is_list_buckets();
        let reads_answer = is_filtered || can_be_late(&head.method);
        let purpose = Purpose::Forward { reads_answer };
        let body_check = |headers| BodyCheck {
            mode: verified.payload(),
            seed: verified.chunk_seed().cloned(),
            headers,
        };
        if is_restricted && operation.is_delete_objects() {
            // Nothing signs it for the store before its body is decided on.
            let deletion = Deletion::new(signer, &verified, operation.accesses())?;
            let headers = head::rewrite(&mut head, &verified, purpose)?;
            return Ok(ForwardAdmission::Deletion(Box::new(DeletionRequest {
                body_check: body_check(headers),
                head,
                deletion,
                audit,
            })));
        }
        let accesses = if operation.is_delete_objects() {
            whole_bucket(&operation, &verified)
        } else {
            operation.accesses().to_vec()
        };
        let allowed = Grants::decide(verified.caller(), &accesses, &Needs::default())
            .map_err(|denied| refuse(&denied))?;
        audit.set_grant(&allowed);
        let signing = signer.signing(allowed, verified.address(), signed_payload(verified.payload()));
        let headers = head::rewrite(&mut head, &verified, purpose)?;
        Ok(ForwardAdmission::Signed(Box::new(SignedRequest {
            body_check: body_check(headers),
            head,
            signing,
            bucket_filter: is_filtered.then(|| BucketFilter::new(verified.key())),
            audit,
        })))
    }

    /// Verifies the head of a request for the value of an object, and decides on it.
    ///
    /// # Errors
    /// Those of [`admit_forward`](Self::admit_forward).
    pub fn admit_read(&self, head: AuditedHead) -> Result<ReadAdmission> {
        let needs = Needs {
            pipelines: true,
            models: Vec::new(),
        };
        self.admit_own_request(head, &needs)
    }

    /// Verifies a request that the gateway makes for its caller, and decides on it.
    fn admit_own_request(&self, head: AuditedHead, needs: &Needs) -> Result<ReadAdmission> {
        let (mut head, address, audit) = head.into_parts();
        let Inner {
            verifier,
            keys,
            signer,
            ..
        } = &*self.0;
        let verified = verifier.verify(&head, address, keys, SystemTime::now())?;
        audit.set_caller(verified.key());
        if !METHODS.contains(&head.method) {
            return Err(method_not_allowed());
        }
        let operation = Operation::new(&head.method, verified.address(), verified.query(), &head.headers);
        audit.set_operation(verified.address(), &operation);
        let accesses = if operation.is_delete_objects() {
            whole_bucket(&operation, &verified)
        } else {
            operation.accesses().to_vec()
        };
        let allowed =
            Grants::decide(verified.caller(), &accesses, needs).map_err(|denied| refuse(&denied))?;
        audit.set_grant(&allowed);
        let signing = signer.signing(allowed, verified.address(), signed_payload(verified.payload()));
        head::rewrite(&mut head, &verified, Purpose::Read)?;
        Ok(ReadAdmission {
            head,
            signature: StoreSignature::Renewed(signing),
        })
    }

    /// Verifies a request for models. Only those of its key exist for the caller.
    ///
    /// # Errors
    /// Those of verification.
    pub fn admit_to_models(&self, head: AuditedHead) -> Result<ModelsAdmission> {
        let (head, address, audit) = head.into_parts();
        let key = self.verify(&head, address)?;
        audit.set_caller(&key);
        Ok(ModelsAdmission {
            head,
            scope: ModelScope::Key(key),
        })
    }

    /// Verifies the signature of a request, and decides nothing. Returns the key that signed.
    ///
    /// # Errors
    /// Those of verification.
    pub fn verify(&self, head: &Parts, address: Option<RequestAddress>) -> Result<Arc<Key>> {
        let Inner { verifier, keys, .. } = &*self.0;
        let verified = verifier.verify(head, address, keys, SystemTime::now())?;
        Ok(Arc::clone(verified.key()))
    }

    /// What a request addresses by the host that it was sent to. `None` for a malformed path.
    pub fn address(&self, head: &Parts) -> Option<RequestAddress> {
        self.0.verifier.address(head)
    }

    /// Whether the host that a request was sent to names its bucket.
    pub fn is_virtual_host(&self, head: &Parts) -> bool {
        self.0.verifier.is_virtual_host(head)
    }

    /// The account of an access key that a caller claims.
    pub fn claimed_tenant(&self, access_key: &str) -> Option<String> {
        Some(self.0.keys.get(access_key)?.tenant().to_owned())
    }
}

/// What it needs to delete any objects of a bucket: they are not decided on one by one.
fn whole_bucket(operation: &Operation, verified: &Verified) -> Vec<Access> {
    let everything = |action| Access::prefix(action, verified.address().bucket(), b"");
    let accesses = operation.accesses().iter().cloned();
    accesses
        .chain([Action::Delete, Action::Versions].map(everything))
        .collect()
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
        Denied::UnsafeKey => Error::new(ErrorKind::InvalidRequest, UNSAFE_KEY),
        Denied::NoAccess | Denied::NoGrant(_) | Denied::NoPipelines | Denied::NoModel(_) => access_denied(),
    };
    error.with_source(denied.clone())
}

fn method_not_allowed() -> Error {
    let message = "invalid method: expected GET, HEAD, PUT, POST or DELETE";
    Error::new(ErrorKind::MethodNotAllowed, message)
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
