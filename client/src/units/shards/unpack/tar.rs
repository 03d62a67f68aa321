//! Finds samples in the bytes of a tar.

use std::{mem, sync::Arc};

use bytes::{Bytes, BytesMut};
use pushdown::{
    shard::{Member, ShardLimits, TarWalker},
    wire::RowError,
};

use crate::{
    shards::{Column, ColumnMatcher},
    units::shards::{
        group::{GroupCounts, Grouping},
        sample::{StoredSample, invalid_shard},
    },
};

/// Headers are blocks of this many bytes.
const BLOCK_BYTES: u64 = 512;
/// The most bytes that are allocated for a content before it has arrived.
const MAX_RESERVED_BYTES: u64 = 1 << 20;

/// Finds the samples of a tar in consecutive bytes, cut anywhere.
#[derive(Debug)]
pub(super) struct TarSamples {
    walker: TarWalker,
    grouping: Grouping,
    content: Option<Content>,
}

/// The content that arrives, if it is wanted.
#[derive(Debug)]
struct Content {
    column: Column,
    bytes: BytesMut,
    /// Where it ends in the tar.
    end: u64,
}

impl TarSamples {
    pub(super) fn new(columns: Arc<ColumnMatcher>, max_value_bytes: u64) -> Self {
        Self {
            walker: TarWalker::new(ShardLimits::default()),
            grouping: Grouping::new(columns, max_value_bytes),
            content: None,
        }
    }

    pub(super) const fn counts(&self) -> &GroupCounts {
        self.grouping.counts()
    }

    /// Reads bytes, and appends the samples that are complete.
    pub(super) fn push(&mut self, mut bytes: &[u8], samples: &mut Vec<StoredSample>) -> Result<(), RowError> {
        while !bytes.is_empty() {
            let skippable = self.walker.skippable();
            // Headers one by one: a content begins after its header at the earliest.
            let wanted = if skippable > 0 {
                skippable
            } else {
                BLOCK_BYTES - self.walker.position() % BLOCK_BYTES
            };
            let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
            let (piece, rest) = bytes.split_at(wanted.min(bytes.len()));
            if skippable > 0 {
                self.add_content(piece);
                self.walker.skip(piece.len() as u64).map_err(invalid_shard)?;
            } else {
                self.walker.push(piece).map_err(invalid_shard)?;
            }
            self.grouping.set_left_out(self.walker.left_out());
            for member in self.walker.take_members() {
                samples.extend(self.begin_member(&member)?);
            }
            self.end_content();
            bytes = rest;
        }
        Ok(())
    }

    /// Ends the tar of this many bytes, and returns its last sample.
    pub(super) fn finish(&mut self, tar_bytes: u64) -> Result<Option<StoredSample>, RowError> {
        let walker = mem::replace(&mut self.walker, TarWalker::new(ShardLimits::default()));
        walker.finish(tar_bytes).map_err(invalid_shard)?;
        Ok(self.grouping.end_group())
    }

    /// The last sample, if the end marker of the tar has been read.
    pub(super) fn end_whole(&mut self) -> Option<StoredSample> {
        self.walker
            .is_at_end()
            .then(|| self.grouping.end_group())
            .flatten()
    }

    /// Begins a member. Returns the sample that ends with it.
    fn begin_member(&mut self, member: &Member) -> Result<Option<StoredSample>, RowError> {
        let (ended, wanted) = self.grouping.begin_member(member)?;
        self.content = wanted.map(|column| {
            let reserved = member.range.size().min(MAX_RESERVED_BYTES);
            Content {
                column,
                bytes: BytesMut::with_capacity(usize::try_from(reserved).unwrap_or_default()),
                end: member.range.content().end,
            }
        });
        Ok(ended)
    }

    /// Adds the next bytes of a content and its padding.
    fn add_content(&mut self, piece: &[u8]) {
        if let Some(content) = &mut self.content {
            let left = content.end.saturating_sub(self.walker.position());
            let left = usize::try_from(left).unwrap_or(usize::MAX);
            content.bytes.extend_from_slice(&piece[..left.min(piece.len())]);
        }
    }

    /// Hands over the content if it is complete.
    fn end_content(&mut self) {
        let position = self.walker.position();
        if let Some(Content { column, bytes, .. }) = self.content.take_if(|content| content.end <= position) {
            let content: Bytes = bytes.freeze();
            self.grouping.add_content(column, content);
        }
    }
}
