//! A batch: what the consumer gets.

mod stack;

use std::sync::Arc;

use pushdown::{Sample, wire::RowError};

pub use stack::Stacked;

/// Samples that follow each other in the order of the epoch, each exactly once.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    number: usize,
    rows: Vec<Row>,
}

/// One sample of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Position in the epoch order of all ranks together; from `take`, position in its list.
    pub position: u64,
    /// Index in the data set: the order of the listing, or of the keys that were given.
    pub index: usize,
    /// Key of the object.
    pub key: Arc<str>,
    /// How many steps the value had been through when it arrived; the rest was done here. 0 where it never
    /// arrived.
    pub stage: u8,
    /// The value after the whole pipeline, or why there is none.
    pub value: Result<Sample, RowError>,
}

impl Batch {
    pub(crate) const fn new(number: usize, rows: Vec<Row>) -> Self {
        Self { number, rows }
    }

    /// Number of the batch among those of this shard, from 0: what `start_at` takes to resume.
    pub const fn number(&self) -> usize {
        self.number
    }

    /// The rows in order.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Gives the rows up.
    pub fn into_rows(self) -> Vec<Row> {
        self.rows
    }

    /// Rows, those without a value included.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are no rows at all.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows that have a value.
    pub fn samples(&self) -> impl Iterator<Item = (&Row, &Sample)> {
        self.rows
            .iter()
            .filter_map(|row| Some((row, row.value.as_ref().ok()?)))
    }

    /// The rows that have none.
    pub fn errors(&self) -> impl Iterator<Item = (&Row, &RowError)> {
        self.rows
            .iter()
            .filter_map(|row| Some((row, row.value.as_ref().err()?)))
    }
}
