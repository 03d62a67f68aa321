//! S3: signatures, requests that no gateway may pass on, and error answers.

pub mod action;
pub mod errors;
pub mod query;
pub mod request;
pub mod sign;
