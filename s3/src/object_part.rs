//! Bytes of an object that were read before.

use std::ops::Range;

use bytes::Bytes;

/// Consecutive bytes of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectPart {
    /// Offset of the first byte in the object.
    pub offset: u64,
    /// The bytes.
    pub bytes: Bytes,
}

impl ObjectPart {
    /// The bytes of a range of the object, without a copy. `None` if the range does not lie within the part.
    pub fn slice(&self, range: &Range<u64>) -> Option<Bytes> {
        let index = |position: u64| usize::try_from(position.checked_sub(self.offset)?).ok();
        let (start, end) = (index(range.start)?, index(range.end)?);
        (start <= end && end <= self.bytes.len()).then(|| self.bytes.slice(start..end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_within_the_part_are_slices() {
        let part = ObjectPart {
            offset: 5,
            bytes: Bytes::from_static(b"fghij"),
        };
        let slice = |range| part.slice(&range);
        assert_eq!(slice(5..10).as_deref(), Some(&b"fghij"[..]));
        assert_eq!(slice(6..8).as_deref(), Some(&b"gh"[..]));
        assert_eq!(slice(7..7).as_deref(), Some(&b""[..]));
        for range in [4..6, 9..11, 0..5, 11..12] {
            assert_eq!(part.slice(&range), None, "{range:?}");
        }
        #[expect(clippy::reversed_empty_ranges, reason = "a caller's mistake")]
        let reversed = 8..6;
        assert_eq!(part.slice(&reversed), None);
    }
}
