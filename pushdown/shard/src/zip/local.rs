//! Local headers: those in front of the contents.

use super::{fields::Fields, file::File};
use crate::{Member, MemberRange, ShardError};

/// Bytes of a local header without name and extra fields.
pub(super) const LOCAL_BYTES: usize = 30;
const SIGNATURE: &[u8] = b"PK\x03\x04";

/// What the first bytes of an entry hold.
#[derive(Debug)]
pub(super) enum Local {
    /// The local header of this file.
    Complete(LocalFile),
    /// A part of a local header.
    Incomplete {
        /// Bytes of the whole one, as far as they are known.
        header_bytes: usize,
    },
}

/// What a whole local header says.
#[derive(Debug)]
pub(super) struct LocalFile {
    name: String,
    offset: u64,
    header_bytes: u32,
    /// `None` if it follows the content.
    size: Option<u64>,
}

impl LocalFile {
    /// The member with this header, whose size is `size` if the header does not say it.
    pub(super) fn member(self, size: u64) -> Result<Member, ShardError> {
        let size = self.size.unwrap_or(size);
        Ok(Member {
            name: self.name,
            range: MemberRange::new(self.offset, self.header_bytes, size)?,
        })
    }
}

/// Reads the local header at byte `offset`, with which `bytes` begin.
pub(super) fn read(bytes: &[u8], offset: u64) -> Result<Local, ShardError> {
    let Some((head, rest)) = bytes.split_at_checked(LOCAL_BYTES) else {
        return Ok(Local::Incomplete {
            header_bytes: LOCAL_BYTES,
        });
    };
    let not_local = || ShardError::InvalidHeader {
        offset,
        reason: "expected the local header of a zip, found other bytes".to_owned(),
    };
    let head = head.strip_prefix(SIGNATURE).ok_or_else(not_local)?;
    let (file, name_bytes, extra_bytes) = read_head(head).ok_or_else(not_local)?;
    let header_bytes = LOCAL_BYTES + name_bytes + extra_bytes;
    let mut rest = Fields(rest);
    let (Some(name), Some(extra)) = (rest.bytes(name_bytes), rest.bytes(extra_bytes)) else {
        return Ok(Local::Incomplete { header_bytes });
    };
    let file = File { name, extra, ..file };
    let stored = file.stored(offset, 0)?;
    let header_bytes = u32::try_from(header_bytes).unwrap_or(u32::MAX);
    let is_unknown = stored.has_sizes_after_content && stored.bytes == 0;
    Ok(Local::Complete(LocalFile {
        name: stored.name.to_owned(),
        offset,
        header_bytes,
        size: (!is_unknown).then_some(stored.bytes),
    }))
}

/// The fields between signature and name: the file without name and extra fields, and the lengths of both.
fn read_head(head: &[u8]) -> Option<(File<'static>, usize, usize)> {
    let mut fields = Fields(head);
    let _version = fields.u16()?;
    let (flags, method) = (fields.u16()?, fields.u16()?);
    let _time_and_date = fields.u32()?;
    let _checksum = fields.u32()?;
    let file = File {
        flags,
        method,
        compressed_bytes: fields.u32()?,
        bytes: fields.u32()?,
        name: &[],
        extra: &[],
    };
    Some((file, usize::from(fields.u16()?), usize::from(fields.u16()?)))
}
