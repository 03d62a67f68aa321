//! Decompresses gzip and zstd as a stream, a bounded piece at a time.

#[cfg(test)]
mod tests;

use bytes::Bytes;
use futures::{StreamExt as _, stream};

use super::Chunks;
use pushdown_core::{Codec, Error, Inflater, Result, limits::TableLimits};

/// Decompresses `chunks`, up to the limit.
pub(super) fn decompress(chunks: Chunks, codec: Codec, limits: &TableLimits) -> Chunks {
    let inflater = match codec.inflater() {
        Ok(Some(inflater)) => inflater,
        Ok(None) => return chunks,
        Err(error) => return stream::iter([Err(error)]).boxed(),
    };
    let decompressor = Decompressor {
        chunks,
        input: Bytes::new(),
        inflater,
        output_bytes: 0,
        max_output_bytes: limits.max_inflated_bytes,
    };
    stream::try_unfold(decompressor, Decompressor::next).boxed()
}

struct Decompressor {
    chunks: Chunks,
    input: Bytes,
    inflater: Inflater,
    output_bytes: u64,
    max_output_bytes: u64,
}

impl Decompressor {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>> {
        loop {
            if self.input.is_empty() && !self.inflater.has_pending_output() {
                let Some(chunk) = self.chunks.next().await.transpose()? else {
                    self.inflater.finish()?;
                    return Ok(None);
                };
                self.input = chunk;
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
