//! The records at the end of a zip, which say where its directory is.

use std::ops::Range;

use super::fields::Fields;
use crate::ShardError;

/// Bytes of an end record without its comment.
pub(super) const END_BYTES: usize = 22;
/// Bytes of a locator of the zip64 end record.
const LOCATOR_BYTES: usize = 20;
/// Most bytes of the records at the end: a locator, an end record and its comment.
pub(super) const MAX_TAIL_BYTES: u64 = (LOCATOR_BYTES + END_BYTES + u16::MAX as usize) as u64;
/// Bytes of a zip64 end record without extensions.
const ZIP64_BYTES: u64 = 56;

const END_SIGNATURE: &[u8] = b"PK\x05\x06";
const LOCATOR_SIGNATURE: &[u8] = b"PK\x06\x07";
const ZIP64_SIGNATURE: &[u8] = b"PK\x06\x06";
const ZIP64_ELSEWHERE: &str =
    "expected a zip64 end record of 56 bytes before its locator, found another place";

/// Where the directory of a zip is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DirectoryPlace {
    pub(super) range: Range<u64>,
    /// Bytes in front of the zip, by which all places in its records are shifted.
    pub(super) shift: u64,
    /// Number of its entries.
    pub(super) entries: u64,
}

/// The end record.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    offset: u64,
    entries: u16,
    directory_bytes: u32,
    directory_offset: u32,
    /// Where the zip64 end record is by its locator, if there is one.
    zip64_offset: Option<u64>,
}

impl End {
    /// Finds the end record in the last bytes of a zip, which begin at byte `start`.
    pub(super) fn find(tail: &[u8], start: u64) -> Result<Self, ShardError> {
        let is_end = |at: &usize| {
            let mut fields = Fields(&tail[*at..]);
            let is_signed = fields.bytes(END_SIGNATURE.len()) == Some(END_SIGNATURE);
            let comment_bytes = fields.bytes(16).and_then(|_| fields.u16());
            is_signed && comment_bytes.map(usize::from) == Some(fields.0.len())
        };
        let mut places = (0..tail.len().saturating_sub(END_BYTES - 1)).filter(is_end);
        match (places.next(), places.next()) {
            (Some(at), None) => Self::parse(tail, at, start).ok_or_else(|| {
                invalid(
                    start + at as u64,
                    "expected the end record of a zip in one part, found one of several parts",
                )
            }),
            (None, _) => Err(invalid(
                start,
                "expected the end record of a zip in the last bytes, found none",
            )),
            (Some(_), Some(at)) => Err(invalid(
                start + at as u64,
                "expected one end record of a zip, found another one in its comment",
            )),
        }
    }

    /// `None` if the zip is in several parts.
    fn parse(tail: &[u8], at: usize, start: u64) -> Option<Self> {
        let mut fields = Fields(tail.get(at + END_SIGNATURE.len()..)?);
        let (disk, directory_disk) = (fields.u16()?, fields.u16()?);
        let (disk_entries, entries) = (fields.u16()?, fields.u16()?);
        let end = Self {
            offset: start + at as u64,
            entries,
            directory_bytes: fields.u32()?,
            directory_offset: fields.u32()?,
            zip64_offset: None,
        };
        let is_whole = |disk| disk == 0 || disk == u16::MAX;
        if !is_whole(disk) || !is_whole(directory_disk) || disk_entries != entries {
            return None;
        }
        let locator = at.checked_sub(LOCATOR_BYTES).map(|locator| &tail[locator..at]);
        match locator.and_then(|locator| locator.strip_prefix(LOCATOR_SIGNATURE)) {
            Some(locator) => {
                let mut fields = Fields(locator);
                let (disk, offset, disks) = (fields.u32()?, fields.u64()?, fields.u32()?);
                (disk == 0 && disks == 1).then_some(Self {
                    zip64_offset: Some(offset),
                    ..end
                })
            }
            None => Some(end),
        }
    }

    /// The range of the zip64 end record, if there is one.
    pub(super) fn zip64_range(&self) -> Result<Option<Range<u64>>, ShardError> {
        if self.zip64_offset.is_none() {
            return Ok(None);
        }
        let end = self.offset - LOCATOR_BYTES as u64;
        let start = end.checked_sub(ZIP64_BYTES);
        let start = start.ok_or_else(|| invalid(end, ZIP64_ELSEWHERE))?;
        Ok(Some(start..end))
    }

    /// Where the directory is, if there is no zip64 end record.
    pub(super) fn directory(&self) -> Result<DirectoryPlace, ShardError> {
        let start = u64::from(self.directory_offset);
        let range = start..start + u64::from(self.directory_bytes);
        checked_place(range, u64::from(self.entries), self.offset)
    }

    /// Where the directory is by the zip64 end record at byte `offset`.
    pub(super) fn zip64_directory(&self, record: &[u8], offset: u64) -> Result<DirectoryPlace, ShardError> {
        let damaged = || {
            invalid(
                offset,
                "expected a zip64 end record of 56 bytes that agrees with the end record",
            )
        };
        let (entries, bytes, start) = self.read_zip64(record).ok_or_else(damaged)?;
        let end = start.checked_add(bytes).ok_or_else(damaged)?;
        let place = checked_place(start..end, entries, offset)?;
        let located = self
            .zip64_offset
            .and_then(|located| located.checked_add(place.shift));
        if located == Some(offset) {
            Ok(place)
        } else {
            Err(invalid(offset, ZIP64_ELSEWHERE))
        }
    }

    /// Number of entries, and bytes and offset of the directory. `None` if they contradict the end record.
    fn read_zip64(&self, record: &[u8]) -> Option<(u64, u64, u64)> {
        let mut fields = Fields(record.strip_prefix(ZIP64_SIGNATURE)?);
        let bytes_after = fields.u64()?;
        let _versions = fields.u32()?;
        let (disk, directory_disk) = (fields.u32()?, fields.u32()?);
        let (disk_entries, entries) = (fields.u64()?, fields.u64()?);
        let (bytes, start) = (fields.u64()?, fields.u64()?);
        let agrees = |short: u64, mark: u64, long: u64| short == mark || short == long;
        let is_valid = bytes_after == ZIP64_BYTES - 12
            && (disk, directory_disk) == (0, 0)
            && disk_entries == entries
            && agrees(u64::from(self.entries), u64::from(u16::MAX), entries)
            && agrees(u64::from(self.directory_bytes), u64::from(u32::MAX), bytes)
            && agrees(u64::from(self.directory_offset), u64::from(u32::MAX), start);
        is_valid.then_some((entries, bytes, start))
    }
}

/// A directory ends where the records of the end begin. With anything in front of the zip all places may be shifted.
fn checked_place(range: Range<u64>, entries: u64, records: u64) -> Result<DirectoryPlace, ShardError> {
    match records.checked_sub(range.end) {
        Some(shift) => Ok(DirectoryPlace {
            range: range.start + shift..records,
            shift,
            entries,
        }),
        None => Err(ShardError::InvalidHeader {
            offset: records,
            reason: format!(
                "expected a directory that ends at byte {records}, found one that ends at byte {}",
                range.end
            ),
        }),
    }
}

fn invalid(offset: u64, reason: &str) -> ShardError {
    ShardError::InvalidHeader {
        offset,
        reason: reason.to_owned(),
    }
}
