//! Writes unsigned `aws-chunked` framing, whose trailers the store verifies.

use std::collections::VecDeque;

use bytes::Bytes;

use super::declared::{Declared, checksum_bytes};
use super::trailers::Trailers;

/// Size of a chunk, that of most SDKs. Chunks are cut anew, so that the length of the framing follows from the head alone, and because
/// some stores collect each chunk.
const CHUNK_BYTES: u64 = 64 << 10;

const CRLF: &str = "\r\n";

/// Frames a body of known length.
#[derive(Debug)]
pub(super) struct UnsignedFraming {
    /// Bytes that no chunk has announced yet.
    unannounced_bytes: u64,
    chunk_left_bytes: u64,
    has_chunk: bool,
}

impl UnsignedFraming {
    /// Frames `decoded_bytes` bytes.
    pub(super) fn new(decoded_bytes: u64) -> Self {
        Self {
            unannounced_bytes: decoded_bytes,
            chunk_left_bytes: 0,
            has_chunk: false,
        }
    }

    /// Frames `data`. All calls together must not exceed the length.
    pub(super) fn push(&mut self, mut data: Bytes, output: &mut VecDeque<Bytes>) {
        while !data.is_empty() {
            if self.chunk_left_bytes == 0 && !self.begin_chunk(output) {
                return;
            }
            let length =
                usize::try_from(self.chunk_left_bytes).map_or(data.len(), |left| left.min(data.len()));
            self.chunk_left_bytes -= length as u64;
            output.push_back(data.split_to(length));
        }
    }

    /// Writes the line of the next chunk. Returns whether there is one.
    fn begin_chunk(&mut self, output: &mut VecDeque<Bytes>) -> bool {
        let bytes = self.unannounced_bytes.min(CHUNK_BYTES);
        if bytes == 0 {
            return false;
        }
        let end = self.end_of_chunk();
        output.push_back(format!("{end}{bytes:x}{CRLF}").into());
        self.unannounced_bytes -= bytes;
        self.chunk_left_bytes = bytes;
        self.has_chunk = true;
        true
    }

    /// Ends the framing.
    pub(super) fn finish(&self, trailers: &Trailers, output: &mut VecDeque<Bytes>) {
        let end = self.end_of_chunk();
        output.push_back(format!("{end}0{CRLF}{}{CRLF}", trailers.encode()).into());
    }

    /// What stands between the previous chunk and the next line.
    fn end_of_chunk(&self) -> &'static str {
        if self.has_chunk { CRLF } else { "" }
    }
}

/// Length of a framed body. `None` if the length of a trailer is unknown.
pub(super) fn framed_bytes(declared: &Declared) -> Option<u64> {
    let chunk_bytes = |data: u64| format!("{data:x}{CRLF}{CRLF}").len() as u64 + data;
    let (whole, rest) = (
        declared.decoded_bytes / CHUNK_BYTES,
        declared.decoded_bytes % CHUNK_BYTES,
    );
    let mut bytes = whole.checked_mul(chunk_bytes(CHUNK_BYTES))?;
    if rest > 0 {
        bytes = bytes.checked_add(chunk_bytes(rest))?;
    }
    let mut final_chunk = format!("0{CRLF}{CRLF}").len();
    for name in &declared.trailers {
        final_chunk += name.len() + ":".len() + checksum_bytes(name)? + CRLF.len();
    }
    bytes.checked_add(final_chunk as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRC: &str = "x-amz-checksum-crc32";

    fn frame(pieces: &[usize]) -> Vec<u8> {
        let decoded_bytes = pieces.iter().sum::<usize>() as u64;
        let mut framing = UnsignedFraming::new(decoded_bytes);
        let mut output = VecDeque::new();
        for length in pieces {
            framing.push(vec![b'a'; *length].into(), &mut output);
        }
        let mut trailers = Trailers::new(vec![CRC.to_owned()], false);
        trailers.push(b"x-amz-checksum-crc32:AAAAAA==\r\n").unwrap();
        framing.finish(&trailers, &mut output);
        let framed = Vec::from(output).concat();
        let declared = Declared {
            decoded_bytes,
            trailers: vec![CRC.to_owned()],
        };
        assert_eq!(framed_bytes(&declared), Some(framed.len() as u64), "{pieces:?}");
        framed
    }

    #[test]
    fn chunks_are_cut_anew() {
        let end = "0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n";
        assert_eq!(frame(&[]), end.as_bytes());
        assert_eq!(frame(&[1, 0, 2]), [&b"3\r\naaa\r\n"[..], end.as_bytes()].concat());
        let (whole, rest) = ("a".repeat(65_536), "a".repeat(16));
        let expected = format!("10000\r\n{whole}\r\n10\r\n{rest}\r\n{end}");
        assert!(frame(&[65_530, 7, 15]) == expected.as_bytes());
        frame(&[65_536]);
        frame(&[131_072]);
    }

    #[test]
    fn the_length_of_an_unknown_checksum_is_unknown() {
        let declared = Declared {
            decoded_bytes: 1,
            trailers: vec!["x-amz-checksum-new".to_owned()],
        };
        assert_eq!(framed_bytes(&declared), None);
    }
}
