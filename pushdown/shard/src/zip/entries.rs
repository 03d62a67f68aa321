//! The entries of a zip's directory.

use std::{collections::VecDeque, ops::Range};

use super::{
    directory::MAX_NEEDED_BYTES, end::DirectoryPlace, fields::Fields, file::File, local::LOCAL_BYTES,
};
use crate::{ShardError, ShardLimits, name::quoted, names::Names};

/// Bytes of an entry without name, extra fields and comment.
const ENTRY_BYTES: usize = 46;
const SIGNATURE: &[u8] = b"PK\x01\x02";
/// The bits of a Unix mode that are the type of a file, and types.
const MODE_TYPE: u32 = 0o170_000;
const MODE_FILE: u32 = 0o100_000;
const MODE_LINK: u32 = 0o120_000;

/// A file of the directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) bytes: u64,
    /// Where its local header begins.
    pub(super) offset: u64,
}

/// Reads the directory in pieces.
#[derive(Debug)]
pub(super) struct Entries {
    place: DirectoryPlace,
    /// Where the next piece begins.
    position: u64,
    /// The first bytes of the next entry, which end at `position`.
    pending: Vec<u8>,
    /// Number of entries read, directories included.
    count: u64,
    names: Names,
    files: Vec<Entry>,
}

impl Entry {
    /// Where its entry ends at the earliest.
    fn min_end(&self) -> Option<u64> {
        let header_bytes = LOCAL_BYTES + self.name.len();
        self.offset
            .checked_add(header_bytes as u64)?
            .checked_add(self.bytes)
    }

    /// Refuses an entry that ends at byte `end`, if that is after byte `limit`.
    pub(super) fn check_end(&self, end: Option<u64>, limit: u64) -> Result<(), ShardError> {
        match end {
            Some(end) if end <= limit => Ok(()),
            end => Err(ShardError::Overlap {
                name: quoted(self.name.as_bytes()),
                offset: self.offset,
                end: end.unwrap_or(u64::MAX),
                limit,
            }),
        }
    }
}

impl Entries {
    pub(super) fn new(place: DirectoryPlace, limits: ShardLimits) -> Self {
        Self {
            position: place.range.start,
            place,
            pending: Vec::new(),
            count: 0,
            names: Names::new(limits),
            files: Vec::new(),
        }
    }

    /// Where the directory begins.
    pub(super) const fn start(&self) -> u64 {
        self.place.range.start
    }

    /// The range of the next piece. `None` at the end.
    pub(super) fn needs(&self) -> Option<Range<u64>> {
        let end = self
            .place
            .range
            .end
            .min(self.position.saturating_add(MAX_NEEDED_BYTES));
        (self.position < end).then_some(self.position..end)
    }

    /// Reads a piece, and as much of what follows as is part of the directory.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), ShardError> {
        let left = usize::try_from(self.place.range.end - self.position).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(left)];
        let mut start = self.position - self.pending.len() as u64;
        self.pending.extend_from_slice(bytes);
        self.position += bytes.len() as u64;
        let mut read = 0;
        while let Some((file, length)) = read_entry(&self.pending[read..], start, self.place.shift)? {
            self.count += 1;
            if let Some(file) = file {
                self.names.insert(&file.name, file.offset)?;
                self.files.push(file);
            }
            read += length;
            start += length as u64;
        }
        self.pending.drain(..read);
        Ok(())
    }

    /// The files in the order of their offsets. An error if their entries overlap, or if the directory has another length.
    pub(super) fn finish(mut self) -> Result<VecDeque<Entry>, ShardError> {
        if !self.pending.is_empty() || self.count != self.place.entries {
            return Err(ShardError::InvalidHeader {
                offset: self.place.range.start,
                reason: format!(
                    "expected a directory of {} entries in {} bytes, found {} entries and {} bytes more",
                    self.place.entries,
                    self.place.range.end - self.place.range.start,
                    self.count,
                    self.pending.len()
                ),
            });
        }
        self.files.sort_unstable_by_key(|file| file.offset);
        let next_offsets = self.files.iter().skip(1).map(|file| file.offset);
        for (file, limit) in self
            .files
            .iter()
            .zip(next_offsets.chain([self.place.range.start]))
        {
            file.check_end(file.min_end(), limit)?;
        }
        Ok(self.files.into())
    }
}

