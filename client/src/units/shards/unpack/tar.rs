//! Finds samples in the bytes of a tar.

use std::sync::Arc;

use bytes::Bytes;
use pushdown::{
    shard::{Column, ColumnMatcher, EntryCursor, ShardLimits, Walked},
    wire::RowError,
};

use crate::units::shards::{
    group::{GroupCounts, SampleGroups},
    sample::{StoredSample, invalid_shard},
};

/// Finds the samples of a tar in consecutive bytes, cut anywhere.
#[derive(Debug)]
pub(super) struct TarSamples {
    cursor: EntryCursor<Walked>,
    groups: SampleGroups,
    /// The column whose content arrives, if it is wanted.
    wanted: Option<Column>,
}

impl TarSamples {
    pub(super) fn new(columns: Arc<ColumnMatcher>, max_value_bytes: u64) -> Self {
        Self {
            cursor: EntryCursor::walk(ShardLimits::default()),
            groups: SampleGroups::new(columns, max_value_bytes),
            wanted: None,
        }
    }

    pub(super) const fn counts(&self) -> &GroupCounts {
        self.groups.counts()
    }

    /// Reads bytes, and appends the samples that are complete.
    pub(super) fn push(&mut self, piece: Bytes, samples: &mut Vec<StoredSample>) -> Result<(), RowError> {
        self.cursor.push(piece);
        let read = self.read_arrived(samples);
        self.groups.set_left_out(self.cursor.left_out());
        read
    }

    fn read_arrived(&mut self, samples: &mut Vec<StoredSample>) -> Result<(), RowError> {
        loop {
            if let Some(column) = self.wanted {
                let Some(content) = self.cursor.content() else {
                    return Ok(());
                };
                self.wanted = None;
                self.groups.add_content(column, content);
            }
            let Some(member) = self.cursor.next_member().map_err(invalid_shard)? else {
                return Ok(());
            };
            let (ended, wanted) = self.groups.begin_member(&member)?;
            self.wanted = wanted;
            samples.extend(ended);
        }
    }

    /// Ends the tar of this many bytes, and returns its last sample.
    pub(super) fn finish(&mut self, tar_bytes: u64) -> Result<Option<StoredSample>, RowError> {
        self.cursor.finish(tar_bytes).map_err(invalid_shard)?;
        Ok(self.groups.end_group())
    }

    /// The last sample, if the end marker of the tar has been read.
    pub(super) fn end_whole(&mut self) -> Option<StoredSample> {
        self.cursor.is_at_end().then(|| self.groups.end_group()).flatten()
    }
}
