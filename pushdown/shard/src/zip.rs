//! The zip format, as far as members that are stored: neither compressed nor encrypted.
//!
//! Three records describe each member or all of them: an end record points to the directory, whose entries point to the local
//! headers in front of the contents. Everything has to agree, but for sizes that a local header leaves to the directory. Bytes in front
//! of the zip, such as a program that unpacks it, shift all places.

mod directory;
mod end;
mod entries;
mod fields;
mod file;
mod local;
mod locals;

pub use directory::ZipDirectory;

use crate::{Member, ShardError};
use local::Local;

/// The member whose local header `header` begins with, at byte `offset` of a zip. `None` if it is not complete. A size that follows
/// the content is `size`.
pub(crate) fn read_entry(header: &[u8], offset: u64, size: u64) -> Result<Option<Member>, ShardError> {
    match local::read(header, offset)? {
        Local::Complete(local) => local.member(size).map(Some),
        Local::Incomplete { .. } => Ok(None),
    }
}
