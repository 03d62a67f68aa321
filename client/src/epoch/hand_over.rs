//! Applies the error policy to batches that are handed over, and counts their samples.

use crate::{
    batch::Batch,
    error::{Error, ErrorKind, Result},
    error_policy::{ErrorPolicy, FailedRows},
    stats::{Counters, add},
};

/// Counts a batch that is handed over, as the error policy leaves it. Returns the error of a sample that ends the stream.
pub(crate) fn hand_over(
    batch: Batch,
    policy: &ErrorPolicy,
    bucket: &str,
    counters: &Counters,
) -> Result<Batch> {
    let failed_rows = policy.decide(&batch).map_err(|failure| {
        add(&counters.errors, 1);
        let (name, position, error) = (failure.row.name(), failure.row.position, failure.error);
        let note = failure.note.map(|note| format!("; {note}")).unwrap_or_default();
        let text = format!("s3://{bucket}/{name} (position {position}) cannot be delivered: {error}{note}");
        Error::new(ErrorKind::Sample, text)
    })?;
    add(&counters.samples, batch.samples().count() as u64);
    add(&counters.errors, batch.errors().count() as u64);
    Ok(match failed_rows {
        FailedRows::Reported => batch,
        FailedRows::Skipped => batch.without_errors(),
    })
}
