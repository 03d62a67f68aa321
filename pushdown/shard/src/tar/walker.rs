//! Finds the members of a tar in bytes that arrive in pieces.

use std::mem;

use super::{
    BLOCK,
    entry::{Entry, EntryContent, EntryHeaders, checked_extension_bytes},
    header::{Extension, Header, Kind},
};
use crate::{LeftOut, Member, MemberRange, ShardError, ShardLimits, name::quoted, names::Names};

/// Walks a tar: finds its members in consecutive bytes, cut anywhere. Bytes of contents need not be passed, but can be skipped.
///
/// It ends with the first block of zeros, or with the tar after a whole entry. Folders and global pax headers that are only comments are
/// passed over. What else is no regular file, or has a name that no member can have, is [left out](Self::left_out). Sparse files are
/// refused, and whatever Python's `tarfile` and GNU tar read differently. After an error the walker is of no further use.
///
/// ```
/// use pushdown_shard::{ShardLimits, TarWalker, TarWriter};
///
/// let mut writer = TarWriter::new(Vec::new());
/// writer.append("a.bin", &[7; 100_000])?;
/// writer.append("b.txt", b"text")?;
/// let shard = writer.finish()?;
///
/// let mut walker = TarWalker::new(ShardLimits::default());
/// while !walker.is_at_end() && walker.position() < shard.len() as u64 {
///     walker.skip(walker.skippable())?;
///     // Stands for a range request of 1,024 bytes.
///     let piece = shard.iter().skip(walker.position() as usize).take(1024);
///     walker.push(&piece.copied().collect::<Vec<u8>>())?;
/// }
/// let names: Vec<_> = walker.finish(shard.len() as u64)?.into_iter().map(|member| member.name).collect();
/// assert_eq!(names, ["a.bin", "b.txt"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TarWalker {
    position: u64,
    state: State,
    /// The first bytes of the block or of the extension header that is read.
    pending: Vec<u8>,
    headers: EntryHeaders,
    names: Names,
    members: Vec<Member>,
    left_out: LeftOut,
    /// The entry whose content is, or was last, passed over: its name for a message, and its place.
    last: Option<(String, MemberRange)>,
}

/// What the next bytes are.
#[derive(Debug, Clone, Copy)]
enum State {
    /// A header block.
    Header,
    /// The content of an extension header of `bytes` bytes, with its padding.
    Extension {
        kind: Extension,
        bytes: usize,
        padded: usize,
    },
    /// The rest of a content and its padding.
    Content { left: u64 },
    /// What follows the end marker.
    End,
}

impl TarWalker {
    /// A walker at the first byte of a tar.
    pub fn new(limits: ShardLimits) -> Self {
        Self::starting_at(0, limits)
    }

    /// A walker at the byte `position` of a tar, where an entry begins.
    pub(crate) fn starting_at(position: u64, limits: ShardLimits) -> Self {
        Self {
            position,
            state: State::Header,
            pending: Vec::new(),
            headers: EntryHeaders::default(),
            names: Names::new(limits),
            members: Vec::new(),
            left_out: LeftOut::default(),
            last: None,
        }
    }

