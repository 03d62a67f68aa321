//! Shards: tar objects, and zip objects without compression, whose members are samples.
//!
//! [`EntryCursor`] takes entries out of the bytes of a shard as they arrive: it finds the [`Member`]s of a tar, or goes to places that are
//! known. [`ZipDirectory`] finds those of a zip. The offsets and sizes that they find can be stored. Later [`check_entry`] compares the header at
//! an offset with them, so one range request reads a member, exact and verified. [`TarWriter`] writes shards, and [`Grouping`]
//! makes samples of members that follow each other.
//!
//! ```
//! use bytes::Bytes;
//! use pushdown_shard::{EntryCursor, ShardFormat, ShardLimits, TarWriter, check_entry};
//!
//! let mut writer = TarWriter::new(Vec::new());
//! writer.append("0001.cls", b"7")?;
//! let shard = Bytes::from(writer.finish()?);
//!
//! let mut walk = EntryCursor::walk(ShardLimits::default());
//! walk.push(shard.clone());
//! let member = walk.next_member()?.ok_or("no member")?;
//! assert_eq!(member.name, "0001.cls");
//! assert_eq!(member.range.content(), 512..513);
//!
//! let mut cursor = EntryCursor::listed(0);
//! cursor.push(shard);
//! cursor.go_to(&member.range);
//! let header = cursor.header().ok_or("no header")?;
//! check_entry(ShardFormat::Tar, &header, "0001.cls", &member.range)?;
//! assert_eq!(cursor.content().as_deref(), Some(&b"7"[..]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! No I/O: callers pass the bytes in, and are told which bytes are needed. Where Python's `tarfile`, GNU tar and `WebDataset` agree on the
//! regular files of a tar, it is read, and [`LeftOut`] says what else it has. Where readers of tar or zip disagree on what an archive
//! contains, it is refused.

mod braces;
mod check;
mod cursor;
mod error;
mod format;
mod groups;
mod left_out;
mod limits;
mod name;
mod names;
mod range;
mod tar;
mod zip;

pub use braces::expand_braces;
pub use check::check_entry;
pub use cursor::{EntryCursor, Listed, Walked};
pub use error::ShardError;
pub use format::{Compression, ShardFormat, shard_kind};
pub use groups::{Column, ColumnMatcher, Entered, Group, Grouping};
pub use left_out::LeftOut;
pub use limits::{MAX_HEADER_BYTES, MAX_NAME_BYTES, ShardLimits};
pub use name::{check_name, split_name};
pub use range::{Member, MemberRange};
// Tests use a crate of the same name.
pub use self::tar::{TarComment, TarWriter, read_tar_comment, tar_comment};
pub use zip::ZipDirectory;
