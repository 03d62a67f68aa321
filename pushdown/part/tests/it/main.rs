//! Integration tests of the crate, in one binary: parts are read by other crates, and refused before they are written.

#![expect(
    clippy::unwrap_used,
    reason = "clippy exempts tests, but not their helpers; a broken part has to fail the test"
)]

mod bytes;
mod parquet;
mod refusals;
mod samples;
mod tar;