    /// Reads the bytes from [`position`](Self::position) on.
    ///
    /// # Errors
    /// If the tar is refused. Members that were found before can still be [taken](Self::take_members).
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), ShardError> {
        while !bytes.is_empty() {
            let skippable = usize::try_from(self.skippable()).unwrap_or(usize::MAX);
            if skippable > 0 {
                let (skipped, rest) = bytes.split_at(skippable.min(bytes.len()));
                self.skip(skipped.len() as u64)?;
                bytes = rest;
            } else {
                bytes = self.read(bytes)?;
            }
        }
        Ok(())
    }

    /// Number of bytes from [`position`](Self::position) on that need not be passed: the rest of a content and its padding. They
    /// may reach beyond the end of a shard with a wrong size; [`finish`](Self::finish) then names the member. After the end
    /// marker they are all bytes.
    pub const fn skippable(&self) -> u64 {
        match self.state {
            State::Content { left } => left,
            State::End => u64::MAX - self.position,
            State::Header | State::Extension { .. } => 0,
        }
    }

    /// Skips bytes from [`position`](Self::position) on.
    ///
    /// # Errors
    /// [`ShardError::WrongLength`] if more than [`skippable`](Self::skippable).
    pub fn skip(&mut self, bytes: u64) -> Result<(), ShardError> {
        let skippable = self.skippable();
        if bytes > skippable {
            return Err(ShardError::WrongLength {
                expected: skippable,
                found: bytes,
            });
        }
        // At most `u64::MAX`: a content whose padding would end later is refused.
        self.position += bytes;
        if let State::Content { left } = self.state {
            self.state = State::after_content(left - bytes);
        }
        Ok(())
    }

    /// Number of bytes that were passed or skipped: where the next byte is in the tar.
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// The members found since the last call, in the order of the tar. A member is found when its headers are complete.
    pub fn take_members(&mut self) -> Vec<Member> {
        mem::take(&mut self.members)
    }

    /// What is left out so far.
    pub const fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    /// Whether the end marker, a block of zeros, has been read. What follows it is no part of the tar.
    pub const fn is_at_end(&self) -> bool {
        matches!(self.state, State::End)
    }

    /// Ends the walk of a shard of `object_bytes` bytes, and returns the members that have not been taken.
    ///
    /// # Errors
    /// [`ShardError::BeyondEnd`] if the content of an entry ends later than the shard, and [`ShardError::Truncated`] if a part of an
    /// entry is missing, or if there is nothing at all.
    pub fn finish(self, object_bytes: u64) -> Result<Vec<Member>, ShardError> {
        if let Some((name, range)) = self.last
            && range.content().end > object_bytes
        {
            return Err(ShardError::BeyondEnd {
                name,
                offset: range.offset(),
                end: range.content().end,
                object_bytes,
            });
        }
        let expected = match self.state {
            State::End => return Ok(self.members),
            State::Content { .. } => "the rest of a content, padded to 512 bytes",
            // Its padding was skipped.
            State::Header if self.position > object_bytes => "the rest of a content, padded to 512 bytes",
            State::Header if self.pending.is_empty() && self.headers.is_empty() => {
                if self.position > 0 {
                    return Ok(self.members);
                }
                "a header, or blocks of zeros"
            }
            State::Header => "the rest of a header",
            State::Extension { .. } => "the rest of an extension header",
        };
        Err(ShardError::Truncated {
            expected,
            position: self.position.min(object_bytes),
        })
    }

    /// Reads a part of a block or of an extension header, and returns the bytes after it.
    fn read<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], ShardError> {
        let wanted = match self.state {
            State::Extension { padded, .. } => padded,
            _ => BLOCK,
        };
        let (taken, rest) = bytes.split_at(bytes.len().min(wanted - self.pending.len()));
        self.position = self
            .position
            .checked_add(taken.len() as u64)
            .ok_or(ShardError::TooLarge {
                what: "bytes of a shard",
                limit: u64::MAX,
                offset: self.position,
            })?;
        self.pending.extend_from_slice(taken);
        if self.pending.len() == wanted {
            let mut pending = mem::take(&mut self.pending);
            self.read_whole(&pending)?;
            pending.clear();
            self.pending = pending;
        }
        Ok(rest)
    }

    /// Reads a whole block or extension header, after which [`position`](Self::position) is.
    fn read_whole(&mut self, bytes: &[u8]) -> Result<(), ShardError> {
        let offset = self.position - bytes.len() as u64;
        if let State::Extension {
            kind, bytes: length, ..
        } = self.state
        {
            self.state = State::Header;
            self.headers.add_extension(kind, &bytes[..length], offset)
        } else if let Some(block) = bytes.first_chunk() {
            self.read_block(block, offset)
        } else {
            Ok(())
        }
    }

    /// Reads the block at byte `offset`: a header, or zeros.
    fn read_block(&mut self, block: &[u8; BLOCK], offset: u64) -> Result<(), ShardError> {
        let invalid = |reason: &str| ShardError::InvalidHeader {
            offset,
            reason: reason.to_owned(),
        };
        if *block != [0; BLOCK] {
            return self.read_header(&Header::parse(block, offset)?, offset);
        }
        if !self.headers.is_empty() {
            return Err(invalid(
                "expected a file after its extension header, found a block of zeros",
            ));
        }
        self.state = State::End;
        Ok(())
    }

    fn read_header(&mut self, header: &Header<'_>, offset: u64) -> Result<(), ShardError> {
        match header.kind() {
            Kind::Extension(kind) => self.start_extension(kind, header, offset),
            Kind::Entry(kind) => {
                self.headers.add_block(offset)?;
                let entry = mem::take(&mut self.headers).into_entry(kind, header)?;
                self.add_entry(entry)
            }
        }
    }

    fn start_extension(
        &mut self,
        kind: Extension,
        header: &Header<'_>,
        offset: u64,
    ) -> Result<(), ShardError> {
        let invalid = |reason: &str| ShardError::InvalidHeader {
            offset,
            reason: reason.to_owned(),
        };
        let size = header
            .size()?
            .ok_or_else(|| invalid("expected a size, found a blank field"))?;
        let bytes = checked_extension_bytes(size, offset)?;
        let padded = bytes.next_multiple_of(BLOCK);
        // Between the headers of an entry, a global header is among its bytes.
        if kind != Extension::GlobalPax || !self.headers.is_empty() {
            self.headers.add_block(offset)?;
            self.headers.add_bytes(padded)?;
        }
        if bytes == 0 {
            return self.headers.add_extension(kind, &[], self.position);
        }
        self.state = State::Extension { kind, bytes, padded };
        Ok(())
    }

    fn add_entry(&mut self, entry: Entry) -> Result<(), ShardError> {
        let Entry { name, range, content } = entry;
        let left = range.size().checked_next_multiple_of(BLOCK as u64);
        let left = left.filter(|left| range.content().start.checked_add(*left).is_some());
        let left = left.ok_or_else(|| ShardError::InvalidRange {
            offset: range.offset(),
            header_bytes: range.header_bytes(),
            size: range.size(),
        })?;
        match content {
            EntryContent::Member(name) => {
                self.names.insert(&name, range.offset())?;
                self.members.push(Member { name, range });
            }
            EntryContent::Folder => {}
            EntryContent::LeftOut(reason) => self.left_out.add(&name, &reason),
        }
        self.state = State::after_content(left);
        self.last = Some((quoted(&name), range));
        Ok(())
    }
}

impl State {
    /// What follows if `left` bytes of a content and its padding are left.
    const fn after_content(left: u64) -> Self {
        match left {
            0 => Self::Header,
            left => Self::Content { left },
        }
    }
}
