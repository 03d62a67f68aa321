//! The state of a row of a batch.

use bytes::Bytes;
use pushdown::{Sample, wire::RowError};

use crate::cpu::Work;

/// The value of a row, or the error that is reported in its place.
type RowValue = Result<Sample, RowError>;

/// A row while its batch is read.
#[derive(Debug)]
pub(super) enum Slot {
    Missing,
    /// The suffix runs on the value.
    Running(Work<RowValue>, Arrival),
    Done(RowValue, Arrival),
}

/// What is known of a row when its value arrives.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) stage: u8,
    /// Contents of the further columns.
    pub(super) columns: Vec<Option<Bytes>>,
}

/// A row whose suffix has run.
#[derive(Debug)]
pub(in crate::units::objects) struct FinishedRow {
    pub(in crate::units::objects) stage: u8,
    pub(in crate::units::objects) value: RowValue,
    /// Contents of the further columns: as many as the data set has, all `None` if no value arrived.
    pub(in crate::units::objects) columns: Vec<Option<Bytes>>,
}

impl Slot {
    /// Waits until the suffix has run. `columns` is the number of further columns.
    pub(super) async fn finish(self, columns: usize) -> FinishedRow {
        let (value, Arrival { stage, columns }) = match self {
            Self::Done(value, arrival) => (value, arrival),
            Self::Running(work, arrival) => {
                let value = work
                    .await
                    .unwrap_or_else(|error| Err(internal(&error.to_string())));
                (value, arrival)
            }
            Self::Missing => (Err(internal("nothing arrived")), Arrival::nothing(columns)),
        };
        FinishedRow {
            stage,
            value,
            columns,
        }
    }
}

impl Arrival {
    /// The arrival of a sample without a value.
    pub(super) fn nothing(columns: usize) -> Self {
        Self {
            stage: 0,
            columns: vec![None; columns],
        }
    }

    /// Bytes of the further columns.
    pub(super) fn column_bytes(&self) -> u64 {
        let contents = self.columns.iter().flatten();
        contents.map(|content| content.len() as u64).sum()
    }
}

fn internal(message: &str) -> RowError {
    RowError::new(pushdown::ErrorKind::Internal.code(), message)
}
