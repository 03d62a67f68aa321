//! What the gateway and the reader both know of S3: answers to range requests, and error documents.
//!
//! No network I/O, and nothing of pipelines.

mod content_range;
mod error_document;

pub use content_range::ContentRange;
pub use error_document::ErrorDocument;
