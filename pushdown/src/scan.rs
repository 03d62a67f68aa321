//! Streams the rows of a pipeline that produces a table, from an object that is read in parts.

mod merge;

use std::{
    fmt,
    ops::Range,
    pin::Pin,
    sync::Arc,
    task::{Context as Task, Poll},
};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::{
    Stream, StreamExt as _,
    stream::{self, BoxStream},
};

use pushdown_core::step::rowwise::transform_stream;

use crate::{
    Context, Error, Estimate, Pipeline, Result, Source, Step,
    fuse::joined,
    step::{OpenTable, RowTransform},
};

pub use merge::{BatchMapping, MergeRule, SchemaMerger, SchemaRule};

/// A stream of the rows of a table. Dropping it stops the scan.
///
/// It has to be polled within a Tokio runtime. It computes while it is polled, so poll it on a thread for computations. It ends
/// after the first error.
pub struct Scan {
    schema: SchemaRef,
    estimate: Estimate,
    /// `None` after an error.
    batches: Option<BoxStream<'static, Result<RecordBatch>>>,
}

impl Scan {
    /// The columns.
    pub const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Puts record batches that were taken from the scan back in front of it.
    #[must_use]
    pub fn with_leading_batches(self, leading: Vec<RecordBatch>) -> Self {
        let leading = stream::iter(leading.into_iter().map(Ok));
        let rest = stream::iter(self.batches).flatten();
        Self {
            batches: Some(leading.chain(rest).boxed()),
            ..self
        }
    }

    /// Appends a step.
    fn followed_by(self, rows: Box<dyn RowTransform>) -> Self {
        let schema = SchemaRef::clone(rows.schema());
        let batches = self.batches.map(|batches| transform_stream(batches, rows));
        Self {
            estimate: self.estimate.with_columns(&self.schema, &schema),
            schema,
            batches,
        }
    }

    /// The estimated sizes of the scan.
    pub const fn estimate(&self) -> &Estimate {
        &self.estimate
    }
}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scan")
            .field("schema", &self.schema)
            .field("estimate", &self.estimate)
            .finish_non_exhaustive()
    }
}

impl Stream for Scan {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Option<Self::Item>> {
        let Some(batches) = &mut self.batches else {
            return Poll::Ready(None);
        };
        let next = batches.poll_next_unpin(task);
        if let Poll::Ready(Some(Err(_))) = next {
            self.batches = None;
        }
        next
    }
}

impl Pipeline {
    /// Whether [`scan`](Self::scan) can run the steps `stretch`: the first one reads a table from the object, and the others
    /// process its rows in order.
    pub fn is_scan(&self, stretch: &Range<usize>) -> bool {
        let Some(steps) = self.steps().get(stretch.clone()) else {
            return false;
        };
        let Some((first, rest)) = steps.split_first() else {
            return false;
        };
        stretch.start == 0
            && first.table_reader().is_some()
            && rest.iter().all(|step| step.rowwise().is_some())
    }

    /// Starts the steps `stretch` on an object: reads its footer, plans the scan, and returns the stream of rows.
    ///
    /// The rows and their order are those of [`run`](Self::run) on the whole object. Has to be polled within a Tokio runtime.
    ///
    /// # Errors
    /// [`InvalidPipeline`](crate::ErrorKind::InvalidPipeline) if [`is_scan`](Self::is_scan) is false for `stretch`, and for an
    /// invalid query; [`Undecodable`](crate::ErrorKind::Undecodable) for an object that is not a table;
    /// [`Unsuitable`](crate::ErrorKind::Unsuitable) for an object that lacks a column, with the nearest names;
    /// [`TooLarge`](crate::ErrorKind::TooLarge) past a limit; [`Source`](crate::ErrorKind::Source) for errors of `source`.
    pub async fn scan(
        &self,
        stretch: Range<usize>,
        source: Arc<dyn Source>,
        context: &Context<'_>,
    ) -> Result<Scan> {
        let reader = self.steps().first().and_then(Step::table_reader);
        let reader = reader.filter(|_| self.is_scan(&stretch)).ok_or_else(|| {
            Error::pipeline(
                0,
                format!("the steps {stretch:?} do not read a table from an object"),
            )
        })?;
        let opened = reader.open(source, context.sample_id, &context.limits).await;
        let OpenTable {
            schema,
            estimate,
            batches,
        } = opened.map_err(|error| self.with_step_position(0, error))?;
        let mut scan = Scan {
            schema,
            estimate,
            batches: Some(batches),
        };
        let mut index = 1;
        while index < stretch.end {
            let scope = self.scope(index, context)?;
            let step = &self.steps()[index];
            let joined = joined(step, &self.steps()[index + 1..stretch.end]);
            let (count, step) = joined.as_ref().map_or((1, step), |(count, step)| (*count, step));
            let rows = match step.rowwise() {
                Some(rowwise) => rowwise.start(&scan.schema, &scope),
                None => Err(Error::internal(format!(
                    "`{}` does not process a stream of rows",
                    step.name()
                ))),
            };
            scan = scan.followed_by(rows.map_err(|error| self.with_step_position(index, error))?);
            index += count;
        }
        Ok(scan)
    }
}
