//! The rows of all objects as one: row groups, and which of their rows the condition leaves.

use std::ops::Range;

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};

use super::RowId;

/// The rows of a data set that are samples.
#[derive(Debug)]
pub(super) struct Space {
    units: Vec<Unit>,
    len: u64,
    /// What a row is taken to have in memory, in bytes.
    row_bytes: u64,
}

/// A row group of an object.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    object: usize,
    /// The places of its rows in the object.
    rows: Range<u64>,
    /// Which of them the condition leaves; all without one.
    kept: Option<BooleanBuffer>,
}

impl Space {
    pub(super) fn new(units: Vec<Unit>, row_bytes: u64) -> Self {
        Self {
            len: units.iter().map(Unit::count).fold(0, u64::saturating_add),
            units,
            row_bytes,
        }
    }

    /// How many rows there are.
    pub(super) const fn len(&self) -> u64 {
        self.len
    }

    /// The row groups with any rows that are samples, in the order of the data set.
    pub(super) fn units(&self) -> &[Unit] {
        &self.units
    }

    /// What a row group is taken to have in memory, in bytes.
    pub(super) fn bytes_of(&self, unit: usize) -> u64 {
        let count = self.units.get(unit).map_or(0, Unit::count);
        count.saturating_mul(self.row_bytes)
    }
}

impl Unit {
    /// The row groups of an object, by their numbers of rows.
    pub(super) fn of_object(object: usize, groups: &[u64]) -> Vec<Self> {
        let mut end = 0_u64;
        let unit = |rows: &u64| {
            let start = end;
            end = start.saturating_add(*rows);
            Self {
                object,
                rows: start..end,
                kept: None,
            }
        };
        groups.iter().map(unit).collect()
    }

    /// The same with the rows at `places` alone, which ascend.
    pub(super) fn keep(self, places: &[u64]) -> Self {
        let from = places.partition_point(|place| *place < self.rows.start);
        let to = places.partition_point(|place| *place < self.rows.end);
        let length = usize::try_from(self.rows.end - self.rows.start).unwrap_or(usize::MAX);
        let mut kept = BooleanBufferBuilder::new(length);
        kept.append_n(length, false);
        for place in &places[from..to] {
            if let Ok(index) = usize::try_from(place - self.rows.start) {
                kept.set_bit(index, true);
            }
        }
        Self {
            kept: Some(kept.finish()),
            ..self
        }
    }

    /// Index of the object.
    pub(super) const fn object(&self) -> usize {
        self.object
    }

    /// The places of all rows of the row group, samples or not.
    pub(super) fn rows(&self) -> Range<u64> {
        self.rows.clone()
    }

    /// How many rows are samples.
    pub(super) fn count(&self) -> u64 {
        match &self.kept {
            None => self.rows.end - self.rows.start,
            Some(kept) => kept.count_set_bits() as u64,
        }
    }

    /// Where these rows stand, counted among those that are samples.
    pub(super) fn ids(&self, rows: &[u32]) -> Vec<RowId> {
        let id = |place: u64| RowId {
            object: self.object,
            row: self.rows.start + place,
        };
        match &self.kept {
            None => rows.iter().map(|row| id(u64::from(*row))).collect(),
            Some(kept) => {
                let places: Vec<_> = kept.set_indices().collect();
                let place = |row: &u32| places.get(*row as usize).map(|place| id(*place as u64));
                rows.iter().filter_map(place).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_groups_of_any_size_are_added_up() {
        let units = Unit::of_object(0, &[u64::MAX, 5, u64::MAX]);
        assert_eq!(units[1].rows(), u64::MAX..u64::MAX);
        assert_eq!(Space::new(units, u64::MAX).len(), u64::MAX);
    }

    #[test]
    fn rows_that_are_kept_have_their_places() {
        let units = Unit::of_object(3, &[4, 0, 5]);
        assert_eq!(
            units.iter().map(Unit::rows).collect::<Vec<_>>(),
            [0..4, 4..4, 4..9]
        );
        let places = [1, 3, 4, 8];
        let kept: Vec<_> = units.into_iter().map(|unit| unit.keep(&places)).collect();
        assert_eq!(kept.iter().map(Unit::count).collect::<Vec<_>>(), [2, 0, 2]);
        let row = |row| RowId { object: 3, row };
        assert_eq!(kept[0].ids(&[1, 0]), [row(3), row(1)]);
        assert_eq!(kept[2].ids(&[0, 1, 2]), [row(4), row(8)]);
        assert_eq!(Space::new(kept, 10).bytes_of(2), 20);
    }
}
