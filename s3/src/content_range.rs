//! The `Content-Range` header of an answer to a range request.

use std::ops::Range;

use http::{HeaderMap, header::CONTENT_RANGE};

/// The part of an object that an answer contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentRange {
    /// Offsets of the bytes in the object; never empty, and within `total_bytes`.
    pub range: Range<u64>,
    /// Size of the whole object in bytes.
    pub total_bytes: u64,
}

impl ContentRange {
    /// The range of an answer with these headers. `None` without `Content-Range`, and for a malformed one, an unknown size, or a
    /// range beyond the end of the object.
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get(CONTENT_RANGE)?.to_str().ok()?;
        let (range, total) = text.strip_prefix("bytes ")?.trim().split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let (first, last, total): (u64, u64, u64) =
            (first.parse().ok()?, last.parse().ok()?, total.parse().ok()?);
        (first <= last && last < total).then(|| Self {
            range: first..last + 1,
            total_bytes: total,
        })
    }

    /// Number of bytes of the part, at least one.
    pub const fn length(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// Whether the part reaches the end of the object.
    pub const fn is_suffix(&self) -> bool {
        self.range.end == self.total_bytes
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn content_range_is_parsed_strictly() {
        let read = |text: &'static str| {
            let headers = HeaderMap::from_iter([(CONTENT_RANGE, HeaderValue::from_static(text))]);
            ContentRange::from_headers(&headers).map(|found| (found.range, found.total_bytes))
        };
        assert_eq!(read("bytes 5-9/10"), Some((5..10, 10)));
        assert_eq!(read("bytes 0-0/1"), Some((0..1, 1)));
        for wrong in [
            "",
            "bytes */10",
            "bytes 5-9/*",
            "bytes 9-5/10",
            "bytes 5-10/10",
            "5-9/10",
            "bytes 5/10",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_suffix_reaches_the_end() {
        let part = |range, total_bytes| ContentRange { range, total_bytes };
        assert!(part(5..10, 10).is_suffix() && !part(5..9, 10).is_suffix());
        assert_eq!(part(5..9, 10).length(), 4);
    }
}
