//! Batches as the consumer receives them.

mod stack;

use std::{fmt, sync::Arc};

use bytes::Bytes;
use pushdown::{Sample, wire::RowError};

pub use stack::{StackLayout, Stacked};

use crate::sample_name::SampleName;

/// Samples that are consecutive in the order of the epoch, each exactly once, and padding if the tail policy repeats samples.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    number: usize,
    rows: Vec<Row>,
}

/// One sample of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Position in the order of the epoch over all ranks; from `take`, position in its list; of a [`ShardReader`](crate::shards::ShardReader), among
    /// its own samples.
    pub position: u64,
    /// Index in the data set: the order of the listing, or of the given keys; of a [`ShardReader`](crate::shards::ShardReader), index of the shard.
    pub index: usize,
    /// Key of the object, or of the shard.
    pub key: Arc<str>,
    /// Name of the member, for a sample that is a member of a shard.
    pub member: Option<Arc<str>>,
    /// Whether the sample is repeated only to fill the last batch ([`Tail::Pad`](crate::reader::Tail::Pad)): it must not count.
    pub is_padding: bool,
    /// Number of steps already applied when the value arrived; this host ran the rest. 0 if no value arrived.
    pub stage: u8,
    /// The value after the whole pipeline, or the error.
    pub value: Result<Sample, RowError>,
    /// Contents of the further columns as they are stored, in the order of [`Objects::columns`](crate::store::Objects::columns): `None` where the
    /// sample has none, and if no value arrived. Empty without further columns.
    pub columns: Vec<Option<Bytes>>,
}

impl Row {
    /// The name of the sample in its bucket: `key`, or `key member NAME` for a member of a shard.
    pub fn name(&self) -> impl fmt::Display {
        SampleName {
            key: &self.key,
            member: self.member.as_deref(),
        }
    }
}

impl Batch {
    /// A batch of these rows, such as those of [`into_rows`](Self::into_rows).
    pub const fn new(number: usize, rows: Vec<Row>) -> Self {
        Self { number, rows }
    }

    /// Number of the batch within this shard, from 0: pass it to `start_at` to resume.
    pub const fn number(&self) -> usize {
        self.number
    }

    /// The rows in order.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the rows.
    pub fn into_rows(self) -> Vec<Row> {
        self.rows
    }

    /// Number of rows, including those without a value.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether the batch has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The batch without the rows that have no value.
    #[must_use]
    pub fn without_errors(&self) -> Self {
        let rows = self.rows.iter().filter(|row| row.value.is_ok());
        Self::new(self.number, rows.cloned().collect())
    }

    /// The batch in which these rows, by their indices, have an error instead of a value: for contents of further columns that the consumer
    /// cannot use. A row that has an error already keeps it.
    #[must_use]
    pub fn with_errors(&self, errors: impl IntoIterator<Item = (usize, RowError)>) -> Self {
        let mut rows = self.rows.clone();
        for (index, error) in errors {
            if let Some(row) = rows.get_mut(index).filter(|row| row.value.is_ok()) {
                row.value = Err(error);
                row.columns.fill(None);
            }
        }
        Self::new(self.number, rows)
    }

    /// The rows that have a value.
    pub fn samples(&self) -> impl Iterator<Item = (&Row, &Sample)> {
        self.rows
            .iter()
            .filter_map(|row| Some((row, row.value.as_ref().ok()?)))
    }

    /// The rows without a value.
    pub fn errors(&self) -> impl Iterator<Item = (&Row, &RowError)> {
        self.rows
            .iter()
            .filter_map(|row| Some((row, row.value.as_ref().err()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_take_the_place_of_values_and_columns() {
        let row = |value: Result<Sample, RowError>| Row {
            position: 0,
            index: 0,
            key: "0.tar".into(),
            member: Some("1.jpg".into()),
            is_padding: false,
            stage: 0,
            value,
            columns: vec![Some(Bytes::from_static(b"x"))],
        };
        let good = || row(Ok(Sample::Bytes(Bytes::new())));
        let first = RowError::new("NoSuchKey", "it is not there");
        let batch = Batch::new(3, vec![good(), row(Err(first.clone())), good()]);
        let second = RowError::new("InvalidLabel", "expected int");
        let marked = batch.with_errors([0, 1, 7].map(|index| (index, second.clone())));
        let found: Vec<_> = marked.errors().map(|(_, error)| error).collect();
        assert_eq!(found, [&second, &first]);
        assert_eq!(marked.rows()[0].columns, [None]);
        assert_eq!((marked.number(), &marked.rows()[2]), (3, &batch.rows()[2]));
    }
}
