//! The order of rows in an epoch: shuffled row groups, with shuffled rows within each.
//!
//! Rows of a row group stay together, since it is read as a whole. A rank's stretch is contiguous in the order of the rows left.

use std::ops::Range;

use super::row_groups::SampleRows;
use crate::epoch::order::{GROUPS, ROWS, permutation};

/// The order of one epoch.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowOrder {
    seed: Option<u64>,
    epoch: u32,
}

/// Rows of a row group that a rank reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RowGroupSlice {
    /// Index of the row group.
    pub(super) group: usize,
    /// Ranges of its rows, in their order in the epoch: several if the rows between them have been read.
    pub(super) rows: Vec<Range<usize>>,
}

impl RowGroupSlice {
    /// The number of its rows.
    pub(super) fn count(&self) -> u64 {
        self.rows.iter().map(|rows| rows.len() as u64).sum()
    }
}

impl RowOrder {
    /// The order of a seed; without one that of the data set.
    pub(super) const fn new(seed: Option<u64>, epoch: u32) -> Self {
        Self { seed, epoch }
    }

    /// The rows at these positions in the order of the epoch: ascending, disjoint ranges. A row group has at most one slice, so
    /// it is read once.
    pub(super) fn slices(self, samples: &SampleRows, positions: &[Range<u64>]) -> Vec<RowGroupSlice> {
        let groups = u32::try_from(samples.groups().len()).unwrap_or(u32::MAX);
        let order = match self.seed {
            Some(seed) => permutation(groups, seed, self.epoch, 0, GROUPS),
            None => (0..groups).collect(),
        };
        let mut position = 0;
        let mut slices = Vec::new();
        for group in order {
            let group = group as usize;
            let end = position + samples.groups()[group].count();
            let offset = |within: u64| usize::try_from(within - position).unwrap_or(usize::MAX);
            let from = positions.partition_point(|range| range.end <= position);
            let to = positions.partition_point(|range| range.start < end);
            let rows: Vec<_> = positions[from..to]
                .iter()
                .map(|range| offset(range.start.max(position))..offset(range.end.min(end)))
                .collect();
            if !rows.is_empty() {
                slices.push(RowGroupSlice { group, rows });
            }
            position = end;
        }
        slices
    }

    /// The rows of a slice, numbered among the `count` samples of its row group.
    pub(super) fn rows_of(self, slice: &RowGroupSlice, count: u64) -> Vec<u32> {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let order = match self.seed {
            Some(seed) => permutation(
                count,
                seed,
                self.epoch,
                u32::try_from(slice.group).unwrap_or(u32::MAX),
                ROWS,
            ),
            None => (0..count).collect(),
        };
        let rows = slice.rows.iter();
        rows.flat_map(|rows| order.get(rows.clone()).unwrap_or_default())
            .copied()
            .collect()
    }
}
