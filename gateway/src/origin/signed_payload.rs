//! The payload line of signatures for the store.

/// The hash of no bytes.
const EMPTY_HASH: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// What a signature for the store says about the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignedPayload {
    /// There is none.
    Empty,
    /// Its SHA-256.
    Hash([u8; 32]),
    /// Nothing.
    Unsigned,
    /// Nothing; it has unsigned chunks and a trailer.
    UnsignedTrailer,
}

impl SignedPayload {
    /// The value of `x-amz-content-sha256`.
    pub(super) fn to_text(self) -> String {
        match self {
            Self::Empty => EMPTY_HASH.to_owned(),
            Self::Hash(hash) => hex::encode(hash),
            Self::Unsigned => "UNSIGNED-PAYLOAD".to_owned(),
            Self::UnsignedTrailer => "STREAMING-UNSIGNED-PAYLOAD-TRAILER".to_owned(),
        }
    }
}