/// The entry at byte `at`, with which `bytes` begin, unless it is that of a folder, and its length. `None` if it is not complete. `shift` is
/// the number of bytes in front of the zip.
fn read_entry(bytes: &[u8], at: u64, shift: u64) -> Result<Option<(Option<Entry>, usize)>, ShardError> {
    let invalid = || ShardError::InvalidHeader {
        offset: at,
        reason: "expected an entry of the directory of a zip, found other bytes".to_owned(),
    };
    let Some((head, rest)) = bytes.split_at_checked(ENTRY_BYTES) else {
        return Ok(None);
    };
    let head = head.strip_prefix(SIGNATURE).ok_or_else(invalid)?;
    let head = Head::read(head).ok_or_else(invalid)?;
    let mut rest = Fields(rest);
    let (Some(name), Some(extra), Some(_)) = (
        rest.bytes(head.name_bytes),
        rest.bytes(head.extra_bytes),
        rest.bytes(head.comment_bytes),
    ) else {
        return Ok(None);
    };
    let length = ENTRY_BYTES + head.name_bytes + head.extra_bytes + head.comment_bytes;
    let file = File {
        name,
        extra,
        ..head.file
    };
    if file.bytes == 0 && file.compressed_bytes == 0 && name.ends_with(b"/") {
        return Ok(Some((None, length)));
    }
    let mode_type = (head.external_attributes >> 16) & MODE_TYPE;
    if mode_type != 0 && mode_type != MODE_FILE {
        let found = if mode_type == MODE_LINK {
            "a symbolic link"
        } else {
            "a special file"
        };
        return Err(ShardError::Unsupported {
            name: quoted(name),
            offset: at,
            found: found.to_owned(),
        });
    }
    let stored = file.stored(at, head.offset)?;
    let entry = Entry {
        name: stored.name.to_owned(),
        bytes: stored.bytes,
        // An entry at the end of the numbers ends after the directory.
        offset: stored.offset.saturating_add(shift),
    };
    Ok(Some((Some(entry), length)))
}

/// The fields of an entry between signature and name.
#[derive(Debug)]
struct Head<'a> {
    /// Without name and extra fields.
    file: File<'a>,
    name_bytes: usize,
    extra_bytes: usize,
    comment_bytes: usize,
    external_attributes: u32,
    offset: u32,
}

impl Head<'_> {
    /// `None` for an entry in another part of a zip in several parts.
    fn read(head: &[u8]) -> Option<Self> {
        let mut fields = Fields(head);
        let _versions = fields.u32()?;
        let (flags, method) = (fields.u16()?, fields.u16()?);
        let _time_and_date = fields.u32()?;
        let _checksum = fields.u32()?;
        let (compressed_bytes, bytes) = (fields.u32()?, fields.u32()?);
        let (name_bytes, extra_bytes) = (fields.u16()?, fields.u16()?);
        let (comment_bytes, disk) = (fields.u16()?, fields.u16()?);
        let _internal_attributes = fields.u16()?;
        let (external_attributes, offset) = (fields.u32()?, fields.u32()?);
        (disk == 0 || disk == u16::MAX).then(|| Self {
            file: File {
                flags,
                method,
                compressed_bytes,
                bytes,
                name: &[],
                extra: &[],
            },
            name_bytes: usize::from(name_bytes),
            extra_bytes: usize::from(extra_bytes),
            comment_bytes: usize::from(comment_bytes),
            external_attributes,
            offset,
        })
    }
}
