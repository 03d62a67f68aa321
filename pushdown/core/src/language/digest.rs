//! Digests of pipelines, prefixes and answers.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest, displayed in lower-case hex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    pub fn new(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of a list of parts. The length of each part is hashed before it, so that different lists have different input.
    pub fn from_parts(parts: impl IntoIterator<Item: AsRef<[u8]>>) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            let part = part.as_ref();
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    /// The digest with these bytes.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The first 64 bits, big-endian.
    pub fn first_u64(&self) -> u64 {
        self.0[..8]
            .iter()
            .fold(0, |bits, byte| bits << 8 | u64::from(*byte))
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}
