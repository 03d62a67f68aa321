//! Takes entries out of a shard whose bytes arrive in pieces.

use std::mem;

use bytes::{Buf as _, Bytes};

use crate::{LeftOut, Member, MemberRange, ShardError, ShardLimits, tar::TarWalk};

/// The most bytes that are allocated for a content before it has arrived.
const MAX_RESERVED_BYTES: u64 = 1 << 20;

/// Takes entries out of consecutive bytes of a shard, cut anywhere.
///
/// Pieces are [pushed](Self::push) as they arrive. A call that returns `None` needs the next one. The headers of an entry come first:
/// [`next_member`](EntryCursor::next_member) finds them in a tar, and [`header`](EntryCursor::header) takes them from a place that is known. Then
/// the content is taken [whole](Self::content) or [in pieces](Self::next_content). What nobody takes is dropped when it arrives. It can also be
/// [skipped](Self::skip), so that it need not be requested.
///
/// It holds the last piece, and one header, or the content that is taken whole: it is up to the caller to take no content of more bytes than
/// there is memory for.
///
/// ```
/// use bytes::Bytes;
/// use pushdown_shard::{EntryCursor, ShardLimits, TarWriter};
///
/// let mut writer = TarWriter::new(Vec::new());
/// writer.append("a.jpg", &[7; 100_000])?;
/// writer.append("a.txt", b"text")?;
/// let shard = writer.finish()?;
///
/// let mut cursor = EntryCursor::walk(ShardLimits::default());
/// let mut texts = Vec::new();
/// let mut is_text = false;
/// for piece in shard.chunks(1000) {
///     cursor.push(Bytes::copy_from_slice(piece));
///     loop {
///         if is_text {
///             let Some(content) = cursor.content() else { break };
///             texts.push(content);
///             is_text = false;
///         }
///         let Some(member) = cursor.next_member()? else { break };
///         is_text = member.name.ends_with(".txt");
///     }
/// }
/// cursor.finish(shard.len() as u64)?;
/// assert_eq!(texts, [&b"text"[..]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct EntryCursor<P> {
    /// Where the next byte is in the shard: the first one of `arrived`, or of the next piece.
    position: u64,
    /// Bytes that have arrived and are not taken. Empty while the next bytes are unneeded.
    arrived: Bytes,
    /// Number of the next bytes that nobody needs.
    unneeded_bytes: u64,
    /// The first bytes of a header, or of a content that is taken whole.
    gathered: Vec<u8>,
    /// Bytes of the content that are not taken. `None` before the headers of an entry are complete, and after its whole content.
    content_bytes: Option<u64>,
    places: P,
}

/// The places of entries that are found by the headers of a tar.
///
/// The tar ends with the first block of zeros, or after a whole entry. Folders and global pax headers that are only comments are passed over.
/// What else is no regular file, or has a name that no member can have, is [left out](EntryCursor::left_out). Sparse files are refused, and
/// whatever Python's `tarfile` and GNU tar read differently. After an error the cursor is of no further use.
#[derive(Debug)]
pub struct Walked {
    tar: TarWalk,
    /// Bytes after the content that are not taken.
    padding_bytes: u64,
}

/// The places of entries that are known from a list. They are taken in their order.
#[derive(Debug)]
pub struct Listed {
    range: Option<MemberRange>,
    header: Option<Bytes>,
}

impl<P> EntryCursor<P> {
    const fn new(position: u64, places: P) -> Self {
        Self {
            position,
            arrived: Bytes::new(),
            unneeded_bytes: 0,
            gathered: Vec::new(),
            content_bytes: None,
            places,
        }
    }

    /// Adds the next bytes of the shard. To be called when the bytes before them are taken; otherwise both are copied.
    pub fn push(&mut self, mut piece: Bytes) {
        let dropped = length(self.unneeded_bytes).min(piece.len());
        piece.advance(dropped);
        self.position += dropped as u64;
        self.unneeded_bytes -= dropped as u64;
        self.arrived = if self.arrived.is_empty() {
            piece
        } else {
            [&self.arrived[..], &piece].concat().into()
        };
    }

