//! The trailers after the final chunk.

use std::fmt::Write as _;

use super::StreamError;
use super::chunk_line::parse_signature;
use super::declared::checksum_bytes;

/// The most bytes from the final chunk's line to the end of the body.
pub(super) const MAX_TRAILER_BYTES: usize = 16 << 10;

const SIGNATURE: &str = "x-amz-trailer-signature";

/// Trailers, read line by line and compared with the declared names.
#[derive(Debug)]
pub(super) struct Trailers {
    names: Vec<String>,
    is_signed: bool,
    /// Names in lower case, and values without surrounding spaces, in the order of the body.
    found: Vec<(String, String)>,
    signature: Option<[u8; 32]>,
    read_bytes: usize,
}

impl Trailers {
    /// Expects trailers with exactly these names, and their signature if `is_signed`.
    pub(super) fn new(names: Vec<String>, is_signed: bool) -> Self {
        Self {
            names,
            is_signed,
            found: Vec::new(),
            signature: None,
            read_bytes: 0,
        }
    }

    /// How long the next line can be.
    pub(super) fn max_line_bytes(&self) -> usize {
        MAX_TRAILER_BYTES - self.read_bytes.min(MAX_TRAILER_BYTES)
    }

    /// Reads a complete line. Returns whether it is the empty line after the last trailer.
    pub(super) fn push(&mut self, line: &[u8]) -> Result<bool, StreamError> {
        self.read_bytes += line.len();
        if line == b"\r\n" {
            return self.check_complete().map(|()| true);
        }
        let (name, value) =
            parse_line(line).ok_or(StreamError::MalformedTrailer("expected a name and a value"))?;
        if self.signature.is_some() {
            return Err(StreamError::MalformedTrailer(
                "expected nothing after the signature",
            ));
        }
        if self.is_signed && name == SIGNATURE {
            let signature = parse_signature(value.as_bytes());
            self.signature = Some(signature.ok_or(StreamError::MalformedTrailer("expected 64 hex digits"))?);
            return Ok(false);
        }
        if !self.names.contains(&name) {
            return Err(StreamError::MalformedTrailer("x-amz-trailer does not name it"));
        }
        if self.found.iter().any(|(found, _)| *found == name) {
            return Err(StreamError::MalformedTrailer("it is sent twice"));
        }
        if checksum_bytes(&name).is_some_and(|expected| expected != value.len()) {
            return Err(StreamError::MalformedTrailer("the checksum has a wrong length"));
        }
        self.found.push((name, value.to_owned()));
        Ok(false)
    }

    fn check_complete(&self) -> Result<(), StreamError> {
        // Each found name is declared, and none is found twice.
        if self.found.len() != self.names.len() {
            return Err(StreamError::MalformedTrailer(
                "x-amz-trailer names one that is missing",
            ));
        }
        if self.is_signed && self.signature.is_none() {
            return Err(StreamError::MalformedTrailer(
                "x-amz-trailer-signature is missing",
            ));
        }
        Ok(())
    }

    /// The signature that was sent.
    pub(super) fn signature(&self) -> Option<[u8; 32]> {
        self.signature
    }

    /// The signed text: `name:value` and a line feed for each trailer, sorted by name.
    pub(super) fn canonical(&self) -> String {
        let mut sorted: Vec<_> = self.found.iter().collect();
        sorted.sort_unstable();
        lines(sorted, "\n")
    }

    /// The trailers as lines of the body, without their signature.
    pub(super) fn encode(&self) -> String {
        lines(&self.found, "\r\n")
    }
}

fn lines<'a>(trailers: impl IntoIterator<Item = &'a (String, String)>, end: &str) -> String {
    trailers
        .into_iter()
        .fold(String::new(), |mut text, (name, value)| {
            // Writing to a string cannot fail.
            _ = write!(text, "{name}:{value}{end}");
            text
        })
}

