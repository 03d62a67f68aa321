//! The rows of an epoch that are left, and the stretch of them that a rank reads.
//!
//! The rows left are dealt out as stretches whose lengths differ by at most one, whatever the tail policy is: it only decides
//! how many rows of its stretch a rank reads. So a state holds no policy, and the rows that one drops are left for a resume.

use std::{iter::once, ops::Range};

use super::rows_read::RowsRead;
use crate::epoch::{
    ReadPlan,
    order::{CheckedRank, TailCounts},
};

/// Rows that no rank has read in an epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RowsLeft {
    /// Their positions in the order of the epoch: ascending, disjoint, none empty.
    ranges: Vec<Range<u64>>,
}

impl RowsLeft {
    /// What is left of `total` rows after `read`.
    pub(super) fn new(total: u64, read: &[RowsRead]) -> Self {
        let all = Self {
            ranges: once(0..total).filter(|all| !all.is_empty()).collect(),
        };
        read.iter().fold(all, |left, read| left.after(*read))
    }

    /// What is left if each rank of a world reads some rows of its stretch.
    fn after(&self, read: RowsRead) -> Self {
        let total = self.len();
        let unread = (0..read.world).filter_map(|rank| {
            let stretch = CheckedRank::new(rank, read.world)?.contiguous_range(total);
            let start = stretch.start.saturating_add(read.rows_per_rank);
            Some(start.min(stretch.end)..stretch.end)
        });
        Self {
            ranges: self.positions(unread),
        }
    }

    /// Number of rows.
    pub(super) fn len(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    fn samples(&self) -> usize {
        usize::try_from(self.len()).unwrap_or(usize::MAX)
    }

    /// The rows that a rank reads, numbered among the rows left.
    pub(super) fn stretch(&self, plan: &ReadPlan) -> Range<u64> {
        let stretch = plan.rank.contiguous_range(self.len());
        let end = stretch.start.saturating_add(self.most_rows(plan));
        stretch.start..end.min(stretch.end)
    }

    /// The most rows that a rank of the same world reads. It is the same for every rank.
    pub(super) fn most_rows(&self, plan: &ReadPlan) -> u64 {
        plan.share(self.samples()).most_samples() as u64
    }

    /// What the tail policy drops, over all ranks.
    pub(super) fn tail_counts(&self, plan: &ReadPlan) -> TailCounts {
        plan.share(self.samples()).tail_counts()
    }

    /// Positions in the order of the epoch, of rows numbered among the rows left: ascending, disjoint ranges.
    pub(super) fn positions(&self, rows: impl IntoIterator<Item = Range<u64>>) -> Vec<Range<u64>> {
        let mut positions: Vec<Range<u64>> = Vec::new();
        let mut ranges = self.ranges.iter();
        // The rest of a range, and the number of its first row.
        let (mut rest, mut number) = (0..0, 0);
        for mut wanted in rows {
            while !wanted.is_empty() {
                let rows = rest.end - rest.start;
                if number + rows <= wanted.start {
                    let Some(next) = ranges.next() else {
                        return positions;
                    };
                    (rest, number) = (next.clone(), number + rows);
                    continue;
                }
                let start = rest.start + (wanted.start - number);
                let end = rest.end.min(start + (wanted.end - wanted.start));
                match positions.last_mut() {
                    Some(last) if last.end == start => last.end = end,
                    _ => positions.push(start..end),
                }
                wanted.start += end - start;
                (rest.start, number) = (end, wanted.start);
            }
        }
        positions
    }
}
