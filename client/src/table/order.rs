//! The order of rows in an epoch: shuffled row groups, with shuffled rows within each.
//!
//! Rows of a row group stay together, since it is read as a whole. A rank's share is a contiguous range of the order.

use std::ops::Range;

use super::row_groups::SampleRows;
use crate::order::{GROUPS, ROWS, permutation};

/// The order of one epoch.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowOrder {
    seed: Option<u64>,
    epoch: u32,
}

/// Rows of a row group that are consecutive in the order of an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RowGroupSlice {
    /// Index of the row group.
    pub(super) group: usize,
    /// Range of its rows, in their order in the epoch.
    pub(super) rows: Range<usize>,
}

impl RowOrder {
    /// The order of a seed; without one that of the data set.
    pub(super) const fn new(seed: Option<u64>, epoch: u32) -> Self {
        Self { seed, epoch }
    }

    /// The slices that make up `share`, a range of positions in the order of all rows.
    pub(super) fn slices(self, samples: &SampleRows, share: Range<u64>) -> Vec<RowGroupSlice> {
        let groups = u32::try_from(samples.groups().len()).unwrap_or(u32::MAX);
        let order = match self.seed {
            Some(seed) => permutation(groups, seed, self.epoch, 0, GROUPS),
            None => (0..groups).collect(),
        };
        let mut position = 0;
        let mut slices = Vec::new();
        for group in order {
            let group = group as usize;
            let rows = position..position + samples.groups()[group].count();
            let shared = rows.start.max(share.start)..rows.end.min(share.end);
            if !shared.is_empty() {
                let offset = |position: u64| usize::try_from(position - rows.start).unwrap_or(usize::MAX);
                slices.push(RowGroupSlice {
                    group,
                    rows: offset(shared.start)..offset(shared.end),
                });
            }
            position = rows.end;
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
        order.get(slice.rows.clone()).unwrap_or_default().to_vec()
    }
}
