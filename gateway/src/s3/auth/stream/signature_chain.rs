//! The signatures of chunks: each one also covers the previous one, and the first one covers the signature of the head.

use std::fmt;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::StreamError;
use crate::s3::auth::ChunkSeed;
use crate::s3::auth::signing_keys::hmac;

const CHUNK_ALGORITHM: &str = "AWS4-HMAC-SHA256-PAYLOAD";
const TRAILER_ALGORITHM: &str = "AWS4-HMAC-SHA256-TRAILER";

/// SHA-256 of nothing: chunks have no headers of their own.
const EMPTY_SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// Verifies the signatures of chunks in their order.
pub(super) struct SignatureChain {
    seed: ChunkSeed,
    /// The last verified signature.
    previous: [u8; 32],
    /// What the line of the current chunk claims.
    claimed: [u8; 32],
    chunk: Sha256,
}

impl SignatureChain {
    /// Begins with the signature of the head.
    pub(super) fn new(seed: ChunkSeed) -> Self {
        Self {
            previous: *seed.seed_signature(),
            seed,
            claimed: [0; 32],
            chunk: Sha256::new(),
        }
    }

    /// Begins a chunk with this signature.
    pub(super) fn begin_chunk(&mut self, claimed: [u8; 32]) {
        self.claimed = claimed;
        self.chunk = Sha256::new();
    }

    /// Adds data of the current chunk.
    pub(super) fn update(&mut self, data: &[u8]) {
        self.chunk.update(data);
    }

    /// Verifies the current chunk.
    pub(super) fn verify_chunk(&mut self) -> Result<(), StreamError> {
        let hash = hex::encode(std::mem::take(&mut self.chunk).finalize());
        let claimed = self.claimed;
        self.verify(CHUNK_ALGORITHM, &format!("{EMPTY_SHA256}\n{hash}"), &claimed)
    }

    /// Verifies the signature of the trailers, after that of the final chunk.
    pub(super) fn verify_trailers(&mut self, canonical: &str, claimed: &[u8; 32]) -> Result<(), StreamError> {
        let hash = hex::encode(Sha256::digest(canonical));
        self.verify(TRAILER_ALGORITHM, &hash, claimed)
    }

    fn verify(&mut self, algorithm: &str, hashes: &str, claimed: &[u8; 32]) -> Result<(), StreamError> {
        let string_to_sign = format!(
            "{algorithm}\n{}\n{}\n{}\n{hashes}",
            self.seed.timestamp(),
            self.seed.scope(),
            hex::encode(self.previous),
        );
        let signature = hmac(self.seed.signing_key(), string_to_sign.as_bytes());
        if !bool::from(signature[..].ct_eq(&claimed[..])) {
            return Err(StreamError::SignatureMismatch);
        }
        self.previous = signature;
        Ok(())
    }
}

/// Shows no key, no signature and no data.
impl fmt::Debug for SignatureChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignatureChain")
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}
