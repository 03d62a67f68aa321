//! What requests are admitted as, for each route: all that its handler needs to know of the decision.
//!
//! A handler takes its admission apart by an exhaustive `match`, and nothing in one can be absent. A [`Signing`] and a [`Deletion`] are
//! made by [`Resign`] alone, after it has verified the request. What has a head is not `Debug`: signatures and session tokens are in it.

use http::request::Parts;

use super::{BodyCheck, BucketFilter, Deletion, Resign, SignedBatch};
use crate::{
    access::ModelScope,
    audit::{AuditRecord, AuditedHead},
    error::Result,
    origin::{Signing, StoreSignature},
};

/// How the forward route may answer a request.
#[expect(clippy::large_enum_variant, reason = "plain forwarding allocates nothing")]
pub enum ForwardAdmission {
    /// In forward mode: as the caller sent it. The store verifies the signature, and decides.
    Unchanged(Parts),
    /// In re-sign mode: verified and allowed.
    Signed(Box<SignedRequest>),
    /// In re-sign mode: verified, and to be decided on object by object, as its body lists them.
    Deletion(Box<DeletionRequest>),
}

/// A verified request that its key may make. Its body is still to be verified.
pub struct SignedRequest {
    /// The head that the store gets.
    pub head: Parts,
    /// What signs it for the store.
    pub signing: Signing,
    /// How to verify the body.
    pub body_check: BodyCheck,
    /// Hides buckets in the answer that the key has no grant for.
    pub bucket_filter: Option<BucketFilter>,
    /// The record of the request.
    pub audit: AuditRecord,
}

/// A verified `DeleteObjects` request of a key that the store does not decide on alone.
pub struct DeletionRequest {
    /// The head that the store gets, but for the headers about the body.
    pub head: Parts,
    /// Decides on the objects.
    pub deletion: Deletion,
    /// How to verify the body.
    pub body_check: BodyCheck,
    /// The record of the request.
    pub audit: AuditRecord,
}

/// How the value of an object may be read: by the pipeline route, and for a sample of a batch.
pub struct ReadAdmission {
    /// The head. In re-sign mode its target is canonical, and its headers are those that the store may get.
    pub head: Parts,
    /// Who has decided, or decides.
    pub signature: StoreSignature,
}

/// How the batch route may answer a request.
pub struct BatchAdmission {
    /// The head as the caller sent it.
    pub head: Parts,
    /// Whose signatures admit the samples.
    pub signatures: SampleSignatures,
}

/// Whose signatures admit the samples of a batch.
#[derive(Debug, Clone)]
pub enum SampleSignatures {
    /// In forward mode: each sample is presigned for the store, which verifies it and decides.
    ForStore,
    /// In re-sign mode: each sample is presigned for the gateway, which verifies it and decides.
    ForGateway(SampleGate),
    /// In re-sign mode: the request is signed as a whole, and decides on samples without a signature of their own.
    OfBatch(SampleGate, SignedBatch),
}

/// Decides on the samples of a batch in re-sign mode, and records it.
#[derive(Debug, Clone)]
pub struct SampleGate {
    pub(super) resign: Resign,
    pub(super) audit: AuditRecord,
}

/// A request that every caller may make, with a key or without one. Its answer tells nobody more than others.
#[derive(Debug, Clone, Copy)]
pub struct PublicAdmission(());

/// How the models route may answer a request.
pub struct ModelsAdmission {
    /// The head as the caller sent it.
    pub head: Parts,
    /// The models that exist for the caller.
    pub scope: ModelScope,
}

impl PublicAdmission {
    /// In forward mode.
    pub fn new(_head: Parts) -> Self {
        Self(())
    }

    /// In re-sign mode, for a request with a record.
    ///
    /// # Errors
    /// None: nobody is verified.
    #[expect(clippy::unnecessary_wraps, reason = "the other routes' admissions can fail")]
    pub fn audited(_resign: &Resign, _head: AuditedHead) -> Result<Self> {
        Ok(Self(()))
    }
}

impl ReadAdmission {
    /// In forward mode: the store verifies the signature, and decides.
    pub const fn unchanged(head: Parts) -> Self {
        Self {
            head,
            signature: StoreSignature::Unchanged,
        }
    }
}

impl BatchAdmission {
    /// In forward mode: the store verifies each sample, and decides on it.
    pub const fn unchanged(head: Parts) -> Self {
        Self {
            head,
            signatures: SampleSignatures::ForStore,
        }
    }
}

impl ModelsAdmission {
    /// In forward mode: all models exist for everybody.
    pub const fn unchanged(head: Parts) -> Self {
        Self {
            head,
            scope: ModelScope::All,
        }
    }
}

impl SampleSignatures {
    /// The signature of the request, if it is signed as a whole.
    pub const fn of_batch(&self) -> Option<&SignedBatch> {
        match self {
            Self::ForStore | Self::ForGateway(_) => None,
            Self::OfBatch(_, signed) => Some(signed),
        }
    }

    /// The record of the request, in re-sign mode.
    pub const fn audit(&self) -> Option<&AuditRecord> {
        match self {
            Self::ForStore => None,
            Self::ForGateway(gate) | Self::OfBatch(gate, _) => Some(&gate.audit),
        }
    }
}