/// Splits a line into name and value. minio-go ends trailers with LF CRLF instead of CRLF.
fn parse_line(line: &[u8]) -> Option<(String, &str)> {
    let line = line.strip_suffix(b"\r\n")?;
    let line = std::str::from_utf8(line.strip_suffix(b"\n").unwrap_or(line)).ok()?;
    let (name, value) = line.split_once(':')?;
    let value = value.trim_matches([' ', '\t']);
    let is_value = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_graphic());
    is_value.then(|| (name.to_ascii_lowercase(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRC: &str = "x-amz-checksum-crc32";
    const SHA1: &str = "x-amz-checksum-sha1";

    fn read(names: &[&str], is_signed: bool, lines: &[&str]) -> Result<Trailers, StreamError> {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let mut trailers = Trailers::new(names, is_signed);
        for (index, line) in lines.iter().enumerate() {
            let is_last = index + 1 == lines.len();
            assert_eq!(trailers.push(line.as_bytes())?, is_last, "{line:?}");
        }
        Ok(trailers)
    }

    #[test]
    fn trailers_are_signed_in_the_order_of_their_names() {
        let sha1 = format!("X-Amz-Checksum-SHA1: {} \r\n", "a".repeat(28));
        let signature = format!("{SIGNATURE}:{}\r\n", "01".repeat(32));
        let lines: [&str; 4] = [&sha1, "x-amz-checksum-crc32:AAAAAA==\n\r\n", &signature, "\r\n"];
        let trailers = read(&[CRC, SHA1], true, &lines).unwrap();
        let (sha1, crc) = (format!("{SHA1}:{}", "a".repeat(28)), format!("{CRC}:AAAAAA=="));
        assert_eq!(trailers.canonical(), format!("{crc}\n{sha1}\n"));
        assert_eq!(trailers.encode(), format!("{sha1}\r\n{crc}\r\n"));
        assert_eq!(trailers.signature(), Some([1; 32]));
    }

    #[test]
    fn names_must_be_those_of_the_head() {
        let crc = "x-amz-checksum-crc32:AAAAAA==\r\n";
        assert!(read(&[CRC], false, &[crc, "\r\n"]).is_ok());
        assert!(read(&[], false, &["\r\n"]).is_ok());
        let signature = format!("{SIGNATURE}:{}\r\n", "01".repeat(32));
        let refused: [(&[&str], bool, &[&str]); 9] = [
            (&[CRC], false, &["\r\n"]),
            (&[], false, &[crc, "\r\n"]),
            (&[CRC], false, &[crc, crc, "\r\n"]),
            (&[CRC], false, &[crc, &signature, "\r\n"]),
            (&[CRC], true, &[crc, "\r\n"]),
            (&[CRC], true, &[&signature, crc, "\r\n"]),
            (&[CRC], true, &[crc, &signature, &signature, "\r\n"]),
            (&[CRC], true, &[&signature, "\r\n"]),
            (&[CRC], true, &[crc, "x-amz-trailer-signature:00\r\n", "\r\n"]),
        ];
        for (names, is_signed, lines) in refused {
            let found = read(names, is_signed, lines);
            assert!(
                matches!(found, Err(StreamError::MalformedTrailer(_))),
                "{lines:?}"
            );
        }
    }

    #[test]
    fn malformed_lines_are_refused() {
        for line in [
            "x-amz-checksum-crc32\r\n",
            "x-amz-checksum-crc32:\r\n",
            "x-amz-checksum-crc32 :AAAAAA==\r\n",
            "x-amz-checksum-crc32:AAAAA==\r\n",
            "x-amz-checksum-crc32:AAA AA==\r\n",
            "x-amz-checksum-crc32:AAA\nAA==\r\n",
            "x-amz-checksum-crc32:AAAAAA==\n\n\r\n",
            " x-amz-checksum-crc32:AAAAAA==\r\n",
        ] {
            let found = read(&[CRC], false, &[line, "\r\n"]);
            assert!(matches!(found, Err(StreamError::MalformedTrailer(_))), "{line:?}");
        }
    }
}
