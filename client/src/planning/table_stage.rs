//! The split at which rows of a data set are requested, by the footers of some row groups.

use std::cmp::Reverse;

use pushdown::Estimate;

/// The costs of some row groups, summed up.
#[derive(Debug)]
pub(crate) struct RowGroupCosts {
    /// Rows that satisfy the condition.
    selected_rows: u64,
    /// Rows of the row groups.
    stored_rows: u64,
    /// Bytes of the stored columns that are read.
    read_bytes: Option<u64>,
    /// Bytes of the rows that satisfy the condition, by split from the second one on.
    output_bytes: Vec<Option<u64>>,
}

/// Bytes of rows by split, and the split with the fewest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SplitBytes {
    /// Bytes read per row of an object if rows are computed on this host.
    pub(crate) read_row_bytes: u64,
    /// Bytes of a row that satisfies the condition on arrival, by split; of the first one those that are read for it. `None` for values
    /// of any size.
    pub(crate) row_bytes: Vec<Option<u64>>,
}

impl RowGroupCosts {
    /// No costs yet, of a pipeline with this number of splits. The first one reads stored columns.
    pub(crate) fn new(splits: usize) -> Self {
        Self {
            selected_rows: 0,
            stored_rows: 0,
            read_bytes: Some(0),
            output_bytes: vec![Some(0); splits.saturating_sub(1)],
        }
    }

    /// Adds a row group of `stored_rows` rows, of which `selected_rows` satisfy the condition, with the estimates of a scan up to each
    /// split from the second one on.
    pub(crate) fn add(&mut self, selected_rows: u64, stored_rows: u64, estimates: &[Estimate]) {
        let sum = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
        let output = |estimate: &Estimate| {
            let (bytes, rows) = estimate.output_bytes.zip(estimate.max_rows)?;
            let bytes = u128::from(bytes) * u128::from(selected_rows) / u128::from(rows.max(1));
            Some(u64::try_from(bytes).unwrap_or(u64::MAX))
        };
        self.selected_rows = self.selected_rows.saturating_add(selected_rows);
        self.stored_rows = self.stored_rows.saturating_add(stored_rows);
        // All of them read the same columns.
        let read = estimates.first().and_then(|estimate| estimate.scan_bytes);
        self.read_bytes = sum(self.read_bytes, read);
        for (bytes, estimate) in self.output_bytes.iter_mut().zip(estimates) {
            *bytes = sum(*bytes, output(estimate));
        }
    }

    /// Bytes of rows by split.
    pub(crate) fn split_bytes(&self) -> SplitBytes {
        let read = self.read_bytes;
        let row_bytes = std::iter::once(&read).chain(&self.output_bytes);
        SplitBytes {
            read_row_bytes: read.unwrap_or_default().div_ceil(self.stored_rows.max(1)),
            row_bytes: row_bytes
                .map(|bytes| Some((*bytes)? / self.selected_rows.max(1)))
                .collect(),
        }
    }

    /// The split with the fewest transferred bytes among those that satisfy `is_possible`, and the last of equal ones. The first one
    /// if rows of no other are smaller than the stored columns by more than a sixteenth.
    pub(crate) fn smallest_split(&self, is_possible: impl Fn(usize) -> bool) -> usize {
        let is_reducing = |bytes: u64| {
            let estimate = Estimate {
                scan_bytes: self.read_bytes,
                expected_output_bytes: Some(bytes),
                ..Estimate::default()
            };
            estimate.is_reducing()
        };
        // The output of `each` may have any size.
        let known = (1..).zip(&self.output_bytes).filter_map(|(split, bytes)| {
            let bytes = bytes.filter(|bytes| is_possible(split) && is_reducing(*bytes))?;
            Some((bytes, Reverse(split)))
        });
        known.min().map_or(0, |(_, Reverse(split))| split)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two row groups of 1,000 rows each: in each, `selected_rows` satisfy the condition. Rows of each split have `output_bytes`.
    fn costs(selected_rows: u64, output_bytes: &[Option<u64>]) -> RowGroupCosts {
        let mut costs = RowGroupCosts::new(1 + output_bytes.len());
        for _ in 0..2 {
            let estimates = output_bytes.iter().map(|output_bytes| Estimate {
                scan_bytes: Some(40_000),
                max_rows: Some(1_000),
                output_bytes: *output_bytes,
                ..Estimate::default()
            });
            costs.add(selected_rows, 1_000, &estimates.collect::<Vec<_>>());
        }
        costs
    }

    fn smallest(selected_rows: u64, output_bytes: &[Option<u64>]) -> usize {
        costs(selected_rows, output_bytes).smallest_split(|_| true)
    }

    #[test]
    fn rows_are_pushed_down_if_they_have_fewer_bytes_than_their_columns() {
        assert_eq!(smallest(10, &[Some(80_000)]), 1);
        assert_eq!(smallest(1_000, &[Some(80_000)]), 0);
        assert_eq!(
            costs(10, &[Some(80_000)]).split_bytes(),
            SplitBytes {
                read_row_bytes: 40,
                row_bytes: vec![Some(4_000), Some(80)],
            }
        );
    }

    #[test]
    fn rows_of_unknown_size_are_computed_on_this_host() {
        assert_eq!(smallest(10, &[None]), 0);
        let bytes = costs(10, &[None]).split_bytes();
        assert_eq!(
            (bytes.read_row_bytes, bytes.row_bytes),
            (40, vec![Some(4_000), None])
        );
    }

    #[test]
    fn the_smallest_of_several_splits_is_chosen_and_the_last_of_equal_ones() {
        let bytes = [Some(40_000), None, Some(3_000), Some(12_000)];
        assert_eq!(smallest(1_000, &bytes), 3);
        assert_eq!(costs(1_000, &bytes).smallest_split(|split| split != 3), 4);
        assert_eq!(smallest(1_000, &[Some(3_000), Some(3_000)]), 2);
        assert_eq!(
            smallest(1_000, &[Some(39_000), Some(38_000)]),
            0,
            "too little is saved"
        );
    }
}
