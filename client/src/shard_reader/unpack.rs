//! Unpacks a shard as its bytes arrive: decompresses it, walks the tar, and groups its members into samples.

mod tar;

use std::{mem, sync::Arc};

use bytes::Bytes;
use pushdown::{Inflater, shard::Compression, wire::RowError};

use self::tar::TarSamples;
use super::{
    group::GroupCounts,
    sample::{StoredSample, invalid_shard},
};
use crate::{error::Result, shards::ColumnMatcher};

/// Bytes of the tar after which a call returns.
const CALL_BYTES: u64 = 4 << 20;
/// The most bytes of a tar for each byte of the compressed shard. gzip does not reach it but with a stream of one repeated byte.
const MAX_EXPANSION: u64 = 1000;
/// Bytes that a tar may have in any case.
const MIN_EXPANDED_BYTES: u64 = 64 << 20;

/// Unpacks one shard. It holds the members of one sample, and the samples of at most about 20 MiB of the tar.
#[derive(Debug)]
pub(super) struct Unpacker {
    /// `None` for a shard that is not compressed.
    inflater: Option<Inflater>,
    input_bytes: u64,
    tar_bytes: u64,
    tar: TarSamples,
    samples: Vec<StoredSample>,
}

impl Unpacker {
    /// # Errors
    /// If the decoder cannot be created.
    pub(super) fn new(
        compression: Compression,
        columns: Arc<ColumnMatcher>,
        max_value_bytes: u64,
    ) -> Result<Self> {
        let inflater = match compression {
            Compression::None => None,
            Compression::Gzip => Some(Inflater::gzip()),
            Compression::Zstd => Some(Inflater::zstd()?),
        };
        Ok(Self {
            inflater,
            input_bytes: 0,
            tar_bytes: 0,
            tar: TarSamples::new(columns, max_value_bytes),
            samples: Vec::new(),
        })
    }

    /// Whether [`push`](Self::push) continues without more input.
    pub(super) fn has_pending_output(&self) -> bool {
        self.inflater.as_ref().is_some_and(Inflater::has_pending_output)
    }

    /// Reads bytes of the shard, not necessarily all of them. Samples that were complete before an error can be
    /// [taken](Self::take_samples).
    ///
    /// # Errors
    /// If the shard cannot be read further.
    pub(super) fn push(&mut self, input: &mut Bytes) -> Result<(), RowError> {
        let start = self.tar_bytes;
        loop {
            let before = input.len();
            let piece = match &mut self.inflater {
                None => mem::take(input),
                Some(inflater) => {
                    let piece = inflater.push(input).map_err(invalid_shard)?;
                    piece.into()
                }
            };
            self.input_bytes += (before - input.len()) as u64;
            self.add(&piece)?;
            let is_done = input.is_empty() && !self.has_pending_output();
            if is_done || self.tar_bytes - start >= CALL_BYTES {
                return Ok(());
            }
        }
    }

    /// Ends the shard.
    ///
    /// # Errors
    /// If it is incomplete.
    pub(super) fn finish(&mut self) -> Result<(), RowError> {
        if let Some(inflater) = &mut self.inflater {
            let last = inflater.finish().map_err(invalid_shard)?;
            self.add(&last)?;
        }
        let last = self.tar.finish(self.tar_bytes)?;
        self.samples.extend(last);
        Ok(())
    }

    /// The samples found since the last call, in the order of the shard.
    pub(super) fn take_samples(&mut self) -> Vec<StoredSample> {
        mem::take(&mut self.samples)
    }

    /// What was found so far.
    pub(super) const fn counts(&self) -> &GroupCounts {
        self.tar.counts()
    }

    /// Adds bytes of the tar.
    fn add(&mut self, piece: &[u8]) -> Result<(), RowError> {
        self.tar_bytes += piece.len() as u64;
        let limit = self.input_bytes.saturating_mul(MAX_EXPANSION);
        if self.tar_bytes > limit.max(MIN_EXPANDED_BYTES) {
            return Err(invalid_shard(format_args!(
                "expected at most {MAX_EXPANSION} bytes for each compressed one, found {} in {}",
                self.tar_bytes, self.input_bytes
            )));
        }
        self.tar.push(piece, &mut self.samples)
    }
}

#[cfg(test)]
mod tests;
