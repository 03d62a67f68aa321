//! Unpacks a shard as its bytes arrive: decompresses it, walks the tar, and groups its members into samples.

mod tar;

use std::{mem, sync::Arc};

use bytes::Bytes;
use pushdown::{Codec, Inflater, shard::ColumnMatcher, wire::RowError};

use self::tar::TarSamples;
use super::{
    group::GroupCounts,
    sample::{StoredSample, invalid_shard},
};

/// Bytes of the tar after which a call returns.
const CALL_BYTES: u64 = 4 << 20;
/// The most bytes of a tar for each byte of the compressed shard. gzip does not reach it but with a stream of one repeated byte.
const MAX_EXPANSION: u64 = 1000;
/// Bytes that a tar may have in any case.
const MIN_EXPANDED_BYTES: u64 = 64 << 20;

/// Unpacks one shard. It holds the members of one sample, and the samples of at most about 20 MiB of the tar.
///
/// Its first bytes say how it is compressed, whatever its key is. All samples that can be unpacked come before an error, in any pieces.
/// Bytes after a compressed tar are ignored.
#[derive(Debug)]
pub(super) struct Unpacker {
    decoder: Decoder,
    input_bytes: u64,
    tar_bytes: u64,
    tar: TarSamples,
    samples: Vec<StoredSample>,
}

#[derive(Debug)]
enum Decoder {
    /// The first bytes have not arrived, but these.
    Unknown(Vec<u8>),
    /// The shard is not compressed.
    None,
    Inflater(Box<Inflater>),
}

impl Unpacker {
    pub(super) fn new(columns: Arc<ColumnMatcher>, max_value_bytes: u64) -> Self {
        Self {
            decoder: Decoder::Unknown(Vec::new()),
            input_bytes: 0,
            tar_bytes: 0,
            tar: TarSamples::new(columns, max_value_bytes),
            samples: Vec::new(),
        }
    }

    /// Whether [`push`](Self::push) continues without more input.
    pub(super) const fn has_pending_output(&self) -> bool {
        match &self.decoder {
            Decoder::Inflater(inflater) => inflater.has_pending_output(),
            Decoder::Unknown(_) | Decoder::None => false,
        }
    }

    /// Reads bytes of the shard, not necessarily all of them. Samples that were complete before an error can be
    /// [taken](Self::take_samples).
    ///
    /// # Errors
    /// If the shard cannot be read further.
    pub(super) fn push(&mut self, input: &mut Bytes) -> Result<(), RowError> {
        if let Decoder::Unknown(start) = &mut self.decoder {
            let missing = Codec::MAGIC_BYTES - start.len();
            start.extend_from_slice(&input.split_to(missing.min(input.len())));
            if start.len() < Codec::MAGIC_BYTES {
                return Ok(());
            }
            self.detect()?;
        }
        self.unpack(input)
    }

    /// Ends the shard.
    ///
    /// # Errors
    /// If it is incomplete.
    pub(super) fn finish(&mut self) -> Result<(), RowError> {
        if matches!(self.decoder, Decoder::Unknown(_)) {
            self.detect()?;
        }
        if let Decoder::Inflater(inflater) = &mut self.decoder {
            let ended = inflater.finish();
            ended.map_err(|error| self.undecodable(error))?;
        }
        let last = self.tar.finish(self.tar_bytes)?;
        self.samples.extend(last);
        Ok(())
    }

    /// Chooses the decoder by the first bytes, and unpacks these.
    fn detect(&mut self) -> Result<(), RowError> {
        let Decoder::Unknown(start) = &mut self.decoder else {
            return Ok(());
        };
        let mut start = Bytes::from(mem::take(start));
        let inflater = Codec::detect(&start)
            .and_then(Codec::inflater)
            .map_err(invalid_shard)?;
        self.decoder = match inflater {
            Some(inflater) => Decoder::Inflater(Box::new(inflater.allowing_trailing_bytes())),
            None => Decoder::None,
        };
        while !start.is_empty() {
            self.unpack(&mut start)?;
        }
        Ok(())
    }

    fn unpack(&mut self, input: &mut Bytes) -> Result<(), RowError> {
        let start = self.tar_bytes;
        loop {
            let before = input.len();
            let piece: Bytes = match &mut self.decoder {
                Decoder::Inflater(inflater) => {
                    let piece = inflater.push(input);
                    piece.map_err(|error| self.undecodable(error))?.into()
                }
                Decoder::Unknown(_) | Decoder::None => mem::take(input),
            };
            self.input_bytes += (before - input.len()) as u64;
            self.add(piece)?;
            let is_done = input.is_empty() && !self.has_pending_output();
            if is_done || self.tar_bytes - start >= CALL_BYTES {
                return Ok(());
            }
        }
    }

    /// The samples found since the last call, in the order of the shard.
    pub(super) fn take_samples(&mut self) -> Vec<StoredSample> {
        mem::take(&mut self.samples)
    }

    /// What was found so far.
    pub(super) const fn counts(&self) -> &GroupCounts {
        self.tar.counts()
    }

    /// The error of the decoder. If it follows a whole tar, the last sample of that is complete.
    fn undecodable(&mut self, error: pushdown::Error) -> RowError {
        self.samples.extend(self.tar.end_whole());
        invalid_shard(error)
    }

    /// Adds bytes of the tar.
    fn add(&mut self, piece: Bytes) -> Result<(), RowError> {
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
