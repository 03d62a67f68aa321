//! The error type of this crate.

use crate::limits::{MAX_HEADER_BYTES, MIN_HEADER_BYTES};

/// Why a shard, a member or a text is refused. The message names the member or the byte. Names in it are escaped, and cut after
/// 200 bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShardError {
    /// The shard ends early.
    #[error("truncated shard: expected {expected}, found the end at byte {position}")]
    Truncated {
        /// What is missing.
        expected: &'static str,
        /// Where the shard ends.
        position: u64,
    },
    /// A content reaches beyond the end of its shard.
    #[error(
        "member `{name}` at byte {offset}: expected a content within the {object_bytes} bytes of the shard, found one that ends \
         at byte {end}"
    )]
    BeyondEnd {
        /// Name of the member.
        name: String,
        /// Where its entry begins.
        offset: u64,
        /// Where its content ends.
        end: u64,
        /// Size of the shard in bytes.
        object_bytes: u64,
    },
    /// A header is damaged, or readers disagree on its meaning.
    #[error("invalid header at byte {offset}: {reason}")]
    InvalidHeader {
        /// Where the header, or the content of an extension header, begins.
        offset: u64,
        /// What was expected and found.
        reason: String,
    },
    /// A member is no regular file, or is not stored as it is.
    #[error(
        "unsupported member `{name}` at byte {offset}: expected a regular file, stored as it is, found {found}"
    )]
    Unsupported {
        /// Name of the member.
        name: String,
        /// Where its entry begins.
        offset: u64,
        /// What it is.
        found: String,
    },
    /// A name that no member may have.
    #[error("invalid member name `{name}`: {reason}")]
    InvalidName {
        /// The name.
        name: String,
        /// What was expected and found.
        reason: &'static str,
    },
    /// Two members have one name.
    #[error("duplicate member `{name}` at byte {offset}: expected each name once in a shard")]
    Duplicate {
        /// The name.
        name: String,
        /// Where the second entry begins.
        offset: u64,
    },
    /// The entry of a member reaches into the next one, or into the directory of a zip.
    #[error(
        "member `{name}` at byte {offset}: expected an entry that ends by byte {limit}, found one that ends at byte {end}"
    )]
    Overlap {
        /// Name of the member.
        name: String,
        /// Where its entry begins.
        offset: u64,
        /// Where its entry ends.
        end: u64,
        /// Where the next entry, or the directory, begins.
        limit: u64,
    },
    /// A limit is exceeded.
    #[error("too large: expected at most {limit} {what}, found more at byte {offset}")]
    TooLarge {
        /// What is limited.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// Where the limit is exceeded.
        offset: u64,
    },
    /// The header before a content is not that of the member.
    #[error("the header is not that of the member: expected {expected}, found {found}")]
    Mismatch {
        /// The member.
        expected: String,
        /// What the header describes.
        found: String,
    },
    /// A range that no member can have.
    #[error(
        "invalid range of a member at byte {offset}: expected a header of {MIN_HEADER_BYTES} to {MAX_HEADER_BYTES} bytes and an \
         end below 2^64, found a header of {header_bytes} bytes and a content of {size} bytes"
    )]
    InvalidRange {
        /// Where the entry begins.
        offset: u64,
        /// Bytes before the content.
        header_bytes: u32,
        /// Bytes of the content.
        size: u64,
    },
    /// The caller passes or skips a wrong number of bytes.
    #[error("wrong number of bytes: expected {expected}, found {found}")]
    WrongLength {
        /// Number of bytes that may be skipped, or have to be passed.
        expected: u64,
        /// Number of bytes of the call.
        found: u64,
    },
    /// A text with braces that cannot be expanded.
    #[error("invalid braces in `{text}`: {reason}")]
    InvalidBraces {
        /// The text.
        text: String,
        /// What was expected and found.
        reason: &'static str,
    },
}
