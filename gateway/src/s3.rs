//! S3: signatures, requests that no gateway may pass on, and error answers. Addresses and escapes are those of the reader, too.

pub mod action;
pub mod auth;
pub mod errors;
mod framing;
pub mod query;
pub mod request;
pub mod sign;

pub use pushdown_s3::{AddressStyle, RequestAddress, escapes};