    /// Where the next byte is in the shard that has not been taken or dropped. If none is left of the last piece, the next one begins here.
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Number of bytes from [`position`](Self::position) on that need not be pushed, because the last call that returned `None` does not need
    /// them: the rest of a content and its padding, or what is before a place in a list. They may reach beyond the end of a shard with a wrong
    /// size. After the end marker of a tar they are all bytes.
    pub const fn skippable(&self) -> u64 {
        self.unneeded_bytes
    }

    /// Skips bytes from [`position`](Self::position) on.
    ///
    /// # Errors
    /// [`ShardError::WrongLength`] if more than [`skippable`](Self::skippable).
    pub fn skip(&mut self, bytes: u64) -> Result<(), ShardError> {
        let left = self.unneeded_bytes.checked_sub(bytes);
        self.unneeded_bytes = left.ok_or(ShardError::WrongLength {
            expected: self.unneeded_bytes,
            found: bytes,
        })?;
        self.position += bytes;
        Ok(())
    }

    /// Bytes of the content of the entry that are not taken.
    pub fn content_bytes(&self) -> u64 {
        self.content_bytes.unwrap_or_default()
    }

    /// The next bytes of the content that have arrived, without a copy. `None` also at the end of the content.
    pub fn next_content(&mut self) -> Option<Bytes> {
        let left = self.content_bytes?;
        let piece = self.take(left);
        self.content_bytes = Some(left - piece.len() as u64);
        (!piece.is_empty()).then_some(piece)
    }

    /// The rest of the content, once all of it has arrived; `None` also if it was returned before. It is a copy, so that it keeps no other
    /// entries in memory.
    pub fn content(&mut self) -> Option<Bytes> {
        let missing = self.content_bytes?;
        if let Some(piece) = self.next_content() {
            self.append(&piece, missing);
        }
        self.content_bytes.take_if(|left| *left == 0)?;
        Some(mem::take(&mut self.gathered).into())
    }

    /// The next `bytes`, once all of them have arrived.
    fn gather(&mut self, bytes: usize) -> Option<Bytes> {
        if self.gathered.is_empty() && bytes <= self.arrived.len() {
            return Some(self.take(bytes as u64));
        }
        let missing = bytes.saturating_sub(self.gathered.len()) as u64;
        let piece = self.take(missing);
        self.append(&piece, missing);
        (self.gathered.len() >= bytes).then(|| mem::take(&mut self.gathered).into())
    }

    /// Adds a piece to what is gathered, of which `missing` bytes were missing before it.
    fn append(&mut self, piece: &[u8], missing: u64) {
        let gathered = self.gathered.len();
        if self.gathered.capacity() - gathered < piece.len() {
            // As much as has arrived, so that a wrong size takes no memory.
            let reserved = MAX_RESERVED_BYTES.max(gathered as u64).min(missing);
            self.gathered.reserve_exact(length(reserved).max(piece.len()));
        }
        self.gathered.extend_from_slice(piece);
    }

    /// Takes at most `max_bytes` of those that have arrived.
    fn take(&mut self, max_bytes: u64) -> Bytes {
        let max = length(max_bytes);
        let taken = if max < self.arrived.len() {
            self.arrived.split_to(max)
        } else {
            mem::take(&mut self.arrived)
        };
        self.position += taken.len() as u64;
        taken
    }

    /// Drops the next bytes: those that have arrived, and others when they arrive.
    fn discard(&mut self, bytes: u64) {
        let dropped = self.take(bytes);
        self.unneeded_bytes = bytes - dropped.len() as u64;
    }
}

impl EntryCursor<Walked> {
    /// Finds the members of a tar, from its first byte on.
    pub fn walk(limits: ShardLimits) -> Self {
        Self::walk_from(0, limits)
    }

    /// Finds the members of a tar from the byte `position` on, where an entry begins.
    pub(crate) fn walk_from(position: u64, limits: ShardLimits) -> Self {
        let places = Walked {
            tar: TarWalk::new(limits),
            padding_bytes: 0,
        };
        Self::new(position, places)
    }

