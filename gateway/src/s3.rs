//! S3: addresses, signatures, requests that no gateway may pass on, and error answers.

pub mod action;
pub mod address;
pub mod auth;
pub mod errors;
pub mod escapes;
pub mod framing;
pub mod query;
pub mod request;
pub mod sign;
