//! The S3 side: what a request is, what it signed, how it is forwarded, and how the gateway says no.

pub mod errors;
pub mod forward;
pub mod query;
pub mod request;
pub mod sign;
