//! Bodies that are verified while they flow: [`VerifyingBody`] hashes a body or decodes its `aws-chunked` framing, and never
//! collects more than one line of it.
//!
//! The store must not commit a body that the gateway refuses. So the last byte, or the final chunk, leaves only after
//! the whole body has been verified. On a mismatch the body ends with an error, and the connection to the store is dropped.
//!
//! | payload | verified | sent to the store | held back |
//! |---|---|---|---|
//! | hash | SHA-256 of the body | the same bytes | last byte |
//! | unsigned | nothing | the same bytes | nothing |
//! | unsigned trailer | framing, length, names of trailers | the same bytes | final chunk |
//! | signed chunks | also each chunk's signature | the decoded bytes | last byte |
//! | signed chunks and trailer | also the trailer's signature | framed again, unsigned | final chunk |

mod body;
mod check;
mod chunk_line;
mod declared;
mod decoder;
mod error;
mod last_byte;
mod pass_through;
mod signature_chain;
mod trailers;
mod unsigned_framing;

pub use body::VerifyingBody;
pub use error::StreamError;

#[cfg(test)]
mod tests;
