//! What a scan will read and give, before it has begun.

use arrow_schema::{DataType, FieldRef, Schema};

use crate::plan::float;

/// What a scan will read and give, as far as an object's footer tells. In bytes; figures of what is not known are absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Size of the object.
    pub stored: u64,
    /// Bytes that will be read of it, its footer apart: less where `limit` ends the scan early.
    pub read: Option<u64>,
    /// Rows of the answer, at most: those of the row groups and pages that a condition leaves.
    pub rows: Option<u64>,
    /// Size of these rows as Arrow, by the widths of their types; an estimate for strings and lists.
    pub answer: Option<u64>,
    /// The same where it is the most that they may have: not where a footer does not tell how long strings are.
    pub most: Option<u64>,
    /// Size of the rows that the condition likely leaves, if values are spread evenly between the least and the greatest one
    /// of their row groups.
    pub likely: Option<u64>,
    /// What of it is in memory at once: the columns of a row group and of the next ones as they are stored, and pages of
    /// one; of a query of known `rows` that sorts or has windows all of its memory, too. What grouping and joining hold comes
    /// on top.
    pub held: Option<u64>,
}

/// Bytes of stored columns that are made into rows beside the store in a second, by one core that the store uses, too: of
/// `lineitem` 130 MB, and 335 MB where the store has cores of its own.
const MADE: f64 = 130e6;
/// What a value of a column is taken to have that `each` leaves as it is, in bytes.
const SHORT: u64 = 16;

impl Estimate {
    /// Whether the rows are likely fewer bytes than what has to be read for them: then they are better made beside the store.
    /// A sixteenth counts for nothing: making them there takes time.
    ///
    /// What grouping leaves, and what `each` makes in values of any size, is not known beforehand: it is taken to be less.
    pub fn rows_are_fewer_bytes(&self) -> bool {
        match (self.likely, self.read) {
            (Some(rows), Some(read)) => rows.saturating_add(rows / 16) < read,
            _ => true,
        }
    }

    /// Bytes of rows that may come from beside the store before all is read from the start instead, that a sixteenth more than
    /// the object has may travel: what rows are likely is a guess.
    pub fn spare(&self) -> u64 {
        let most = self.stored.saturating_add(self.stored / 16);
        most.saturating_sub(self.read.unwrap_or(self.stored))
    }

    /// Whether the rows are likely there sooner if they are made beside the store, where so many bytes per second come from it:
    /// whether that which need not come takes longer than making them there.
    pub fn sooner_beside_the_store(&self, bytes_per_second: f64) -> bool {
        let (Some(rows), Some(read)) = (self.likely, self.read) else {
            return true;
        };
        let spared = float(read.saturating_sub(rows));
        self.rows_are_fewer_bytes() && spared * MADE >= float(read) * bytes_per_second
    }

    /// That of as many rows of other columns: values take another room than the bytes that they are made of.
    pub(super) fn of_columns(self, before: &Schema, after: &Schema) -> Self {
        if before == after {
            return self;
        }
        let width = |field: &FieldRef| {
            let same = before.field_with_name(field.name());
            let same = same.is_ok_and(|same| same.data_type() == field.data_type());
            // A column that was there is short beside what is made, and errors are few.
            let short = same || field.data_type() == &DataType::Utf8;
            fixed_width(field.data_type()).or_else(|| short.then_some(SHORT))
        };
        let width: Option<u64> = after.fields().iter().map(width).sum();
        let answer = self
            .rows
            .zip(width)
            .map(|(rows, width)| rows.saturating_mul(width));
        let likely = self
            .likely
            .zip(self.answer)
            .zip(answer)
            .map(|((likely, of), answer)| {
                let part = u128::from(answer) * u128::from(likely) / u128::from(of.max(1));
                u64::try_from(part).unwrap_or(u64::MAX)
            });
        Self {
            answer,
            most: answer,
            likely,
            ..self
        }
    }

    /// That of this object and of another one, read one after the other.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        Self {
            stored: self.stored.saturating_add(other.stored),
            read: sum(self.read, other.read),
            rows: sum(self.rows, other.rows),
            answer: sum(self.answer, other.answer),
            most: sum(self.most, other.most),
            likely: sum(self.likely, other.likely),
            held: self.held.zip(other.held).map(|(a, b)| a.max(b)),
        }
    }
}

/// Bytes of a value in Arrow, where all of this type have the same.
fn fixed_width(data_type: &DataType) -> Option<u64> {
    match data_type {
        DataType::FixedSizeList(of, length) => {
            let length = u64::try_from(*length).ok()?;
            Some(fixed_width(of.data_type())?.saturating_mul(length))
        }
        other => other.primitive_width().map(|width| width as u64),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::Field;

    use super::*;

    #[test]
    fn rows_are_made_where_they_are_there_sooner() {
        let of = |read, likely| Estimate {
            read: Some(read),
            likely: Some(likely),
            ..Estimate::default()
        };
        let (thin, wide) = (12.5e6, 400e6);
        let half = of(67_000_000, 26_000_000);
        assert!(half.sooner_beside_the_store(thin));
        assert!(!half.sooner_beside_the_store(wide), "making them takes longer");
        let few = of(67_000_000, 1_000);
        assert!(few.sooner_beside_the_store(MADE * 0.99));
        assert!(!few.sooner_beside_the_store(MADE * 1.01));
        assert!(!of(10, 26).sooner_beside_the_store(0.0), "rows are more bytes");
        assert!(
            Estimate::default().sooner_beside_the_store(wide),
            "of grouping nothing is known"
        );
    }

    #[test]
    fn tensors_take_what_their_shape_says() {
        let field = |name, data_type| Field::new(name, data_type, true);
        let of = |value| Schema::new(vec![field("n", DataType::Int64), field("photo", value)]);
        let before = Estimate {
            rows: Some(100),
            answer: Some(10_000_000),
            likely: Some(1_000_000),
            ..Estimate::default()
        };
        let item = Arc::new(field("item", DataType::Float32));
        let tensors = of(DataType::FixedSizeList(item, 3 * 32 * 32));
        let stored = of(DataType::Binary);
        assert_eq!(before.of_columns(&stored, &stored), before);
        let after = before.of_columns(&stored, &tensors);
        assert_eq!(after.answer, Some(100 * (8 + 4 * 3 * 32 * 32)));
        assert_eq!(after.likely, Some(10 * (8 + 4 * 3 * 32 * 32)));
        let images = before.of_columns(&stored, &of(DataType::LargeBinary));
        assert_eq!((images.answer, images.likely), (None, None), "of any size");
    }
}
