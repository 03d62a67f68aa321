//! The place of each row in its object, as a column.

use std::{collections::HashMap, ops::Range, sync::Arc, vec};

use arrow_array::{ArrayRef, Int64Array};
use arrow_schema::{DataType, Field};

use super::parquet::{ParquetFile, ParquetScan};

/// What says of a column that it has the places of rows in their object.
pub(super) const METADATA_KEY: &str = "pushdown.row_number";

/// The column.
pub(super) fn field(name: &str) -> Field {
    let metadata = HashMap::from([(METADATA_KEY.to_owned(), "true".to_owned())]);
    Field::new(name, DataType::Int64, false).with_metadata(metadata)
}

/// The places of the rows that are still to come.
#[derive(Debug, Clone)]
pub(super) struct RowNumbers {
    range: Range<i64>,
    then: vec::IntoIter<Range<i64>>,
}

impl RowNumbers {
    /// Of all rows from this place on.
    pub(super) fn from(start: u64) -> Self {
        Self {
            range: i64::try_from(start).unwrap_or(i64::MAX)..i64::MAX,
            then: Vec::new().into_iter(),
        }
    }

    /// Of a part of a Parquet file.
    pub(super) fn of(file: &ParquetFile, part: &ParquetScan) -> Self {
        let groups = file.metadata().metadata().row_groups().iter();
        let starts = groups.scan(0, |start, group| {
            let range = *start..*start + group.num_rows();
            *start = range.end;
            Some(range)
        });
        let groups: Vec<_> = starts.collect();
        let kept = part
            .row_groups
            .iter()
            .filter_map(|index| groups.get(*index).cloned());
        let ranges = match &part.selection {
            None => kept.collect(),
            Some(rows) => {
                let selected = rows.iter().map(|rows| (rows.skip, rows.row_count));
                selected_of(kept.collect(), selected)
            }
        };
        Self {
            range: 0..0,
            then: ranges.into_iter(),
        }
    }

    /// Of the next `count` rows.
    pub(super) fn next(&mut self, count: usize) -> ArrayRef {
        let mut numbers = Vec::with_capacity(count);
        while numbers.len() < count {
            if self.range.is_empty() {
                let Some(range) = self.then.next() else { break };
                self.range = range;
            }
            let missing = i64::try_from(count - numbers.len()).unwrap_or(i64::MAX);
            let end = self.range.end.min(self.range.start.saturating_add(missing));
            numbers.extend(self.range.start..end);
            self.range.start = end;
        }
        Arc::new(Int64Array::from(numbers))
    }
}

/// The parts of `ranges`, one after the other, that are not skipped.
fn selected_of(ranges: Vec<Range<i64>>, selected: impl Iterator<Item = (bool, usize)>) -> Vec<Range<i64>> {
    let mut ranges = ranges.into_iter();
    let mut range = 0..0;
    let mut kept = Vec::new();
    for (skip, count) in selected {
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
    fn selections_reach_over_row_groups() {
        let kept = selected_of(
            vec![0..10, 20..30],
            [(true, 8), (false, 4), (true, 1), (false, 9)].into_iter(),
        );
        assert_eq!(kept, [8..10, 20..22, 23..30]);
        let mut numbers = RowNumbers {
            range: 0..0,
            then: kept.into_iter(),
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
