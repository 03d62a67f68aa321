//! Decompresses gzip and zstd, a bounded piece at a time.

use std::{fmt, io::Write as _, mem};

use bytes::{Buf as _, Bytes};
use flate2::write::GzDecoder;
use zstd::stream::raw::{self, Operation as _};

use crate::{Error, Result};

/// Compressed bytes to decompress at a time. gzip expands them at most a thousandfold.
const INPUT_PIECE_BYTES: usize = 16 * 1024;
/// Size of zstd's output buffer.
const OUTPUT_BYTES: usize = 256 * 1024;
/// Binary logarithm of zstd's largest window (32 MiB), which bounds the memory of its decoder. Windows of level 19 fit.
const MAX_WINDOW_LOG: u32 = 25;

/// Decompresses a stream. A gzip stream may have several members, and zeros after the last one; a zstd stream may have several
/// frames, also skippable ones.
pub struct Inflater(Decoder);

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

impl Inflater {
    /// Decompresses gzip.
    pub fn gzip() -> Self {
        Self(Decoder::Gzip {
            member: Box::new(GzDecoder::new(Vec::new())),
            is_padded: false,
        })
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
        Ok(Self(Decoder::Zstd {
            decoder,
            output: vec![0; OUTPUT_BYTES],
            is_frame_ended: false,
            has_pending_output: false,
        }))
    }

    /// Whether [`push`](Self::push) may return output without more input.
    pub const fn has_pending_output(&self) -> bool {
        matches!(
            self.0,
            Decoder::Zstd {
                has_pending_output: true,
                ..
            }
        )
    }

    /// Consumes bytes of `input`, at most 16 KiB of gzip, and returns them decompressed: at most about 16 MiB.
    ///
    /// # Errors
    /// [`Undecodable`](crate::ErrorKind::Undecodable) for malformed data.
    pub fn push(&mut self, input: &mut Bytes) -> Result<Vec<u8>> {
        match &mut self.0 {
            Decoder::Gzip { member, is_padded } => {
                let mut piece = input.split_to(INPUT_PIECE_BYTES.min(input.len()));
                while !piece.is_empty() && !*is_padded {
                    let consumed = member.write(&piece).map_err(|error| malformed("gzip", &error))?;
                    piece.advance(consumed);
                    if consumed == 0 {
                        // The member has ended.
                        member.try_finish().map_err(|error| malformed("gzip", &error))?;
                        *is_padded = piece.starts_with(&[0]);
                        if !*is_padded {
                            **member = GzDecoder::new(mem::take(member.get_mut()));
                        }
                    }
                }
                if piece.iter().any(|byte| *byte != 0) {
                    return Err(malformed(
                        "gzip",
                        &"expected only zeros after the last member, found other bytes",
                    ));
                }
                Ok(mem::take(member.get_mut()))
            }
            Decoder::Zstd {
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

    /// Returns the remaining output at the end of the input.
    ///
    /// # Errors
    /// [`Undecodable`](crate::ErrorKind::Undecodable) if the input does not end with a member or a frame.
    pub fn finish(&mut self) -> Result<Vec<u8>> {
        match &mut self.0 {
            Decoder::Gzip { is_padded: true, .. }
            | Decoder::Zstd {
                is_frame_ended: true, ..
            } => Ok(Vec::new()),
            Decoder::Gzip { member, .. } => {
                member.try_finish().map_err(|error| malformed("gzip", &error))?;
                Ok(mem::take(member.get_mut()))
            }
            Decoder::Zstd { .. } => Err(malformed("zstd", &"the last frame is incomplete")),
        }
    }
}

impl fmt::Debug for Inflater {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let codec = match &self.0 {
            Decoder::Gzip { .. } => "gzip",
            Decoder::Zstd { .. } => "zstd",
        };
        f.debug_tuple("Inflater").field(&codec).finish()
    }
}

fn malformed(codec: &str, error: &dyn fmt::Display) -> Error {
    Error::undecodable(format!("malformed {codec} data: {error}"))
}
