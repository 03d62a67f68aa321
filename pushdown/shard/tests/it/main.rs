//! Integration tests of the crate, in one binary: archives of many writers, hostile archives, and properties of any archive.

#![expect(
    clippy::unwrap_in_result,
    clippy::unwrap_used,
    reason = "clippy exempts tests, but not their helpers; a missing fixture has to fail the test"
)]

mod check;
mod cursor;
mod golden;
mod hostile_tar;
mod hostile_zip;
mod properties;
mod read;
mod tar_crate;
mod write;
