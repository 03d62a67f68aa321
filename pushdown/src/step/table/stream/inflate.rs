//! Bytes that gzip or zstd compressed, inflated as they come, a bounded piece at a time.

use std::{fmt, io::Write as _};

use bytes::{Buf as _, Bytes};
use flate2::write::MultiGzDecoder;
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
    /// By the first bytes of the object.
    pub(super) fn of(magic: &[u8]) -> Self {
        match magic {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// The bytes that `chunks` were before they were compressed, up to the limit.
pub(super) fn inflate(chunks: Chunks, codec: Codec, limits: &TableLimits) -> Chunks {
    let decoder = match codec {
        Codec::None => return chunks,
        Codec::Gzip => Ok(Decoder::Gzip(Box::new(MultiGzDecoder::new(Vec::new())))),
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
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
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
            Self::Gzip(decoder) => {
                let piece = input.split_to(PIECE.min(input.len()));
                decoder
                    .write_all(&piece)
                    .map_err(|error| broken("gzip", &error))?;
                Ok(std::mem::take(decoder.get_mut()))
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
            Self::Gzip(decoder) => {
                decoder.try_finish().map_err(|error| broken("gzip", &error))?;
                Ok(std::mem::take(decoder.get_mut()))
            }
            Self::Zstd { ended: true, .. } => Ok(Vec::new()),
            Self::Zstd { .. } => Err(broken("zstd", &"it ends early")),
        }
    }
}

fn broken(codec: &str, error: &dyn fmt::Display) -> Error {
    Error::undecodable(format!("the object cannot be inflated by {codec}: {error}"))
}

#[cfg(test)]
mod tests {
    use flate2::{Compression, write::GzEncoder};

    use super::*;
    use crate::ErrorKind;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn inflated(object: &[u8], chunk: usize, most: u64) -> Result<Vec<u8>> {
        let limits = TableLimits {
            max_inflated_bytes: most,
            ..TableLimits::default()
        };
        let chunks: Vec<_> = object
            .chunks(chunk)
            .map(|chunk| Ok(Bytes::copy_from_slice(chunk)))
            .collect();
        let chunks = inflate(stream::iter(chunks).boxed(), Codec::of(object), &limits);
        let parts = futures::executor::block_on(chunks.collect::<Vec<_>>());
        Ok(parts.into_iter().collect::<Result<Vec<_>>>()?.concat())
    }

    #[test]
    fn several_members_and_frames_in_any_chunks() {
        let text: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let (one, other) = text.split_at(1234);
        let zstd = |bytes| zstd::encode_all(bytes, 3).unwrap();
        for object in [
            [gzip(one), gzip(other)].concat(),
            [zstd(one), zstd(other)].concat(),
        ] {
            for chunk in [1, 7, 1 << 20] {
                assert!(inflated(&object, chunk, u64::MAX).unwrap() == text, "{chunk}");
            }
        }
    }

    #[test]
    fn what_is_cut_off_or_broken_is_undecodable() {
        let text = vec![b'a'; 100_000];
        for object in [gzip(&text), zstd::encode_all(&text[..], 3).unwrap()] {
            for length in 5..object.len() {
                let error = inflated(&object[..length], 1 << 20, u64::MAX).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Undecodable, "{length}: {error}");
            }
        }
    }

    #[test]
    fn bombs_end_at_the_limit() {
        let zeros = vec![0; 64 << 20];
        for object in [gzip(&zeros), zstd::encode_all(&zeros[..], 3).unwrap()] {
            assert!(object.len() < 1 << 20);
            let error = inflated(&object, 1 << 20, 1 << 20).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
        }
    }
}
