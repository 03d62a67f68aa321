//! Decompresses gzip and zstd as a stream, a bounded piece at a time.

#[cfg(test)]
mod tests;

use bytes::Bytes;
use futures::{StreamExt as _, stream};

use super::Chunks;
use pushdown_core::{Error, Inflater, Result, limits::TableLimits};

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
    let inflater = match codec {
        Codec::None => return chunks,
        Codec::Gzip => Ok(Inflater::gzip()),
        Codec::Zstd => Inflater::zstd(),
    };
    let inflater = match inflater {
        Ok(inflater) => inflater,
        Err(error) => return stream::iter([Err(error)]).boxed(),
    };
    let decompressor = Decompressor {
        chunks,
        input: Bytes::new(),
        inflater,
        output_bytes: 0,
        max_output_bytes: limits.max_inflated_bytes,
        is_input_ended: false,
    };
    stream::try_unfold(decompressor, Decompressor::next).boxed()
}

struct Decompressor {
    chunks: Chunks,
    input: Bytes,
    inflater: Inflater,
    output_bytes: u64,
    max_output_bytes: u64,
    is_input_ended: bool,
}

impl Decompressor {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>> {
        loop {
            if self.input.is_empty() && !self.inflater.has_pending_output() {
                match self.chunks.next().await.transpose()? {
                    Some(chunk) => self.input = chunk,
                    None if self.is_input_ended => return Ok(None),
                    None => {
                        self.is_input_ended = true;
                        let last = self.inflater.finish()?;
                        return self.count(last).map(|last| Some((last, self)));
                    }
                }
            }
            let output = self.inflater.push(&mut self.input)?;
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
