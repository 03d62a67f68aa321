//! What a reader does with samples that cannot be delivered.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pushdown::wire::RowError;
use serde::{Deserialize, Serialize};

use crate::{
    batch::{Batch, Row},
    error::{Error, Result},
};

/// How a reader treats a sample that cannot be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// End the stream with an error that names the sample.
    #[default]
    Raise,
    /// Deliver a row at its position with the error in place of a value.
    Report,
    /// Deliver a batch without its row. Where the number of samples is known, a batch without any value ends the stream with an error:
    /// without this batch, the rank would have fewer batches than the others. Where it is not, as in shards without an index, a batch may
    /// be empty.
    Skip,
}

/// The most samples of an iteration that may fail.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MaxErrors {
    /// Their number.
    Count(u64),
    /// Their ratio to all samples, from 0 to 1.
    Ratio(f64),
}

/// Decides what becomes of the samples that fail in an iteration, and counts them.
#[derive(Debug)]
pub struct ErrorPolicy {
    on_error: OnError,
    max_errors: Option<u64>,
    /// Whether the number of samples is known, so that each batch must have rows.
    is_counted: bool,
    errors: AtomicU64,
}

/// What becomes of the rows without a value in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailedRows {
    /// They are delivered with their errors.
    Reported,
    /// They are left out: [`Batch::without_errors`].
    Skipped,
}

/// A sample that ends an iteration.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleFailure<'a> {
    /// Number of the row in its batch.
    pub number: usize,
    /// The row, which has no value.
    pub row: &'a Row,
    /// Its error.
    pub error: &'a RowError,
    /// Why it ends the iteration, unless every error does.
    pub note: Option<String>,
}

impl ErrorPolicy {
    /// A policy for an iteration of this number of samples, `None` if it is unknown.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) for `max_errors` with [`OnError::Raise`], or for a ratio beyond 1 or of an unknown number.
    pub fn new(on_error: OnError, max_errors: Option<MaxErrors>, samples: Option<usize>) -> Result<Self> {
        let max_errors = match (on_error, max_errors) {
            (_, None) => None,
            (OnError::Raise, Some(_)) => {
                return Err(Error::config(
                    "invalid max_errors: expected None with on_error=\"raise\", which ends with the first error",
                ));
            }
            (_, Some(MaxErrors::Count(count))) => Some(count),
            (_, Some(MaxErrors::Ratio(ratio))) => Some(allowed_errors(ratio, samples)?),
        };
        Ok(Self {
            on_error,
            max_errors,
            is_counted: samples.is_some(),
            errors: AtomicU64::new(0),
        })
    }

    /// Counts the errors of a batch, and decides what becomes of their rows.
    ///
    /// # Errors
    /// The sample that ends the iteration: the first one of the batch that fails, or the last one if they are more than `max_errors`.
    pub fn decide<'a>(&self, batch: &'a Batch) -> Result<FailedRows, SampleFailure<'a>> {
        let rows = batch.rows().iter().enumerate();
        let failed = rows.filter_map(|(number, row)| Some((number, row, row.value.as_ref().err()?)));
        let failed: Vec<_> = failed.collect();
        let (Some(first), Some(last)) = (failed.first(), failed.last()) else {
            return Ok(FailedRows::Reported);
        };
        let failure = |(number, row, error): (usize, &'a Row, &'a RowError), note| {
            Err(SampleFailure {
                number,
                row,
                error,
                note,
            })
        };
        let count = failed.len();
        let errors = self.errors.fetch_add(count as u64, Relaxed) + count as u64;
        if let Some(max_errors) = self.max_errors.filter(|max_errors| errors > *max_errors) {
            let note = format!("{errors} samples failed, more than the {max_errors} that max_errors allows");
            return failure(*last, Some(note));
        }
        match self.on_error {
            OnError::Raise => failure(*first, None),
            OnError::Report => Ok(FailedRows::Reported),
            OnError::Skip if count == batch.len() && self.is_counted => {
                let number = batch.number();
                let note =
                    format!("all {count} samples of batch {number} failed: on_error=\"skip\" has none left");
                failure(*first, Some(note))
            }
            OnError::Skip => Ok(FailedRows::Skipped),
        }
    }
}

/// The number of errors that a ratio of the samples allows, rounded down.
fn allowed_errors(ratio: f64, samples: Option<usize>) -> Result<u64> {
    if !(0.0..=1.0).contains(&ratio) {
        return Err(Error::config(format!(
            "invalid max_errors: expected a fraction from 0.0 to 1.0 or a whole number, found {ratio:?}"
        )));
    }
    let samples = samples.ok_or_else(|| {
        Error::config(format!(
            "invalid max_errors: expected a whole number, since the number of samples is unknown, found {ratio:?}"
        ))
    })?;
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most the number of samples, which a few errors more or less do not change"
    )]
    let allowed = (ratio * samples as f64) as u64;
    Ok(allowed)
}

#[cfg(test)]
mod tests;
