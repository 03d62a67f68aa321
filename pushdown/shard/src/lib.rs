//! Shards: tar objects, and zip objects without compression, whose members are samples.
//!
//! [`TarWalker`] and [`ZipDirectory`] find the [`Member`]s of a shard. The offsets and sizes that they find can be stored. Later
//! [`check_entry`] compares the header at an offset with them, so one range request reads a member, exact and verified.
//! [`TarWriter`] writes shards.
//!
//! ```
//! use pushdown_shard::{ShardFormat, ShardLimits, TarWalker, TarWriter, check_entry};
//!
//! let mut writer = TarWriter::new(Vec::new());
//! writer.append("0001.cls", b"7")?;
//! let shard = writer.finish()?;
//!
//! let mut walker = TarWalker::new(ShardLimits::default());
//! walker.push(&shard)?;
//! let members = walker.finish(shard.len() as u64)?;
//! assert_eq!(members[0].name, "0001.cls");
//! assert_eq!(members[0].range.content(), 512..513);
//! check_entry(ShardFormat::Tar, &shard[..512], "0001.cls", &members[0].range)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! No I/O: callers pass the bytes in, and are told which bytes are needed. Where Python's `tarfile`, GNU tar and `WebDataset` agree on the
//! regular files of a tar, it is read, and [`LeftOut`] says what else it has. Where readers of tar or zip disagree on what an archive
//! contains, it is refused.

mod braces;
mod check;
mod error;
mod format;
mod left_out;
mod limits;
mod name;
mod names;
mod range;
mod tar;
mod zip;

pub use braces::expand_braces;
pub use check::check_entry;
pub use error::ShardError;
pub use format::{Compression, ShardFormat, shard_kind};
pub use left_out::LeftOut;
pub use limits::{MAX_HEADER_BYTES, MAX_NAME_BYTES, ShardLimits};
pub use name::{check_name, split_name};
pub use range::{Member, MemberRange};
// Tests use a crate of the same name.
pub use self::tar::{TarWalker, TarWriter};
pub use zip::ZipDirectory;
