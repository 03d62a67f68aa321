//! Decompresses gzip and zstd, a bounded piece at a time.

use std::fmt;

use bytes::{Buf as _, Bytes};
use flate2::{Decompress, FlushDecompress, Status};
use zstd::stream::raw::{self, Operation as _};

use crate::{Error, Result};

/// Compressed bytes to decompress at a time. gzip expands them at most a thousandfold.
const INPUT_PIECE_BYTES: usize = 16 * 1024;
/// Bytes by which the output of gzip grows.
const OUTPUT_STEP_BYTES: usize = 32 * 1024;
/// Size of zstd's output buffer: no block is longer than half of it.
const OUTPUT_BYTES: usize = 256 * 1024;
/// Binary logarithm of zstd's largest window (32 MiB), which bounds the memory of its decoder. Windows of level 19 fit.
const MAX_WINDOW_LOG: u32 = 25;
/// Binary logarithm of gzip's only window.
const GZIP_WINDOW_LOG: u8 = 15;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// What follows the first byte, `0x50` to `0x5f`, of a skippable frame of zstd.
const SKIPPABLE_MAGIC: [u8; 3] = [0x2a, 0x4d, 0x18];

/// The compression of a whole object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Not at all.
    None,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

/// Decompresses a stream. A gzip stream may have several members, a zstd stream several frames, also skippable ones. Zeros may follow the
/// last one.
///
/// What is malformed is an error after all that could be decompressed before it. So the output does not depend on the pieces in which the
/// input arrives.
pub struct Inflater {
    decoder: Decoder,
    place: Place,
    allows_trailing_bytes: bool,
    /// The error to return next, after the output before it.
    failure: Option<Error>,
}

enum Decoder {
    Gzip(Decompress),
    Zstd {
        decoder: raw::Decoder<'static>,
        output: Vec<u8>,
        /// Bytes that the decoder wants next, as far as it says. With more at once, an error loses the output before it.
        wanted_bytes: usize,
        /// Whether more output may be available without more input.
        has_pending_output: bool,
    },
}

/// What the next bytes are.
#[derive(Debug)]
enum Place {
    /// Those of a member or frame.
    Stream,
    /// Those after a member or frame. The first ones, which may be the start of another, have arrived.
    Between(Vec<u8>),
    /// Zeros after the last one. Some programs and tapes write them as padding.
    Padding,
    /// Other bytes after the last one.
    Trailing,
}

impl Codec {
    /// Number of bytes by which a compression is detected.
    pub const MAGIC_BYTES: usize = 8;

    /// Detects the compression from the first [8 bytes](Self::MAGIC_BYTES) of an object.
    ///
    /// # Errors
    /// [`Undecodable`](crate::ErrorKind::Undecodable), with its name, for an unsupported compression.
    pub fn detect(magic: &[u8]) -> Result<Self> {
        let unsupported = match magic {
            [0x1f, 0x8b, ..] => return Ok(Self::Gzip),
            // A frame or a skippable frame (RFC 8878, 3.1.2). `pzstd` writes a skippable frame first.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => return Ok(Self::Zstd),
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, ..] => "bzip2",
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => "xz",
            [0x04, 0x22, 0x4d, 0x18, ..] => "LZ4",
            [b'P', b'K', 3, 4, ..] => "ZIP",
            _ => return Ok(Self::None),
        };
        Err(Error::undecodable(format!(
            "the object is compressed by {unsupported}, expected gzip, zstd or none"
        )))
    }

    /// What decompresses it; `None` if it is not compressed.
    ///
    /// # Errors
    /// If the decoder cannot be created.
    pub fn inflater(self) -> Result<Option<Inflater>> {
        match self {
            Self::None => Ok(None),
            Self::Gzip => Ok(Some(Inflater::gzip())),
            Self::Zstd => Inflater::zstd().map(Some),
        }
    }
}

impl Inflater {
    /// Decompresses gzip.
    pub fn gzip() -> Self {
        Self::new(Decoder::Gzip(gzip_member()))
    }

    /// Decompresses zstd. Its memory is at most 32 MiB, the largest window.
    ///
    /// # Errors
    /// If the decoder cannot be created.
    pub fn zstd() -> Result<Self> {
        let mut decoder = raw::Decoder::new()
            .map_err(|error| Error::internal(format!("cannot create a zstd decoder: {error}")))?;
        decoder
            .set_parameter(raw::DParameter::WindowLogMax(MAX_WINDOW_LOG))
            .map_err(|error| {
                Error::internal(format!("cannot set the window of the zstd decoder: {error}"))
            })?;
        Ok(Self::new(Decoder::Zstd {
            decoder,
            output: vec![0; OUTPUT_BYTES],
            wanted_bytes: 1,
            has_pending_output: false,
        }))
    }

    const fn new(decoder: Decoder) -> Self {
        Self {
            decoder,
            place: Place::Stream,
            allows_trailing_bytes: false,
            failure: None,
        }
    }

    /// Ignores other bytes than zeros after the last member or frame, too, as `gzip` does.
    #[must_use]
    pub const fn allowing_trailing_bytes(mut self) -> Self {
        self.allows_trailing_bytes = true;
        self
    }

