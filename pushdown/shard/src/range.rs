//! Members, and where they are.

use std::ops::Range;

use crate::{
    ShardError,
    limits::{MAX_HEADER_BYTES, MIN_HEADER_BYTES},
};

/// Where a member is in its shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MemberRange {
    offset: u64,
    header_bytes: u32,
    size: u64,
}

/// A file in a shard.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Member {
    /// Its name, as stored: never empty, absolute or with `..`, and at most [`MAX_NAME_BYTES`](crate::MAX_NAME_BYTES) long.
    pub name: String,
    /// Where it is.
    pub range: MemberRange,
}

impl MemberRange {
    /// A range that begins at byte `offset` with `header_bytes` of headers, followed by a content of `size` bytes.
    ///
    /// # Errors
    /// [`ShardError::InvalidRange`] if the headers are shorter than any, or longer than [`MAX_HEADER_BYTES`], or if the end
    /// overflows.
    pub fn new(offset: u64, header_bytes: u32, size: u64) -> Result<Self, ShardError> {
        let end = offset
            .checked_add(u64::from(header_bytes))
            .and_then(|content| content.checked_add(size));
        if end.is_none() || !(MIN_HEADER_BYTES..=MAX_HEADER_BYTES).contains(&header_bytes) {
            return Err(ShardError::InvalidRange {
                offset,
                header_bytes,
                size,
            });
        }
        Ok(Self {
            offset,
            header_bytes,
            size,
        })
    }

    /// First byte of the entry: of its first header, extension headers of a tar included.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Number of bytes before the content: 512 for a tar entry without extension headers.
    pub const fn header_bytes(&self) -> u32 {
        self.header_bytes
    }

    /// Number of bytes of the content.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The bytes from the first header to the end of the content, without padding.
    pub fn entry(&self) -> Range<u64> {
        self.offset..self.content().end
    }

    /// The bytes of the content.
    pub fn content(&self) -> Range<u64> {
        let start = self.offset + u64::from(self.header_bytes);
        start..start + self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_a_legal_header_and_an_end() {
        let range = MemberRange::new(1024, 512, 5).unwrap();
        assert_eq!((range.entry(), range.content()), (1024..1541, 1536..1541));
        assert!(MemberRange::new(0, 31, 0).is_ok() && MemberRange::new(0, 30, 0).is_err());
        assert!(
            MemberRange::new(0, MAX_HEADER_BYTES, 0).is_ok()
                && MemberRange::new(0, MAX_HEADER_BYTES + 1, 0).is_err()
        );
        assert!(MemberRange::new(u64::MAX - 600, 512, 88).is_ok());
        assert!(MemberRange::new(u64::MAX - 600, 512, 89).is_err());
        assert!(MemberRange::new(u64::MAX, 512, u64::MAX).is_err());
    }
}
