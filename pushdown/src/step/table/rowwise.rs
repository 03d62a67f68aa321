//! Steps from table to table that go through the rows in order, a record batch at a time.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::{
    StreamExt as _, TryStreamExt as _,
    stream::{self, BoxStream},
};

use crate::{Error, Result, Table, TableBuilder, step::Scope};

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

    /// Goes on with the next rows. All of them are taken out of `rows`, or the first ones where what is made of these is
    /// large already: one at least, where there is any. `None` where more is to be done for them, and others may want the
    /// thread: it is to be called again with the same rows.
    fn next(&mut self, rows: &mut RecordBatch) -> Result<Option<RecordBatch>>;
}

/// Runs such a step over a table in memory.
pub(super) fn run<S: Rowwise>(step: &S, input: &Table, scope: &Scope<'_>) -> Result<Table> {
    let mut rows = step.begin(input.schema(), scope)?;
    let mut table = TableBuilder::new(SchemaRef::clone(rows.schema()), scope.limits.max_value_bytes);
    for batch in input.batches() {
        for part in parts(Ok(batch.clone()), rows.most()) {
            let mut left = part?;
            while left.num_rows() > 0 {
                if let Some(made) = rows.next(&mut left)? {
                    table.push(made)?;
                }
            }
        }
    }
    Ok(table.build())
}

/// Runs such a step over rows as they come. It ends behind the first error.
pub(crate) fn follow(
    batches: BoxStream<'static, Result<RecordBatch>>,
    rows: Box<dyn Rows>,
) -> BoxStream<'static, Result<RecordBatch>> {
    let most = rows.most();
    let parts = batches.flat_map(move |batch| stream::iter(parts(batch, most)));
    let begun = (parts.boxed(), rows, None);
    stream::try_unfold(begun, |(mut parts, mut rows, left)| async move {
        let mut left: RecordBatch = match left {
            Some(left) => left,
            None => match parts.try_next().await? {
                Some(part) => part,
                None => return Ok(None),
            },
        };
        let made = loop {
            match rows.next(&mut left)? {
                Some(made) => break made,
                None => tokio::task::yield_now().await,
            }
        };
        let left = (left.num_rows() > 0).then_some(left);
        Ok::<_, Error>(Some((made, (parts, rows, left))))
    })
    .boxed()
}

/// Takes the first `count` rows out of `rows`.
pub(super) fn take(rows: &mut RecordBatch, count: usize) -> RecordBatch {
    let (taken, left) = (rows.slice(0, count), rows.slice(count, rows.num_rows() - count));
    *rows = left;
    taken
}

/// Record batches of at most `most` rows, cut as they are taken: rows of no bytes may be any number.
pub(super) fn parts(batch: Result<RecordBatch>, most: usize) -> impl Iterator<Item = Result<RecordBatch>> {
    let most = most.max(1);
    let mut left = Some(batch);
    std::iter::from_fn(move || match left.take()? {
        Ok(mut batch) if batch.num_rows() > most => {
            let part = take(&mut batch, most);
            left = Some(Ok(batch));
            Some(Ok(part))
        }
        last => Some(last),
    })
}
