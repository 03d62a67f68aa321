//! S3: routes, signatures, forwarding to the store, and error answers.

pub mod errors;
pub mod forward;
pub mod query;
pub mod request;
pub mod sign;