    /// The next member, once its headers have arrived. What is not taken of the content before it is dropped. `None` also after the end marker.
    ///
    /// # Errors
    /// If the tar is refused.
    pub fn next_member(&mut self) -> Result<Option<Member>, ShardError> {
        loop {
            if let Some(content) = self.content_bytes.take() {
                self.gathered.clear();
                self.places.padding_bytes += content;
            }
            match mem::take(&mut self.places.padding_bytes) {
                0 => {}
                left => self.discard(left),
            }
            if self.is_at_end() {
                self.discard(u64::MAX - self.position);
                return Ok(None);
            }
            if self.position.checked_add(self.arrived.len() as u64).is_none() {
                return Err(ShardError::TooLarge {
                    what: "bytes of a shard",
                    limit: u64::MAX,
                    offset: self.position,
                });
            }
            let Some(header) = self.gather(self.places.tar.wanted_bytes()) else {
                return Ok(None);
            };
            let offset = self.position - header.len() as u64;
            if let Some(entry) = self.places.tar.read(&header, offset)? {
                self.content_bytes = Some(entry.range.size());
                self.places.padding_bytes = entry.padding_bytes;
                if entry.member.is_some() {
                    return Ok(entry.member);
                }
            }
        }
    }

    /// What is left out so far.
    pub const fn left_out(&self) -> &LeftOut {
        self.places.tar.left_out()
    }

    /// Whether the end marker, a block of zeros, has been read. What follows it is no part of the tar.
    pub const fn is_at_end(&self) -> bool {
        self.places.tar.is_at_end()
    }

    /// Checks the end of a shard of `object_bytes` bytes, after its last [member](Self::next_member).
    ///
    /// # Errors
    /// [`ShardError::BeyondEnd`] if the content of an entry ends later than the shard, and [`ShardError::Truncated`] if a part of an
    /// entry is missing, or if there is nothing at all.
    pub fn finish(&self, object_bytes: u64) -> Result<(), ShardError> {
        let Walked { tar, padding_bytes } = &self.places;
        tar.check_end(object_bytes)?;
        if tar.is_at_end() {
            return Ok(());
        }
        let is_in_content = self.content_bytes() > 0 || *padding_bytes > 0 || self.unneeded_bytes > 0;
        let expected = if is_in_content || self.position > object_bytes {
            "the rest of a content, padded to 512 bytes"
        } else if !tar.is_between_entries() || !self.gathered.is_empty() {
            tar.missing()
        } else if self.position == 0 {
            "a header, or blocks of zeros"
        } else {
            return Ok(());
        };
        Err(ShardError::Truncated {
            expected,
            position: self.position.min(object_bytes),
        })
    }
}

impl EntryCursor<Listed> {
    /// Takes entries with known places, from the byte `position` of a shard on.
    pub const fn listed(position: u64) -> Self {
        let places = Listed {
            range: None,
            header: None,
        };
        Self::new(position, places)
    }

    /// Goes to an entry, unless the cursor is there, and drops what is before it.
    pub fn go_to(&mut self, range: &MemberRange) {
        if self.places.range == Some(*range) {
            return;
        }
        self.places = Listed {
            range: Some(*range),
            header: None,
        };
        self.gathered.clear();
        self.content_bytes = None;
        self.discard(range.offset().saturating_sub(self.position));
    }

    /// The bytes before the content of the entry that the cursor [went to](Self::go_to), once they have arrived.
    /// [`check_entry`](crate::check_entry) compares them with the member.
    pub fn header(&mut self) -> Option<Bytes> {
        if self.places.header.is_none() {
            let range = self.places.range?;
            let header = self.gather(range.header_bytes() as usize)?;
            // A copy, because it would otherwise keep its piece in memory.
            self.places.header = Some(Bytes::copy_from_slice(&header));
            self.content_bytes = Some(range.size());
        }
        self.places.header.clone()
    }
}

/// A number of bytes as a length.
fn length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
