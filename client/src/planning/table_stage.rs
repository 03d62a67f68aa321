//! The stage at which rows of a data set are requested, by the footers of some row groups.

use pushdown::Estimate;

/// The costs of some row groups, summed up.
#[derive(Debug)]
pub(crate) struct RowGroupCosts {
    /// Rows that satisfy the condition.
    selected_rows: u64,
    /// Rows of the row groups.
    stored_rows: u64,
    all: Estimate,
}

/// The stage with fewer transferred bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StageChoice {
    /// The end of the pipeline, or 0 for stored columns.
    pub(crate) stage: usize,
    /// Bytes of a row that satisfies the condition.
    pub(crate) row_bytes: u64,
    /// Bytes read per row of an object if rows are computed on this host.
    pub(crate) read_row_bytes: u64,
}

impl Default for RowGroupCosts {
    fn default() -> Self {
        Self {
            selected_rows: 0,
            stored_rows: 0,
            all: Estimate {
                scan_bytes: Some(0),
                expected_output_bytes: Some(0),
                ..Estimate::default()
            },
        }
    }
}

impl RowGroupCosts {
    /// Adds a row group of `stored_rows` rows, of which `selected_rows` satisfy the condition.
    pub(crate) fn add(&mut self, selected_rows: u64, stored_rows: u64, estimate: &Estimate) {
        let output = estimate.output_bytes.zip(estimate.max_rows).map(|(bytes, rows)| {
            let bytes = u128::from(bytes) * u128::from(selected_rows) / u128::from(rows.max(1));
            u64::try_from(bytes).unwrap_or(u64::MAX)
        });
        let sum = |one: Option<u64>, other: Option<u64>| Some(one?.saturating_add(other?));
        self.selected_rows = self.selected_rows.saturating_add(selected_rows);
        self.stored_rows = self.stored_rows.saturating_add(stored_rows);
        self.all.scan_bytes = sum(self.all.scan_bytes, estimate.scan_bytes);
        self.all.expected_output_bytes = sum(self.all.expected_output_bytes, output);
    }

    /// Chooses between the end of the pipeline, at `last_stage`, and stored columns.
    pub(crate) fn choose_stage(&self, last_stage: usize) -> StageChoice {
        let Estimate {
            scan_bytes,
            expected_output_bytes,
            ..
        } = self.all;
        // The output of `each` may have any size.
        let is_pushed = expected_output_bytes.is_some() && self.all.is_reducing();
        StageChoice {
            stage: if is_pushed { last_stage } else { 0 },
            row_bytes: expected_output_bytes.or(scan_bytes).unwrap_or_default() / self.selected_rows.max(1),
            read_row_bytes: scan_bytes.unwrap_or_default().div_ceil(self.stored_rows.max(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The choice for two row groups of 1,000 rows each: in each, `selected_rows` satisfy the condition.
    fn choice(selected_rows: u64, output_bytes: Option<u64>) -> StageChoice {
        let mut costs = RowGroupCosts::default();
        for _ in 0..2 {
            let estimate = Estimate {
                scan_bytes: Some(40_000),
                max_rows: Some(1_000),
                output_bytes,
                ..Estimate::default()
            };
            costs.add(selected_rows, 1_000, &estimate);
        }
        costs.choose_stage(3)
    }

    #[test]
    fn rows_are_pushed_down_if_they_have_fewer_bytes_than_their_columns() {
        let pushed = StageChoice {
            stage: 3,
            row_bytes: 80,
            read_row_bytes: 40,
        };
        assert_eq!(choice(10, Some(80_000)), pushed);
        let local = StageChoice { stage: 0, ..pushed };
        assert_eq!(choice(1_000, Some(80_000)), local);
    }

    #[test]
    fn rows_of_unknown_size_are_computed_on_this_host() {
        let local = StageChoice {
            stage: 0,
            row_bytes: 4_000,
            read_row_bytes: 40,
        };
        assert_eq!(choice(10, None), local);
    }
}
