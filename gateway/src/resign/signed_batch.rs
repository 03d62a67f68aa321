//! Signed batches: the key that signed the request decides on its samples, which have no signatures.

use std::{sync::Arc, time::SystemTime};

use http::{HeaderMap, header, request::Parts};
use pushdown::{Pipeline, Step};
use sha2::{Digest as _, Sha256};

use super::{
    BatchAdmission, Inner, ReadAdmission, Resign, SampleGate, SampleSignatures, access_denied, refuse,
};
use crate::{
    access::{Caller, Grants, Key, Needs},
    audit::AuditedHead,
    error::{Error, ErrorKind, Result},
    origin::{OriginRequest, SignedPayload, StoreSignature},
    s3::{
        action::Operation,
        auth::{AuthError, PayloadMode, stream::StreamError},
        query::Query,
    },
    server::Connection,
};

/// The verified signature of a batch request.
#[derive(Debug, Clone)]
pub struct SignedBatch {
    caller: Caller,
    /// SHA-256 of the body. `None` if the connection protects it instead.
    body_hash: Option<[u8; 32]>,
}

impl Resign {
    /// Verifies a batch request, if it is signed. Otherwise each of its samples has to be presigned.
    ///
    /// # Errors
    /// Those of verification; [`ErrorKind::InvalidRequest`] if nothing protects the body.
    pub fn admit_batch(&self, head: AuditedHead) -> Result<BatchAdmission> {
        let (head, address, audit) = head.into_parts();
        let gate = SampleGate {
            resign: self.clone(),
            audit,
        };
        let Inner { verifier, keys, .. } = &*self.0;
        let verified = verifier.verify(&head, address, keys, SystemTime::now());
        let verified = match verified {
            Err(AuthError::Anonymous | AuthError::UnknownScheme) => {
                let signatures = SampleSignatures::ForGateway(gate);
                return Ok(BatchAdmission { head, signatures });
            }
            verified => verified?,
        };
        gate.audit.set_caller(verified.key());
        let connection = head.extensions.get::<Connection>();
        // A presigned request without a hash would be a key for any batch, for as long as it is valid.
        let is_in_header = head.headers.contains_key(header::AUTHORIZATION);
        let body_hash = match verified.payload() {
            PayloadMode::Hash(hash) => Some(hash),
            PayloadMode::Unsigned if is_in_header && connection.is_some_and(Connection::is_encrypted) => None,
            PayloadMode::Unsigned => {
                return Err(invalid(
                    "the body of the batch is not signed: expected its SHA-256 in x-amz-content-sha256, or a signature in \
                     the Authorization header over TLS",
                ));
            }
            PayloadMode::UnsignedTrailer | PayloadMode::SignedChunks | PayloadMode::SignedChunksTrailer => {
                return Err(invalid(
                    "unsupported x-amz-content-sha256 of a batch: expected the SHA-256 of the body, found a keyword for chunks",
                ));
            }
        };
        let signed = SignedBatch {
            caller: verified.caller(),
            body_hash,
        };
        let signatures = SampleSignatures::OfBatch(gate, signed);
        Ok(BatchAdmission { head, signatures })
    }

    /// Decides on a sample of a signed batch. `head` is that of its GET, with the path and the version of the sample.
    fn admit_sample(
        &self,
        batch: &SignedBatch,
        head: AuditedHead,
        pipeline: &Pipeline,
    ) -> Result<ReadAdmission> {
        let models = pipeline.steps().iter().flat_map(Step::models);
        let needs = Needs {
            pipelines: true,
            models: models.map(|model| model.name().to_owned()).collect(),
        };
        self.admit_by_batch(batch, head, &needs, SignedPayload::Empty)
    }

