//! What is left to verify of an admitted request: its body.

use std::fmt;

use http::HeaderMap;

use crate::s3::auth::{ChunkSeed, PayloadMode};

/// How to verify the body of an admitted request.
#[derive(Clone)]
pub struct BodyCheck {
    /// What the signature says about the body.
    pub mode: PayloadMode,
    /// What signatures of chunks are computed from.
    pub seed: Option<ChunkSeed>,
    /// The headers as sent: they declare lengths and trailers.
    pub headers: HeaderMap,
}

impl fmt::Debug for BodyCheck {
    /// Without the headers, which have the caller's signature.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyCheck")
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}
