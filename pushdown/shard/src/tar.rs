//! The tar format: ustar, and the extensions of GNU and pax.

mod entry;
mod header;
mod pax;
mod walker;
mod writer;

pub use walker::TarWalker;
pub use writer::TarWriter;

use crate::{Member, ShardError, ShardLimits};

/// Bytes of a block, the unit of a tar.
const BLOCK: usize = 512;

/// The first member in `header`, which are bytes of a tar from byte `offset` on. `None` if no header of a file is complete.
pub(crate) fn read_entry(header: &[u8], offset: u64) -> Result<Option<Member>, ShardError> {
    let mut walker = TarWalker::starting_at(offset, ShardLimits::default());
    walker.push(header)?;
    Ok(walker.take_members().into_iter().next())
}