    /// Whether [`push`](Self::push) continues without more input.
    pub const fn has_pending_output(&self) -> bool {
        let has_output = matches!(
            self.decoder,
            Decoder::Zstd {
                has_pending_output: true,
                ..
            }
        );
        has_output || self.failure.is_some()
    }

    /// Consumes bytes of `input`, at most 16 KiB of gzip, and returns them decompressed: at most about 16 MiB.
    ///
    /// # Errors
    /// [`Undecodable`](crate::ErrorKind::Undecodable) for malformed data.
    pub fn push(&mut self, input: &mut Bytes) -> Result<Vec<u8>> {
        let mut output = Vec::new();
        let result = match self.failure.take() {
            Some(failure) => Err(failure),
            None => self.inflate(input, &mut output),
        };
        match result {
            Ok(()) => Ok(output),
            Err(error) if output.is_empty() => Err(error),
            Err(error) => {
                self.failure = Some(error);
                Ok(output)
            }
        }
    }

    /// Ends the input.
    ///
    /// # Errors
    /// [`Undecodable`](crate::ErrorKind::Undecodable) if the input does not end with a member or a frame.
    pub fn finish(&mut self) -> Result<()> {
        match &self.place {
            Place::Stream => Err(self.malformed("the last member or frame is incomplete")),
            Place::Between(start) if !start.is_empty() => self.begin_trailing(),
            Place::Between(_) | Place::Padding | Place::Trailing => Ok(()),
        }
    }

    fn inflate(&mut self, input: &mut Bytes, output: &mut Vec<u8>) -> Result<()> {
        match &mut self.place {
            Place::Stream => self.inflate_stream(input, output),
            Place::Between(start) => {
                let Ok(byte) = input.try_get_u8() else {
                    return Ok(());
                };
                start.push(byte);
                let mut start = std::mem::take(start);
                match self.magic_bytes_left(&start) {
                    Some(0) => {
                        self.place = Place::Stream;
                        self.restart();
                        self.inflate_stream(&mut start.into(), output)
                    }
                    Some(_) => {
                        self.place = Place::Between(start);
                        Ok(())
                    }
                    None if start == [0] => {
                        start.clear();
                        self.place = Place::Padding;
                        Ok(())
                    }
                    None => self.begin_trailing(),
                }
            }
            Place::Padding => match input.iter().position(|byte| *byte != 0) {
                None => {
                    input.clear();
                    Ok(())
                }
                Some(zeros) => {
                    input.advance(zeros);
                    self.begin_trailing()
                }
            },
            Place::Trailing => {
                input.clear();
                Ok(())
            }
        }
    }

    /// Decompresses bytes up to the end of a member or frame.
    fn inflate_stream(&mut self, input: &mut Bytes, output: &mut Vec<u8>) -> Result<()> {
        let is_ended = match &mut self.decoder {
            Decoder::Gzip(member) => inflate_gzip(member, input, output),
            Decoder::Zstd {
                decoder,
                output: buffer,
                wanted_bytes,
                has_pending_output,
            } => {
                // What is pending needs no input.
                let length = if *has_pending_output {
                    0
                } else {
                    (*wanted_bytes).max(1)
                };
                let piece = &input[..input.len().min(length)];
                let status = decoder.run_on_buffers(piece, buffer);
                status.map_err(|error| error.to_string()).map(|status| {
                    input.advance(status.bytes_read);
                    output.extend_from_slice(&buffer[..status.bytes_written]);
                    *wanted_bytes = status.remaining;
                    // Nothing is left of a frame that has ended.
                    let is_ended = status.remaining == 0;
                    *has_pending_output = !is_ended && status.bytes_written == OUTPUT_BYTES;
                    is_ended && (status.bytes_read > 0 || status.bytes_written > 0)
                })
            }
        };
        match is_ended {
            Ok(true) => self.place = Place::Between(Vec::new()),
            Ok(false) => {}
            Err(error) => return Err(self.malformed(&error)),
        }
        Ok(())
    }

    /// How many bytes of a start are missing before it is known to be that of a member or frame; `None` if it cannot be one.
    fn magic_bytes_left(&self, start: &[u8]) -> Option<usize> {
        let left = |magic: &[u8]| magic.starts_with(start).then(|| magic.len() - start.len());
        match &self.decoder {
            Decoder::Gzip(_) => left(&GZIP_MAGIC),
            Decoder::Zstd { .. } => left(&ZSTD_MAGIC).or_else(|| {
                let (first, rest) = start.split_first()?;
                let is_start = (0x50..=0x5f).contains(first) && SKIPPABLE_MAGIC.starts_with(rest);
                is_start.then(|| SKIPPABLE_MAGIC.len() - rest.len())
            }),
        }
    }

    /// Prepares for another member or frame.
    fn restart(&mut self) {
        match &mut self.decoder {
            Decoder::Gzip(member) => *member = gzip_member(),
            Decoder::Zstd { wanted_bytes, .. } => *wanted_bytes = ZSTD_MAGIC.len(),
        }
    }

