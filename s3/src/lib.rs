//! What the gateway and the reader both know of S3: stores, addresses, percent-encoding, conditions, names of presigned URLs, when requests are retried,
//! ranges of one version of an object, documents, and how texts of others are shown.
//!
//! No network I/O, no timers, and nothing of pipelines: requests are sent by a [`RangeTransport`], and retries wait in a [`RetryEnvironment`].

mod address;
pub mod conditions;
mod content_range;
mod error_document;
mod escaped;
pub mod escapes;
mod loopback;
mod object_part;
mod object_version;
pub mod presign;
mod resumable_get;
mod retry;
pub mod seconds;
mod store_endpoint;
mod store_url;
mod transport;
pub mod xml;

pub use address::{Address, AddressStyle, RequestAddress, authority_in_region, is_aws_host, is_label};
pub use content_range::ContentRange;
pub use error_document::ErrorDocument;
pub use escaped::{Escaped, is_control};
pub use loopback::loopback_addresses;
pub use object_part::ObjectPart;
pub use object_version::{ObjectVersion, SuffixAnswer, read_suffix};
pub use resumable_get::ResumableGet;
pub use retry::{
    Attempt, AttemptError, FailingRequest, RetriesLeft, RetryContext, RetryEnvironment, RetryPolicy,
    is_transient, is_transient_code, parse_retry_after,
};
pub use store_endpoint::StoreEndpoint;
pub use store_url::{InvalidStore, StoreHost, StoreUrl};
pub use transport::{AnswerBody, AnswerHead, RangeTransport, ReadError, ReadResult};
