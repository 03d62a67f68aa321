//! Bytes that gzip or zstd compressed, inflated as they come, a bounded piece at a time.

#[cfg(test)]
mod tests;

use std::{fmt, io::Write as _};

use bytes::{Buf as _, Bytes};
use flate2::write::GzDecoder;
use futures::{
    StreamExt as _,
    stream::{self},
};
use zstd::stream::raw::{self, Operation as _};

use super::Chunks;
use crate::{Error, Result, limits::TableLimits};

/// Compressed bytes that are inflated at once: no more than a thousand times as many come out of gzip.
const PIECE: usize = 16 * 1024;
/// Bytes that come out of zstd at once.
const OUTPUT: usize = 256 * 1024;
/// The largest window of zstd as a power of two: what its decoder may hold, 32 MiB. What its level 19 writes fits.
const MAX_WINDOW_LOG: u32 = 25;

/// How an object is compressed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codec {
    None,
    Gzip,
    Zstd,
}

impl Codec {
    /// By the first bytes of the object, 8 of them.
    ///
    /// # Errors
    /// [`Undecodable`](crate::ErrorKind::Undecodable), with its name, for what others compress with.
    pub(super) fn of(magic: &[u8]) -> Result<Self> {
        let other = match magic {
            [0x1f, 0x8b, ..] => return Ok(Self::Gzip),
            // A frame, or one to pass over (RFC 8878, 3.1.2), with which `pzstd` begins.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => return Ok(Self::Zstd),
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, ..] => "bzip2",
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => "xz",
            [0x04, 0x22, 0x4d, 0x18, ..] => "LZ4",
            [b'P', b'K', 3, 4, ..] => "ZIP",
            _ => return Ok(Self::None),
        };
        Err(Error::undecodable(format!(
            "the object is compressed by {other}, expected gzip, zstd or none"
        )))
    }
}

/// The bytes that `chunks` were before they were compressed, up to the limit.
pub(super) fn inflate(chunks: Chunks, codec: Codec, limits: &TableLimits) -> Chunks {
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
    let inflating = Inflating {
        chunks,
        input: Bytes::new(),
        decoder,
        total: 0,
        most: limits.max_inflated_bytes,
        ended: false,
    };
    stream::try_unfold(inflating, Inflating::next).boxed()
}

struct Inflating {
    chunks: Chunks,
    input: Bytes,
    decoder: Decoder,
    total: u64,
    most: u64,
    ended: bool,
}

enum Decoder {
    Gzip {
        member: Box<GzDecoder<Vec<u8>>>,
        /// Whether only zeros may come, which some programs and tapes leave after the last member.
        is_padded: bool,
    },
    Zstd {
        decoder: raw::Decoder<'static>,
        output: Vec<u8>,
        /// Whether the last frame has ended.
        ended: bool,
        /// Whether there may be more to come out without more going in.
        full: bool,
    },
}

fn zstd_decoder() -> Result<Decoder> {
    let mut decoder =
        raw::Decoder::new().map_err(|error| Error::internal(format!("no decoder for zstd: {error}")))?;
    decoder
        .set_parameter(raw::DParameter::WindowLogMax(MAX_WINDOW_LOG))
        .map_err(|error| Error::internal(format!("no window for zstd: {error}")))?;
    Ok(Decoder::Zstd {
        decoder,
        output: vec![0; OUTPUT],
        ended: false,
        full: false,
    })
}

impl Inflating {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>> {
        loop {
            if self.input.is_empty() && !self.decoder.is_full() {
                match self.chunks.next().await.transpose()? {
                    Some(chunk) => self.input = chunk,
                    None if self.ended => return Ok(None),
                    None => {
                        self.ended = true;
                        let last = self.decoder.finish()?;
                        return self.counted(last).map(|last| Some((last, self)));
                    }
                }
            }
            let output = self.decoder.push(&mut self.input)?;
            if !output.is_empty() {
                return self.counted(output).map(|output| Some((output, self)));
            }
        }
    }

    /// Holds what came out against the limit.
    fn counted(&mut self, output: Vec<u8>) -> Result<Bytes> {
        self.total += output.len() as u64;
        if self.total > self.most {
            return Err(Error::too_large(format!(
                "the object has more than {} bytes once it is inflated, which is the limit",
                self.most
            )));
        }
        Ok(output.into())
    }
}

impl Decoder {
    const fn is_full(&self) -> bool {
        matches!(self, Self::Zstd { full: true, .. })
    }

    /// Takes bytes off `input` and gives what they were.
    fn push(&mut self, input: &mut Bytes) -> Result<Vec<u8>> {
        match self {
            Self::Gzip { member, is_padded } => {
                let mut piece = input.split_to(PIECE.min(input.len()));
                while !piece.is_empty() && !*is_padded {
                    let taken = member.write(&piece).map_err(|error| broken("gzip", &error))?;
                    piece.advance(taken);
                    if taken == 0 {
                        // The member has ended.
                        member.try_finish().map_err(|error| broken("gzip", &error))?;
                        *is_padded = piece.starts_with(&[0]);
                        if !*is_padded {
                            **member = GzDecoder::new(std::mem::take(member.get_mut()));
                        }
                    }
                }
                if piece.iter().any(|byte| *byte != 0) {
                    return Err(broken("gzip", &"more than zeros after the last member"));
                }
                Ok(std::mem::take(member.get_mut()))
            }
            Self::Zstd {
                decoder,
                output,
                ended,
                full,
            } => {
                let status = decoder
                    .run_on_buffers(input, output)
                    .map_err(|error| broken("zstd", &error))?;
                input.advance(status.bytes_read);
                if status.bytes_read > 0 || status.bytes_written > 0 {
                    *ended = status.remaining == 0;
                }
                *full = status.bytes_written == OUTPUT;
                Ok(output[..status.bytes_written].to_vec())
            }
        }
    }

    /// What is left, if the compressed bytes ended where they should.
    fn finish(&mut self) -> Result<Vec<u8>> {
        match self {
            Self::Gzip { is_padded: true, .. } | Self::Zstd { ended: true, .. } => Ok(Vec::new()),
            Self::Gzip { member, .. } => {
                member.try_finish().map_err(|error| broken("gzip", &error))?;
                Ok(std::mem::take(member.get_mut()))
            }
            Self::Zstd { .. } => Err(broken("zstd", &"it ends early")),
        }
    }
}

fn broken(codec: &str, error: &dyn fmt::Display) -> Error {
    Error::undecodable(format!("the object cannot be inflated by {codec}: {error}"))
}