    /// Ignores what follows the last member or frame, or refuses it.
    fn begin_trailing(&mut self) -> Result<()> {
        self.place = Place::Trailing;
        if self.allows_trailing_bytes {
            return Ok(());
        }
        Err(self.malformed("expected only zeros after the last member or frame, found other bytes"))
    }

    fn malformed(&self, error: &str) -> Error {
        let codec = self.codec();
        Error::undecodable(format!("malformed {codec} data: {error}"))
    }

    const fn codec(&self) -> &'static str {
        match self.decoder {
            Decoder::Gzip(_) => "gzip",
            Decoder::Zstd { .. } => "zstd",
        }
    }
}

impl fmt::Debug for Inflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Inflater").field(&self.codec()).finish()
    }
}

fn gzip_member() -> Decompress {
    Decompress::new_gzip(GZIP_WINDOW_LOG)
}

/// Decompresses bytes of a member, and says whether it has ended.
fn inflate_gzip(
    member: &mut Decompress,
    input: &mut Bytes,
    output: &mut Vec<u8>,
) -> std::result::Result<bool, String> {
    let mut left = INPUT_PIECE_BYTES.min(input.len());
    loop {
        output.reserve(OUTPUT_STEP_BYTES);
        let before = member.total_in();
        let status = member.decompress_vec(&input[..left], output, FlushDecompress::None);
        let consumed = usize::try_from(member.total_in() - before)
            .unwrap_or(left)
            .min(left);
        input.advance(consumed);
        left -= consumed;
        match status {
            Ok(Status::StreamEnd) => return Ok(true),
            // There was room for more output: the input is consumed.
            Ok(Status::Ok | Status::BufError) if output.len() < output.capacity() => return Ok(false),
            Ok(Status::Ok | Status::BufError) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// With a checksum.
    fn zstd(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
        encoder.include_checksum(true).unwrap();
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// What does not compress well, of more than one block.
    fn noise() -> Vec<u8> {
        let mut noise = 7_u32;
        let bytes = (0..300_000).map(|_| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            noise.to_be_bytes()[0] & 0x7f
        });
        bytes.collect()
    }

    /// The output for an input in pieces, and the error.
    fn inflate(input: &[u8], piece: usize, is_lenient: bool) -> (Vec<u8>, Option<String>) {
        let inflater = Codec::detect(input).unwrap().inflater().unwrap().unwrap();
        let mut inflater = if is_lenient {
            inflater.allowing_trailing_bytes()
        } else {
            inflater
        };
        let mut output = Vec::new();
        let mut read = || {
            for piece in input.chunks(piece) {
                let mut input = Bytes::copy_from_slice(piece);
                while !input.is_empty() || inflater.has_pending_output() {
                    output.extend(inflater.push(&mut input)?);
                }
            }
            inflater.finish()
        };
        let error = read().err().map(|error| error.to_string());
        (output, error)
    }

    #[test]
    fn the_output_before_an_error_does_not_depend_on_pieces() {
        let bytes = noise();
        for object in [gzip(&bytes), zstd(&bytes)] {
            let length = object.len();
            let mut cases = vec![object[..length / 2].to_vec(), object[..length - 1].to_vec()];
            for place in [length / 4, length / 2, length - 1 - length / 8] {
                let mut damaged = object.clone();
                damaged[place] ^= 0xff;
                cases.push(damaged);
            }
            for case in cases {
                let whole = inflate(&case, usize::MAX, false);
                assert!(whole.1.is_some());
                for piece in [1, 1000, 16 << 10, 100_000] {
                    assert!(inflate(&case, piece, false) == whole, "{piece}: {:?}", whole.1);
                }
            }
            // Of a wrong checksum alone, the whole output.
            let mut damaged = object.clone();
            let place = if object.starts_with(&GZIP_MAGIC) {
                length - 5
            } else {
                length - 1
            };
            damaged[place] ^= 1;
            let (output, error) = inflate(&damaged, 1000, false);
            assert!(output == bytes && error.is_some());
        }
    }

    #[test]
    fn bytes_after_the_last_member_or_frame_are_refused_or_ignored() {
        for object in [gzip(b"text"), zstd(b"text")] {
            for (after, is_padding) in [
                (&b""[..], true),
                (&[0; 600], true),
                (b"\n", false),
                (b"\0\0\n", false),
                (b"\x1f", false),
                (b"\x28\xb5\x2f", false),
                (b"\x5f\x2a\x4c", false),
            ] {
                let input = [&object[..], after].concat();
                for piece in [1, 2, 1 << 20] {
                    let expected = b"text".to_vec();
                    assert_eq!(
                        inflate(&input, piece, true),
                        (expected.clone(), None),
                        "{after:?}"
                    );
                    let (output, error) = inflate(&input, piece, false);
                    assert_eq!(
                        (output, error.is_none()),
                        (expected, is_padding),
                        "{after:?}: {error:?}"
                    );
                    assert!(error.is_none_or(|error| error.contains("expected only zeros")));
                }
            }
        }
    }
}
