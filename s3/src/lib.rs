//! What the gateway and the reader both know of S3: addresses, names of presigned URLs, answers to range requests, and error
//! documents.
//!
//! No network I/O, and nothing of pipelines.

mod address;
mod content_range;
mod error_document;
pub mod presign;

pub use address::Address;
pub use content_range::ContentRange;
pub use error_document::ErrorDocument;
