//! Steps from table to table that go through the rows in order, a record batch at a time.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::{Result, Table, TableBuilder, step::Scope};

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
    let mut table = TableBuilder::new(SchemaRef::clone(rows.schema()), scope.limits.max_value_bytes);
    for batch in input.batches() {
        for part in parts(Ok(batch.clone()), rows.most()) {
            table.push(rows.next(part?)?)?;
        }
    }
    Ok(table.build())
}

/// Record batches of at most `most` rows.
pub(crate) fn parts(batch: Result<RecordBatch>, most: usize) -> Vec<Result<RecordBatch>> {
    match batch {
        Ok(batch) if batch.num_rows() > most => {
            let starts = (0..batch.num_rows()).step_by(most.max(1));
            let length = |start: usize| most.min(batch.num_rows() - start);
            starts
                .map(|start| Ok(batch.slice(start, length(start))))
                .collect()
        }
        other => vec![other],
    }
}
