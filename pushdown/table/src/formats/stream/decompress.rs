//! Decompresses gzip and zstd as a stream, a bounded piece at a time.

#[cfg(test)]
mod tests;

use std::{fmt, io::Write as _};

use bytes::{Buf as _, Bytes};
use flate2::write::GzDecoder;
use futures::{StreamExt as _, stream};
use zstd::stream::raw::{self, Operation as _};

use super::Chunks;
use pushdown_core::{Error, Result, limits::TableLimits};

/// Compressed bytes to decompress at a time. gzip expands them at most a thousandfold.
const INPUT_PIECE_BYTES: usize = 16 * 1024;
/// Size of zstd's output buffer.
const OUTPUT_BYTES: usize = 256 * 1024;
/// Binary logarithm of zstd's largest window (32 MiB), which bounds the memory of its decoder. Windows of level 19 fit.
const MAX_WINDOW_LOG: u32 = 25;

/// The compression of a whole object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    None,
    Gzip,
    Zstd,
}

impl Codec {
    /// Detects the compression from the first 8 bytes of the object.
    ///
    /// # Errors
    /// [`Undecodable`](pushdown_core::ErrorKind::Undecodable), with its name, for an unsupported compression.
    pub(super) fn detect(magic: &[u8]) -> Result<Self> {
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
}

/// Decompresses `chunks`, up to the limit.
pub(super) fn decompress(chunks: Chunks, codec: Codec, limits: &TableLimits) -> Chunks {
    let decoder = match codec {
        Codec::None => return chunks,
        Codec::Gzip => Ok(Decoder::Gzip {
            member: Box::new(GzDecoder::new(Vec::new())),
            is_padded: false,
        }),
        Codec::Zstd => zstd_decoder(),
    };
    let decoder = match decoder {
        Ok(decoder) => decoder,
        Err(error) => return stream::iter([Err(error)]).boxed(),
    };
    let decompressor = Decompressor {
        chunks,
        input: Bytes::new(),
        decoder,
        output_bytes: 0,
        max_output_bytes: limits.max_inflated_bytes,
        is_input_ended: false,
    };
    stream::try_unfold(decompressor, Decompressor::next).boxed()
}

struct Decompressor {
    chunks: Chunks,
    input: Bytes,
    decoder: Decoder,
    output_bytes: u64,
    max_output_bytes: u64,
    is_input_ended: bool,
}

enum Decoder {
    Gzip {
        member: Box<GzDecoder<Vec<u8>>>,
        /// Whether the last member has ended and only zeros may follow. Some programs and tapes write them as padding.
        is_padded: bool,
    },
    Zstd {
        decoder: raw::Decoder<'static>,
        output: Vec<u8>,
        is_frame_ended: bool,
        /// Whether more output may be available without more input.
        has_pending_output: bool,
    },
}

fn zstd_decoder() -> Result<Decoder> {
    let mut decoder = raw::Decoder::new()
        .map_err(|error| Error::internal(format!("cannot create a zstd decoder: {error}")))?;
    decoder
        .set_parameter(raw::DParameter::WindowLogMax(MAX_WINDOW_LOG))
        .map_err(|error| Error::internal(format!("cannot set the window of the zstd decoder: {error}")))?;
    Ok(Decoder::Zstd {
        decoder,
        output: vec![0; OUTPUT_BYTES],
        is_frame_ended: false,
        has_pending_output: false,
    })
}

impl Decompressor {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>> {
        loop {
            if self.input.is_empty() && !self.decoder.has_pending_output() {
                match self.chunks.next().await.transpose()? {
                    Some(chunk) => self.input = chunk,
                    None if self.is_input_ended => return Ok(None),
                    None => {
                        self.is_input_ended = true;
                        let last = self.decoder.finish()?;
                        return self.count(last).map(|last| Some((last, self)));
                    }
                }
            }
            let output = self.decoder.push(&mut self.input)?;
            if !output.is_empty() {
                return self.count(output).map(|output| Some((output, self)));
            }
        }
    }

    /// Checks the output against the limit.
    fn count(&mut self, output: Vec<u8>) -> Result<Bytes> {
        self.output_bytes += output.len() as u64;
        if self.output_bytes > self.max_output_bytes {
            return Err(Error::too_large(format!(
                "object too large: expected at most {} decompressed bytes, found more",
                self.max_output_bytes
            )));
        }
        Ok(output.into())
    }
}

impl Decoder {
    const fn has_pending_output(&self) -> bool {
        matches!(
            self,
            Self::Zstd {
                has_pending_output: true,
                ..
            }
        )
    }

    /// Consumes bytes of `input` and returns them decompressed.
    fn push(&mut self, input: &mut Bytes) -> Result<Vec<u8>> {
        match self {
            Self::Gzip { member, is_padded } => {
                let mut piece = input.split_to(INPUT_PIECE_BYTES.min(input.len()));
                while !piece.is_empty() && !*is_padded {
                    let consumed = member.write(&piece).map_err(|error| malformed("gzip", &error))?;
                    piece.advance(consumed);
                    if consumed == 0 {
                        // The member has ended.
                        member.try_finish().map_err(|error| malformed("gzip", &error))?;
                        *is_padded = piece.starts_with(&[0]);
                        if !*is_padded {
                            **member = GzDecoder::new(std::mem::take(member.get_mut()));
                        }
                    }
                }
                if piece.iter().any(|byte| *byte != 0) {
                    return Err(malformed(
                        "gzip",
                        &"expected only zeros after the last member, found other bytes",
                    ));
                }
                Ok(std::mem::take(member.get_mut()))
            }
            Self::Zstd {
                decoder,
                output,
                is_frame_ended,
                has_pending_output,
            } => {
                let status = decoder
                    .run_on_buffers(input, output)
                    .map_err(|error| malformed("zstd", &error))?;
                input.advance(status.bytes_read);
                if status.bytes_read > 0 || status.bytes_written > 0 {
                    *is_frame_ended = status.remaining == 0;
                }
                *has_pending_output = status.bytes_written == OUTPUT_BYTES;
                Ok(output[..status.bytes_written].to_vec())
            }
        }
    }

    /// Returns the remaining output at the end of the input, which must end with a member or a frame.
    fn finish(&mut self) -> Result<Vec<u8>> {
        match self {
            Self::Gzip { is_padded: true, .. }
            | Self::Zstd {
                is_frame_ended: true, ..
            } => Ok(Vec::new()),
            Self::Gzip { member, .. } => {
                member.try_finish().map_err(|error| malformed("gzip", &error))?;
                Ok(std::mem::take(member.get_mut()))
            }
            Self::Zstd { .. } => Err(malformed("zstd", &"the last frame is incomplete")),
        }
    }
}

fn malformed(codec: &str, error: &dyn fmt::Display) -> Error {
    Error::undecodable(format!("malformed {codec} data: {error}"))
}
