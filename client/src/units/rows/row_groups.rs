//! The samples of all objects: row groups, and which of their rows satisfy the condition.

use std::ops::Range;

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};

use super::RowId;

/// The rows of a data set that are samples.
#[derive(Debug)]
pub(super) struct SampleRows {
    groups: Vec<RowGroup>,
    len: u64,
}

/// A row group of an object.
#[derive(Debug, Clone)]
pub(super) struct RowGroup {
    object: usize,
    /// Its range of row numbers in the object.
    rows: Range<u64>,
    /// The rows that satisfy the condition; `None` for all.
    selected: Option<BooleanBuffer>,
}

impl SampleRows {
    pub(super) fn new(groups: Vec<RowGroup>) -> Self {
        Self {
            len: groups.iter().map(RowGroup::count).fold(0, u64::saturating_add),
            groups,
        }
    }

    /// Number of samples.
    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    /// The row groups with at least one sample, in the order of the data set.
    pub(super) fn groups(&self) -> &[RowGroup] {
        &self.groups
    }

    /// Number of samples in a row group.
    pub(super) fn count(&self, group: usize) -> u64 {
        self.groups.get(group).map_or(0, RowGroup::count)
    }
}

impl RowGroup {
    /// The row groups of an object, from their row counts.
    pub(super) fn of_object(object: usize, row_counts: &[u64]) -> Vec<Self> {
        let mut end = 0_u64;
        let group = |rows: &u64| {
            let start = end;
            end = start.saturating_add(*rows);
            Self {
                object,
                rows: start..end,
                selected: None,
            }
        };
        row_counts.iter().map(group).collect()
    }

    /// The same row group with only the rows of `numbers`, ascending row numbers in the object.
    pub(super) fn select(self, numbers: &[u64]) -> Self {
        let from = numbers.partition_point(|number| *number < self.rows.start);
        let to = numbers.partition_point(|number| *number < self.rows.end);
        let length = usize::try_from(self.rows.end - self.rows.start).unwrap_or(usize::MAX);
        let mut selected = BooleanBufferBuilder::new(length);
        selected.append_n(length, false);
        for number in &numbers[from..to] {
            if let Ok(index) = usize::try_from(number - self.rows.start) {
                selected.set_bit(index, true);
            }
        }
        Self {
            selected: Some(selected.finish()),
            ..self
        }
    }

    /// Index of the object.
    pub(super) const fn object(&self) -> usize {
        self.object
    }

    /// The row numbers of all rows of the row group, samples or not.
    pub(super) fn rows(&self) -> Range<u64> {
        self.rows.clone()
    }

    /// Number of samples in the row group.
    pub(super) fn count(&self) -> u64 {
        match &self.selected {
            None => self.rows.end - self.rows.start,
            Some(selected) => selected.count_set_bits() as u64,
        }
    }

    /// The sources of these rows, which are numbered among the samples of the row group.
    pub(super) fn ids(&self, rows: &[u32]) -> Vec<RowId> {
        let id = |offset: u64| RowId {
            object: self.object,
            row: self.rows.start + offset,
        };
        match &self.selected {
            None => rows.iter().map(|row| id(u64::from(*row))).collect(),
            Some(selected) => {
                let offsets: Vec<_> = selected.set_indices().collect();
                let row_id = |row: &u32| offsets.get(*row as usize).map(|offset| id(*offset as u64));
                rows.iter().filter_map(row_id).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_counts_of_any_size_are_added_up() {
        let groups = RowGroup::of_object(0, &[u64::MAX, 5, u64::MAX]);
        assert_eq!(groups[1].rows(), u64::MAX..u64::MAX);
        assert_eq!(SampleRows::new(groups).len(), u64::MAX);
    }

    #[test]
    fn selected_rows_have_their_row_numbers() {
        let groups = RowGroup::of_object(3, &[4, 0, 5]);
        assert_eq!(
            groups.iter().map(RowGroup::rows).collect::<Vec<_>>(),
            [0..4, 4..4, 4..9]
        );
        let numbers = [1, 3, 4, 8];
        let selected: Vec<_> = groups.into_iter().map(|group| group.select(&numbers)).collect();
        assert_eq!(
            selected.iter().map(RowGroup::count).collect::<Vec<_>>(),
            [2, 0, 2]
        );
        let row = |row| RowId { object: 3, row };
        assert_eq!(selected[0].ids(&[1, 0]), [row(3), row(1)]);
        assert_eq!(selected[2].ids(&[0, 1, 2]), [row(4), row(8)]);
        assert_eq!(SampleRows::new(selected).count(2), 2);
    }
}
