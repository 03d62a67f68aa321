//! Steps that transform a table row by row in order, one record batch at a time.

use std::{
    future::poll_fn,
    task::{Context as Task, Poll, Waker},
};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::{
    StreamExt as _, TryStreamExt as _,
    stream::{self, BoxStream},
};

use super::{RowProgress, RowTransform, RowwiseStep, Scope};
use crate::{Error, Result, Table, TableBuilder};

/// Runs a step over a table in memory. It must not wait, so [`Scope::cells`] must have neither cached values nor memory to wait for.
///
/// # Errors
/// Those of the step, and [`TooLarge`](crate::ErrorKind::TooLarge) past the limit of bytes.
pub fn transform_table<S: RowwiseStep>(step: &S, input: &Table, scope: &Scope<'_>) -> Result<Table> {
    let mut transform = step.start(input.schema(), scope)?;
    let mut task = Task::from_waker(Waker::noop());
    let mut table = TableBuilder::new(SchemaRef::clone(transform.schema()), scope.limits.max_value_bytes);
    for batch in input.batches() {
        for chunk in split_batch(Ok(batch.clone()), transform.max_rows()) {
            let mut remaining = chunk?;
            while remaining.num_rows() > 0 {
                match transform.next(&mut remaining, &mut task)? {
                    Poll::Ready(RowProgress::Output(output)) => table.push(output)?,
                    Poll::Ready(RowProgress::Unfinished) => {}
                    Poll::Pending => return Err(Error::internal("a step over a table in memory waits")),
                }
            }
        }
    }
    Ok(table.build())
}

/// Runs a transform over a stream of rows. The stream ends after the first error.
pub fn transform_stream(
    batches: BoxStream<'static, Result<RecordBatch>>,
    transform: Box<dyn RowTransform>,
) -> BoxStream<'static, Result<RecordBatch>> {
    let max_rows = transform.max_rows();
    let chunks = batches.flat_map(move |batch| stream::iter(split_batch(batch, max_rows)));
    let state = (chunks.boxed(), transform, None);
    stream::try_unfold(state, |(mut chunks, mut transform, remaining)| async move {
        let mut remaining: RecordBatch = match remaining {
            Some(remaining) => remaining,
            None => match chunks.try_next().await? {
                Some(chunk) => chunk,
                None => return Ok(None),
            },
        };
        let output = loop {
            match poll_fn(|task| transform.next(&mut remaining, task)).await? {
                RowProgress::Output(output) => break output,
                RowProgress::Unfinished => tokio::task::yield_now().await,
            }
        };
        let remaining = (remaining.num_rows() > 0).then_some(remaining);
        Ok::<_, Error>(Some((output, (chunks, transform, remaining))))
    })
    .boxed()
}

/// Removes the first `count` rows from `rows` and returns them.
pub fn take_rows(rows: &mut RecordBatch, count: usize) -> RecordBatch {
    let (taken, remaining) = (rows.slice(0, count), rows.slice(count, rows.num_rows() - count));
    *rows = remaining;
    taken
}

/// Splits a record batch into batches of at most `max_rows` rows. Lazy: a batch without columns can have any number of rows.
pub fn split_batch(batch: Result<RecordBatch>, max_rows: usize) -> impl Iterator<Item = Result<RecordBatch>> {
    let max_rows = max_rows.max(1);
    let mut remaining = Some(batch);
    std::iter::from_fn(move || match remaining.take()? {
        Ok(mut batch) if batch.num_rows() > max_rows => {
            let chunk = take_rows(&mut batch, max_rows);
            remaining = Some(Ok(batch));
            Some(Ok(chunk))
        }
        last => Some(last),
    })
}
