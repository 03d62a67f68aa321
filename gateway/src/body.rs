//! The body type of all answers and of all requests to the store, and the one wrapper of bodies.

mod observed;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};

pub use observed::{ObservedBody, Observer};

/// An error of any component.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A streamed body. If an answer's body yields an error, the client's connection is cut: there is no last chunk, so a
/// truncated answer never looks complete.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// Size of a connection's read buffer and of its write buffer in bytes. Larger buffers hardly save time, and with many
/// connections their memory adds up.
pub const BUFFER: usize = 128 << 10;

/// An empty body.
pub fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// A body whose bytes are all in memory.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}
