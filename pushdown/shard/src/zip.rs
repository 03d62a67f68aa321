//! The zip format, as far as members that are stored: neither compressed nor encrypted.
//!
//! Three records describe each member or all of them: an end record points to the directory, whose entries point to the local
//! headers in front of the contents. Everything has to agree.

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

/// The member whose local header `header` begins with, at byte `offset` of a zip. `None` if it is not complete.
pub(crate) fn read_entry(header: &[u8], offset: u64) -> Result<Option<Member>, ShardError> {
    match local::read(header, offset)? {
        Local::Complete(member) => Ok(Some(member)),
        Local::Incomplete { .. } => Ok(None),
    }
}