    /// Decides on a request that the gateway makes for the caller of a signed batch.
    fn admit_by_batch(
        &self,
        batch: &SignedBatch,
        head: AuditedHead,
        needs: &Needs,
        payload: SignedPayload,
    ) -> Result<ReadAdmission> {
        let (mut head, address, audit) = head.into_parts();
        audit.set_caller(batch.key());
        let address = address.ok_or(AuthError::InvalidUri)?;
        let query = Query::parse(head.uri.query().unwrap_or_default())?;
        let no_headers = HeaderMap::new();
        let operation = Operation::new(&head.method, &address, &query, &no_headers);
        audit.set_operation(&address, &operation);
        let allowed =
            Grants::decide(&batch.caller, operation.accesses(), needs).map_err(|denied| refuse(&denied))?;
        // The key may have been withdrawn since the batch arrived.
        if !allowed.is_still_valid(&self.0.keys) {
            return Err(access_denied());
        }
        audit.set_grant(&allowed);
        let mut target = address.path_style();
        if head.uri.query().is_some() {
            target = format!("{target}?{query}");
        }
        head.uri = target
            .parse()
            .map_err(|error| invalid("invalid path of a sample").with_source(error))?;
        head.headers = no_headers;
        let signing = self.0.signer.signing(allowed, &address, payload);
        Ok(ReadAdmission {
            head,
            signature: StoreSignature::Renewed(signing),
        })
    }
}

impl SampleGate {
    /// Verifies a presigned sample, and decides on it. `head` is that of its GET.
    ///
    /// # Errors
    /// Those of [`Resign::admit_read`]; [`ErrorKind::AccessDenied`] for the first model that the key may not run.
    pub fn admit_presigned(&self, head: Parts, pipeline: &Pipeline) -> Result<ReadAdmission> {
        self.audit.admit_sample(head, |head| {
            let admitted = self.resign.admit_read(head)?;
            // The key may have changed since the pipeline was parsed.
            let scope = admitted.signature.model_scope();
            let mut models = pipeline.steps().iter().flat_map(Step::models);
            models
                .try_for_each(|model| scope.check(model.name()))
                .map_err(|denied| refuse(&denied))?;
            Ok(admitted)
        })
    }

    /// Decides on a sample without a signature of its own. `head` is that of its GET, with the path and the version of the sample.
    ///
    /// # Errors
    /// [`ErrorKind::AccessDenied`] without a grant, for a model that the key may not use, and if the key was withdrawn;
    /// [`ErrorKind::InvalidRequest`] for an invalid address.
    pub fn admit(&self, batch: &SignedBatch, head: Parts, pipeline: &Pipeline) -> Result<ReadAdmission> {
        self.audit
            .admit_sample(head, |head| self.resign.admit_sample(batch, head, pipeline))
    }

    /// Decides on the PUT of a part. With a `batch`, the signature of the batch covers the PUT; without, `head` has its own.
    ///
    /// # Errors
    /// Those of [`Resign::admit_forward`]; [`ErrorKind::AccessDenied`] if the key may not write the target.
    pub fn admit_part(&self, batch: Option<&SignedBatch>, head: Parts) -> Result<OriginRequest> {
        let needs = Needs::default();
        let admitted = self.audit.admit_target(head, |head| match batch {
            Some(batch) => {
                let payload = SignedPayload::Unsigned;
                self.resign.admit_by_batch(batch, head, &needs, payload)
            }
            None => self.resign.admit_own_request(head, &needs),
        })?;
        OriginRequest::from_caller(&admitted.head, admitted.signature)
    }

    /// Re-sign mode.
    pub const fn resign(&self) -> &Resign {
        &self.resign
    }
}

impl SignedBatch {
    /// The key that signed.
    pub const fn key(&self) -> &Arc<Key> {
        self.caller.key()
    }

    /// The account of the key that signed.
    pub fn tenant(&self) -> &str {
        self.caller.key().tenant()
    }

    /// Checks that a body, as it was sent, is the one that was signed. Nothing of it may be used before.
    ///
    /// # Errors
    /// `XAmzContentSHA256Mismatch` for another body.
    pub fn check_body(&self, body: &[u8]) -> Result<()> {
        let is_signed = |hash: [u8; 32]| hash == <[u8; 32]>::from(Sha256::digest(body));
        if self.body_hash.is_none_or(is_signed) {
            Ok(())
        } else {
            Err(StreamError::HashMismatch.into())
        }
    }
}

fn invalid(message: &'static str) -> Error {
    Error::new(ErrorKind::InvalidRequest, message)
}
