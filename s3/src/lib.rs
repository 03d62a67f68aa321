//! What the gateway and the reader both know of S3: addresses, names of presigned URLs, ranges of one version of an object,
//! error documents, and how texts of others are shown.
//!
//! No network I/O, and nothing of pipelines.

mod address;
mod content_range;
mod error_document;
mod escaped;
mod object_part;
mod object_version;
pub mod presign;

pub use address::Address;
pub use content_range::ContentRange;
pub use error_document::ErrorDocument;
pub use escaped::{Escaped, is_control};
pub use object_part::ObjectPart;
pub use object_version::{
    AnswerHead, ObjectVersion, RangeTransport, ReadError, ReadResult, SuffixAnswer, read_suffix,
};
