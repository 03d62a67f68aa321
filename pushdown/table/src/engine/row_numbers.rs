//! Row numbers of an object as a column.

use std::{collections::HashMap, ops::Range, sync::Arc, vec};

use arrow_array::{ArrayRef, Int64Array};
use arrow_schema::{DataType, Field};

use crate::formats::parquet::{ParquetFile, ParquetScan};

/// Metadata key that marks a column of row numbers.
pub(crate) const METADATA_KEY: &str = "pushdown.row_number";

/// The column's field.
pub(crate) fn field(name: &str) -> Field {
    let metadata = HashMap::from([(METADATA_KEY.to_owned(), "true".to_owned())]);
    Field::new(name, DataType::Int64, false).with_metadata(metadata)
}

/// Generates the numbers of the rows that are read.
#[derive(Debug, Clone)]
pub(crate) struct RowNumbers {
    current: Range<i64>,
    following: vec::IntoIter<Range<i64>>,
}

impl RowNumbers {
    /// Consecutive numbers from `start`.
    pub(crate) fn starting_at(start: u64) -> Self {
        Self {
            current: i64::try_from(start).unwrap_or(i64::MAX)..i64::MAX,
            following: Vec::new().into_iter(),
        }
    }

    /// The numbers of the rows that a Parquet scan reads.
    pub(crate) fn for_scan(file: &ParquetFile, scan: &ParquetScan) -> Self {
        let groups = file.metadata().metadata().row_groups().iter();
        let group_ranges = groups.scan(0, |start, group| {
            let range = *start..*start + group.num_rows();
            *start = range.end;
            Some(range)
        });
        let group_ranges: Vec<_> = group_ranges.collect();
        let kept = scan
            .row_groups
            .iter()
            .filter_map(|index| group_ranges.get(*index).cloned());
        let ranges = match &scan.selection {
            None => kept.collect(),
            Some(selection) => {
                let selectors = selection.iter().map(|rows| (rows.skip, rows.row_count));
                select_ranges(kept.collect(), selectors)
            }
        };
        Self {
            current: 0..0,
            following: ranges.into_iter(),
        }
    }

    /// The numbers of the next `count` rows.
    pub(crate) fn next(&mut self, count: usize) -> ArrayRef {
        let mut numbers = Vec::with_capacity(count);
        while numbers.len() < count {
            if self.current.is_empty() {
                let Some(range) = self.following.next() else { break };
                self.current = range;
            }
            let missing = i64::try_from(count - numbers.len()).unwrap_or(i64::MAX);
            let end = self.current.end.min(self.current.start.saturating_add(missing));
            numbers.extend(self.current.start..end);
            self.current.start = end;
        }
        Arc::new(Int64Array::from(numbers))
    }
}

/// The parts of the concatenated `ranges` that the selectors (whether to skip, row count) do not skip.
fn select_ranges(ranges: Vec<Range<i64>>, selectors: impl Iterator<Item = (bool, usize)>) -> Vec<Range<i64>> {
    let mut ranges = ranges.into_iter();
    let mut range = 0..0;
    let mut kept = Vec::new();
    for (skip, count) in selectors {
        let mut missing = i64::try_from(count).unwrap_or(i64::MAX);
        while missing > 0 {
            if range.is_empty() {
                let Some(next) = ranges.next() else { return kept };
                range = next;
                continue;
            }
            let end = range.end.min(range.start.saturating_add(missing));
            missing -= end - range.start;
            if !skip {
                kept.push(range.start..end);
            }
            range.start = end;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections_can_span_row_groups() {
        let kept = select_ranges(
            vec![0..10, 20..30],
            [(true, 8), (false, 4), (true, 1), (false, 9)].into_iter(),
        );
        assert_eq!(kept, [8..10, 20..22, 23..30]);
        let mut numbers = RowNumbers {
            current: 0..0,
            following: kept.into_iter(),
        };
        assert_eq!(
            numbers.next(3).as_ref(),
            &Int64Array::from(vec![8, 9, 20]) as &dyn arrow_array::Array
        );
        assert_eq!(
            numbers.next(2).as_ref(),
            &Int64Array::from(vec![21, 23]) as &dyn arrow_array::Array
        );
    }
}
