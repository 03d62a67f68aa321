//! The tar format: ustar, and the extensions of GNU and pax.

mod comment;
mod entry;
mod header;
mod pax;
mod walk;
mod writer;

pub use comment::{TarComment, read_tar_comment, tar_comment};
pub(crate) use walk::TarWalk;
pub use writer::TarWriter;

/// Bytes of a block, the unit of a tar.
const BLOCK: usize = 512;
