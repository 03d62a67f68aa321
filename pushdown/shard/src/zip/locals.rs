//! Reads the local headers of a zip's files. Only they have the lengths that say where contents begin.

use std::{collections::VecDeque, ops::Range};

use super::{
    directory::MAX_NEEDED_BYTES,
    entries::Entry,
    local::{self, LOCAL_BYTES, Local},
};
use crate::{Member, ShardError, name::quoted};

/// Bytes of extra fields that are read with a header at once.
const EXPECTED_EXTRA_BYTES: u64 = 64;
/// Headers with at most this many bytes between them are read at once.
const MAX_GAP_BYTES: u64 = 64 << 10;

/// The files whose local headers are to be read, and the members whose have been.
#[derive(Debug)]
pub(super) struct Locals {
    /// In the order of their offsets; entries do not overlap.
    files: VecDeque<Entry>,
    /// Where the directory begins.
    directory_offset: u64,
    /// Bytes of the first local header, as far as they are known.
    first_header_bytes: u64,
    members: Vec<Member>,
}

impl Locals {
    pub(super) fn new(files: VecDeque<Entry>, directory_offset: u64) -> Self {
        Self {
            members: Vec::with_capacity(files.len()),
            files,
            directory_offset,
            first_header_bytes: 0,
        }
    }

    /// The range of the next headers. `None` at the end.
    pub(super) fn needs(&self) -> Option<Range<u64>> {
        let start = self.files.front()?.offset;
        let mut end = self.header_end(0);
        for (index, file) in self.files.iter().enumerate().skip(1) {
            let next_end = self.header_end(index);
            if file.offset.saturating_sub(end) > MAX_GAP_BYTES || next_end - start > MAX_NEEDED_BYTES {
                break;
            }
            end = next_end;
        }
        Some(start..end)
    }

    /// Reads all headers in `bytes`, which begin at the first one.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), ShardError> {
        let start = self.files.front().map_or(0, |file| file.offset);
        while let Some(file) = self.files.front() {
            let at = usize::try_from(file.offset - start).ok();
            let Some(bytes) = at.and_then(|at| bytes.get(at..)) else {
                break;
            };
            let limit = self.limit(0);
            let length = usize::try_from(limit - file.offset).unwrap_or(usize::MAX);
            match local::read(&bytes[..bytes.len().min(length)], file.offset)? {
                Local::Complete(local) => {
                    let member = local.member(file.bytes)?;
                    check_agrees(file, &member)?;
                    file.check_end(Some(member.range.entry().end), limit)?;
                    self.members.push(member);
                    self.files.pop_front();
                    self.first_header_bytes = 0;
                }
                Local::Incomplete { header_bytes } => {
                    let header_bytes = header_bytes as u64;
                    file.check_end(file.offset.checked_add(header_bytes), limit)?;
                    self.first_header_bytes = header_bytes;
                    break;
                }
            }
        }
        Ok(())
    }

    /// All members, in the order of their offsets. `None` while bytes are needed.
    pub(super) fn finish(self) -> Option<Vec<Member>> {
        self.files.is_empty().then_some(self.members)
    }

    /// Where the local header of a file ends, if it has no long extra fields.
    fn header_end(&self, index: usize) -> u64 {
        let Some(file) = self.files.get(index) else {
            return self.directory_offset;
        };
        let expected_bytes = (LOCAL_BYTES + file.name.len()) as u64 + EXPECTED_EXTRA_BYTES;
        let header_bytes = match index {
            0 => expected_bytes.max(self.first_header_bytes),
            _ => expected_bytes,
        };
        file.offset.saturating_add(header_bytes).min(self.limit(index))
    }

    /// Where the entry of a file has to end: where the next one, or the directory, begins.
    fn limit(&self, index: usize) -> u64 {
        self.files
            .get(index + 1)
            .map_or(self.directory_offset, |next| next.offset)
    }
}

/// Checks that the local header is that of the file in the directory.
fn check_agrees(file: &Entry, member: &Member) -> Result<(), ShardError> {
    if file.name == member.name && file.bytes == member.range.size() {
        return Ok(());
    }
    Err(ShardError::InvalidHeader {
        offset: file.offset,
        reason: format!(
            "expected the file of the directory, `{}` of {} bytes, found `{}` of {} bytes",
            quoted(file.name.as_bytes()),
            file.bytes,
            quoted(member.name.as_bytes()),
            member.range.size()
        ),
    })
}
