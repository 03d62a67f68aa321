//! The order of rows in an epoch: row groups shuffled, and rows within each.
//!
//! Rows of a row group stay together, since it is read as a whole. A rank's share is a stretch of the order of all ranks.

use std::ops::Range;

use super::space::Space;
use crate::order::{GROUPS, ROWS, permutation};

/// The order of one epoch.
#[derive(Debug, Clone, Copy)]
pub(super) struct EpochOrder {
    seed: Option<u64>,
    epoch: u32,
}

/// Rows of a unit that follow each other in the order of an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stretch {
    /// Which unit.
    pub(super) unit: usize,
    /// Which of its rows, in their order in the epoch.
    pub(super) rows: Range<usize>,
}

impl EpochOrder {
    /// The order by a seed; without one that of the data set.
    pub(super) const fn new(seed: Option<u64>, epoch: u32) -> Self {
        Self { seed, epoch }
    }

    /// The stretches that make up `share`, positions in the order of all rows.
    pub(super) fn stretches(self, space: &Space, share: Range<u64>) -> Vec<Stretch> {
        let units = u32::try_from(space.units().len()).unwrap_or(u32::MAX);
        let order = match self.seed {
            Some(seed) => permutation(units, seed, self.epoch, 0, GROUPS),
            None => (0..units).collect(),
        };
        let mut position = 0;
        let mut stretches = Vec::new();
        for unit in order {
            let unit = unit as usize;
            let rows = position..position + space.units()[unit].count();
            let kept = rows.start.max(share.start)..rows.end.min(share.end);
            if !kept.is_empty() {
                let place = |position: u64| usize::try_from(position - rows.start).unwrap_or(usize::MAX);
                stretches.push(Stretch {
                    unit,
                    rows: place(kept.start)..place(kept.end),
                });
            }
            position = rows.end;
        }
        stretches
    }

    /// The rows of a unit that a stretch has, counted among those that the condition leaves.
    pub(super) fn rows_of(self, stretch: &Stretch, count: u64) -> Vec<u32> {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let order = match self.seed {
            Some(seed) => permutation(
                count,
                seed,
                self.epoch,
                u32::try_from(stretch.unit).unwrap_or(u32::MAX),
                ROWS,
            ),
            None => (0..count).collect(),
        };
        order.get(stretch.rows.clone()).unwrap_or_default().to_vec()
    }
}
