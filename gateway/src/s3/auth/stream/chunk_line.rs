//! Lines of `aws-chunked` framing.

use bytes::Bytes;

/// The longest line before a chunk in bytes, with CRLF.
pub(super) const MAX_CHUNK_LINE_BYTES: usize = 128;

const MAX_SIZE_DIGITS: usize = 16;

/// A line that arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct Line(Vec<u8>);

/// The line before a chunk: `SIZE[;chunk-signature=SIGNATURE]`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ChunkLine {
    /// Size of the chunk; zero for the final one.
    pub(super) bytes: u64,
    /// The signature of the chunk, in signed framing only.
    pub(super) signature: Option<[u8; 32]>,
}

impl Line {
    /// Moves bytes from `piece` to the line, up to the first CRLF. Returns whether the line is complete, or `None` if it is longer
    /// than `max_bytes`.
    pub(super) fn read(&mut self, piece: &mut Bytes, max_bytes: usize) -> Option<bool> {
        while !piece.is_empty() {
            let line_feed = piece.iter().position(|byte| *byte == b'\n');
            let length = line_feed.map_or(piece.len(), |at| at + 1);
            if length > max_bytes.saturating_sub(self.0.len()) {
                return None;
            }
            self.0.extend_from_slice(&piece.split_to(length));
            if self.0.ends_with(b"\r\n") {
                return Some(true);
            }
        }
        Some(false)
    }

    /// The line so far, with CRLF if it is complete.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Begins the next line.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl ChunkLine {
    /// Parses a complete line. `None` if it is malformed, or signed although the framing is not (or the reverse).
    pub(super) fn parse(line: &[u8], is_signed: bool) -> Option<Self> {
        let line = line.strip_suffix(b"\r\n")?;
        let (size, signature) = if is_signed {
            let end = line.iter().position(|byte| *byte == b';')?;
            let (size, extension) = line.split_at(end);
            let signature = extension.strip_prefix(b";chunk-signature=")?;
            (size, Some(parse_signature(signature)?))
        } else {
            (line, None)
        };
        let is_size = (1..=MAX_SIZE_DIGITS).contains(&size.len()) && size.iter().all(u8::is_ascii_hexdigit);
        if !is_size {
            return None;
        }
        let bytes = u64::from_str_radix(std::str::from_utf8(size).ok()?, 16).ok()?;
        Some(Self { bytes, signature })
    }
}

/// Parses a signature: 64 lower-case hex digits.
pub(super) fn parse_signature(digits: &[u8]) -> Option<[u8; 32]> {
    if digits.iter().any(u8::is_ascii_uppercase) {
        return None;
    }
    let mut signature = [0; 32];
    hex::decode_to_slice(digits, &mut signature).ok()?;
    Some(signature)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(line: &str) -> Option<u64> {
        ChunkLine::parse(line.as_bytes(), false).map(|line| line.bytes)
    }

    #[test]
    fn sizes_have_up_to_16_hex_digits() {
        assert_eq!(size("0\r\n"), Some(0));
        assert_eq!(size("1aF\r\n"), Some(0x1af));
        assert_eq!(size("ffffffffffffffff\r\n"), Some(u64::MAX));
        let malformed = [
            "\r\n",
            "00000000000000001\r\n",
            "+1\r\n",
            " 1\r\n",
            "1 \r\n",
            "0x1\r\n",
            "1;a=b\r\n",
            "1\n",
        ];
        for line in malformed {
            assert_eq!(size(line), None, "{line:?}");
        }
    }

    #[test]
    fn signatures_are_lower_case_hex() {
        let parse = |line: &str| ChunkLine::parse(line.as_bytes(), true);
        let digits = "0f".repeat(32);
        let expected = ChunkLine {
            bytes: 16,
            signature: Some([15; 32]),
        };
        assert_eq!(parse(&format!("10;chunk-signature={digits}\r\n")), Some(expected));
        let upper = digits.to_ascii_uppercase();
        let malformed = [
            "10\r\n".to_owned(),
            format!("10;chunk-signature={upper}\r\n"),
            format!("10;chunk-signature={digits}0\r\n"),
            format!("10;chunk-signature={}\r\n", &digits[1..]),
            format!("10;chunk-signature={digits};a=b\r\n"),
            format!("10;a=b;chunk-signature={digits}\r\n"),
            format!("10; chunk-signature={digits}\r\n"),
        ];
        for line in malformed {
            assert_eq!(parse(&line), None, "{line:?}");
        }
    }

    #[test]
    fn a_line_can_arrive_in_pieces() {
        let mut line = Line::default();
        for piece in ["1", "a\n", "b\r"] {
            assert_eq!(
                line.read(&mut Bytes::from_static(piece.as_bytes()), 9),
                Some(false)
            );
        }
        let mut piece = Bytes::from_static(b"\nrest");
        assert_eq!(line.read(&mut piece, 9), Some(true));
        assert_eq!((line.bytes(), &piece[..]), (&b"1a\nb\r\n"[..], &b"rest"[..]));
        line.clear();
        assert_eq!(line.read(&mut Bytes::from_static(b"12345678\r\n"), 9), None);
    }
}
