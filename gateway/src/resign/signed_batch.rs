//! Signed batches: the key that signed the request decides on its samples, which have no signatures.

use std::{sync::Arc, time::SystemTime};

use http::{HeaderMap, header, request::Parts};
use pushdown::{Pipeline, Step};
use sha2::{Digest as _, Sha256};

use super::{Resign, access_denied, refuse};
use crate::{
    access::{Grants, Key, Needs, Secret},
    audit::AuditRecord,
    error::{Error, ErrorKind, Result},
    origin::SignedPayload,
    s3::{
        RequestAddress,
        action::Operation,
        auth::{AuthError, PayloadMode, stream::StreamError},
        query::Query,
    },
    server::Connection,
};

/// The verified signature of a batch request. It is in the extensions of the request.
#[derive(Debug, Clone)]
pub struct SignedBatch {
    key: Arc<Key>,
    /// The one that signed.
    secret: Secret,
    /// SHA-256 of the body. `None` if the connection protects it instead.
    body_hash: Option<[u8; 32]>,
}

impl Resign {
    /// Verifies a batch request, if it is signed. Otherwise each of its samples has to be presigned.
    ///
    /// # Errors
    /// Those of verification; [`ErrorKind::InvalidRequest`] if nothing protects the body.
    pub fn admit_batch(&self, mut parts: Parts) -> Result<Parts> {
        let verified = self.0.verifier.verify(&parts, &self.0.keys, SystemTime::now());
        let verified = match verified {
            Err(AuthError::Anonymous | AuthError::UnknownScheme) => return Ok(parts),
            verified => verified?,
        };
        AuditRecord::set_caller(&parts, verified.key());
        let connection = parts.extensions.get::<Connection>();
        // A presigned request without a hash would be a key for any batch, for as long as it is valid.
        let is_in_header = parts.headers.contains_key(header::AUTHORIZATION);
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
        parts.extensions.insert(SignedBatch {
            key: Arc::clone(verified.key()),
            secret: verified.secret().clone(),
            body_hash,
        });
        Ok(parts)
    }

    /// Decides on a sample of a signed batch. `parts` is the head of its GET, with the path and the version of the sample.
    ///
    /// # Errors
    /// [`ErrorKind::AccessDenied`] without a grant, for a model that the key may not use, and if the key was withdrawn;
    /// [`ErrorKind::InvalidRequest`] for an invalid address.
    pub fn admit_sample(&self, batch: &SignedBatch, mut parts: Parts, pipeline: &Pipeline) -> Result<Parts> {
        AuditRecord::set_caller(&parts, &batch.key);
        // A batch has no virtual host, and neither have its samples.
        let address = RequestAddress::new(b"", parts.uri.path(), &[]).ok_or(AuthError::InvalidUri)?;
        let query = Query::parse(parts.uri.query().unwrap_or_default())?;
        let no_headers = HeaderMap::new();
        let operation = Operation::new(&parts.method, &address, &query, &no_headers);
        AuditRecord::set_operation(&parts, &address, &operation);
        let models = pipeline.steps().iter().flat_map(Step::models);
        let needs = Needs {
            pipelines: true,
            models: models.map(|model| model.name().to_owned()).collect(),
        };
        let allowed = Grants::decide(&batch.key, operation.accesses(), &needs);
        let allowed = allowed
            .map_err(|denied| refuse(&denied))?
            .signed_with(&batch.secret);
        // The key may have been withdrawn since the batch arrived.
        if !allowed.is_still_valid(&self.0.keys) {
            return Err(access_denied());
        }
        AuditRecord::set_grant(&parts, &allowed);
        let mut target = address.path_style();
        if parts.uri.query().is_some() {
            target = format!("{target}?{query}");
        }
        parts.uri = target
            .parse()
            .map_err(|error| invalid("invalid path of a sample").with_source(error))?;
        parts.headers = no_headers;
        let signer = &self.0.signer;
        let signing = signer.signing(allowed, batch.secret.clone(), SignedPayload::Empty);
        parts.extensions.insert(signing);
        Ok(parts)
    }
}

impl SignedBatch {
    /// The key that signed.
    pub const fn key(&self) -> &Arc<Key> {
        &self.key
    }

    /// The account of the key that signed.
    pub fn tenant(&self) -> &str {
        self.key.tenant()
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
