//! Finds the entries of a tar by their headers.

use std::mem;

use super::{
    BLOCK,
    entry::{Entry, EntryContent, EntryHeaders, checked_extension_bytes},
    header::{Extension, Header, Kind},
};
use crate::{LeftOut, Member, MemberRange, ShardError, ShardLimits, name::quoted, names::Names};

/// Reads the headers of a tar, one block or extension header after the other. Contents and their padding are not passed to it.
///
/// It ends with the first block of zeros. After an error it is of no further use.
#[derive(Debug)]
pub(crate) struct TarWalk {
    state: State,
    headers: EntryHeaders,
    names: Names,
    left_out: LeftOut,
    /// The last entry: its name for a message, and its place.
    last: Option<(String, MemberRange)>,
}

/// An entry whose headers are complete.
#[derive(Debug)]
pub(crate) struct TarEntry {
    pub(crate) range: MemberRange,
    /// Bytes between its content and the next header.
    pub(crate) padding_bytes: u64,
    /// `None` for what is no member.
    pub(crate) member: Option<Member>,
}

/// What the next bytes are.
#[derive(Debug, Clone, Copy)]
enum State {
    /// A header block.
    Header,
    /// The content of an extension header of `bytes` bytes, with its padding.
    Extension { kind: Extension, bytes: usize },
    /// What follows the end marker.
    End,
}

impl TarWalk {
    pub(crate) fn new(limits: ShardLimits) -> Self {
        Self {
            state: State::Header,
            headers: EntryHeaders::default(),
            names: Names::new(limits),
            left_out: LeftOut::default(),
            last: None,
        }
    }

    /// Number of bytes that are [read](Self::read) next.
    pub(crate) const fn wanted_bytes(&self) -> usize {
        match self.state {
            State::Extension { bytes, .. } => bytes.next_multiple_of(BLOCK),
            State::Header | State::End => BLOCK,
        }
    }

    /// Whether the end marker, a block of zeros, has been read.
    pub(crate) const fn is_at_end(&self) -> bool {
        matches!(self.state, State::End)
    }

    /// Whether no header of an entry has been read after the last entry.
    pub(crate) const fn is_between_entries(&self) -> bool {
        matches!(self.state, State::Header) && self.headers.is_empty()
    }

    /// What is left out so far.
    pub(crate) const fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    /// Reads [`wanted_bytes`](Self::wanted_bytes), which begin at byte `offset` of the tar. Returns the entry whose headers they complete.
    ///
    /// # Errors
    /// If the tar is refused.
    pub(crate) fn read(&mut self, bytes: &[u8], offset: u64) -> Result<Option<TarEntry>, ShardError> {
        if let State::Extension { kind, bytes: length } = self.state {
            self.state = State::Header;
            self.headers.add_extension(kind, &bytes[..length], offset)?;
            return Ok(None);
        }
        match bytes.first_chunk() {
            Some(block) => self.read_block(block, offset),
            None => Ok(None),
        }
    }

    /// Checks that the content of the last entry ends within the `object_bytes` bytes of the tar.
    ///
    /// # Errors
    /// [`ShardError::BeyondEnd`].
    pub(crate) fn check_end(&self, object_bytes: u64) -> Result<(), ShardError> {
        match &self.last {
            Some((name, range)) if range.content().end > object_bytes => Err(ShardError::BeyondEnd {
                name: name.clone(),
                offset: range.offset(),
                end: range.content().end,
                object_bytes,
            }),
            _ => Ok(()),
        }
    }

    /// What is missing if the tar ends within the bytes that are read next.
    pub(crate) const fn missing(&self) -> &'static str {
        match self.state {
            State::Extension { .. } => "the rest of an extension header",
            State::Header | State::End => "the rest of a header",
        }
    }

    /// Reads the block at byte `offset`: a header, or zeros.
    fn read_block(&mut self, block: &[u8; BLOCK], offset: u64) -> Result<Option<TarEntry>, ShardError> {
        if *block != [0; BLOCK] {
            return self.read_header(&Header::parse(block, offset)?, offset);
        }
        if !self.headers.is_empty() {
            return Err(ShardError::InvalidHeader {
                offset,
                reason: "expected a file after its extension header, found a block of zeros".to_owned(),
            });
        }
        self.state = State::End;
        Ok(None)
    }

    fn read_header(&mut self, header: &Header<'_>, offset: u64) -> Result<Option<TarEntry>, ShardError> {
        match header.kind() {
            Kind::Extension(kind) => {
                self.start_extension(kind, header, offset)?;
                Ok(None)
            }
            Kind::Entry(kind) => {
                self.headers.add_block(offset)?;
                let entry = mem::take(&mut self.headers).into_entry(kind, header)?;
                self.add_entry(entry).map(Some)
            }
        }
    }

    fn start_extension(
        &mut self,
        kind: Extension,
        header: &Header<'_>,
        offset: u64,
    ) -> Result<(), ShardError> {
        let size = header.size()?.ok_or_else(|| ShardError::InvalidHeader {
            offset,
            reason: "expected a size, found a blank field".to_owned(),
        })?;
        let bytes = checked_extension_bytes(size, offset)?;
        // Between the headers of an entry, a global header is among its bytes.
        if kind != Extension::GlobalPax || !self.headers.is_empty() {
            self.headers.add_block(offset)?;
            self.headers.add_bytes(bytes.next_multiple_of(BLOCK))?;
        }
        if bytes == 0 {
            return self.headers.add_extension(kind, &[], offset + BLOCK as u64);
        }
        self.state = State::Extension { kind, bytes };
        Ok(())
    }

    fn add_entry(&mut self, entry: Entry) -> Result<TarEntry, ShardError> {
        let Entry { name, range, content } = entry;
        let padded = range.size().checked_next_multiple_of(BLOCK as u64);
        let padded = padded.filter(|padded| range.content().start.checked_add(*padded).is_some());
        let padded = padded.ok_or_else(|| ShardError::InvalidRange {
            offset: range.offset(),
            header_bytes: range.header_bytes(),
            size: range.size(),
        })?;
        let member = match content {
            EntryContent::Member(name) => {
                self.names.insert(&name, range.offset())?;
                Some(Member { name, range })
            }
            EntryContent::Folder => None,
            EntryContent::LeftOut(reason) => {
                self.left_out.add(&name, &reason);
                None
            }
        };
        self.last = Some((quoted(&name), range));
        Ok(TarEntry {
            range,
            padding_bytes: padded - range.size(),
            member,
        })
    }
}
