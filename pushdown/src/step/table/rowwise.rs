//! Steps from table to table that go through the rows in order, a record batch at a time.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::{Error, Result, Table, step::Scope, table::batch_bytes};

/// Such a step.
pub(crate) trait Rowwise {
    /// Begins with the rows of a table of these columns.
    ///
    /// # Errors
    /// [`Unsuitable`](crate::ErrorKind::Unsuitable) for columns that the step cannot be applied to.
    fn begin(&self, schema: &SchemaRef, scope: &Scope<'_>) -> Result<Box<dyn Rows>>;
}

/// A step on its way through a table.
pub(crate) trait Rows: Send {
    /// The columns that come out.
    fn schema(&self) -> &SchemaRef;

    /// The most rows that are to come at once.
    fn most(&self) -> usize;

    /// Goes on with the next rows.
    fn next(&mut self, batch: RecordBatch) -> Result<RecordBatch>;
}

/// Runs such a step over a table in memory.
pub(super) fn run<S: Rowwise>(step: &S, input: &Table, scope: &Scope<'_>) -> Result<Table> {
    let mut rows = step.begin(input.schema(), scope)?;
    let (mut batches, mut bytes) = (Vec::new(), 0);
    for batch in input.batches() {
        for part in parts(batch, rows.most()) {
            let batch = rows.next(part)?;
            bytes += batch_bytes(&batch);
            if bytes > scope.limits.max_value_bytes {
                return Err(Error::too_large(format!(
                    "the table has more bytes than the limit of {}",
                    scope.limits.max_value_bytes
                )));
            }
            batches.push(batch);
        }
    }
    Table::new(SchemaRef::clone(rows.schema()), batches)
}

/// Record batches of `most` rows.
pub(crate) fn parts(batch: &RecordBatch, most: usize) -> Vec<RecordBatch> {
    let rows = batch.num_rows();
    let starts = (0..rows).step_by(most.max(1));
    starts
        .map(|start| batch.slice(start, most.min(rows - start)))
        .collect()
}
