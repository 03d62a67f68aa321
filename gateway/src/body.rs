//! The one body type of answers and of requests to the store.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};

/// An error of any component.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A streamed body. An answer's body that yields an error cuts the client's connection: no last chunk, no
/// missing bytes that look like an end.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// What a connection reads, or holds back to write at once, at most, in bytes. Larger pieces hardly cost less, and with
/// many connections they add up.
pub const BUFFER: usize = 128 << 10;

/// A body without a byte.
pub fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// A body that is at hand whole.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}
