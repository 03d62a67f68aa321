//! Runs a stretch of a pipeline that makes a table, over an object that is read in parts: rows flow as they are ready.

mod estimate;
mod several;

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

use crate::{
    Context, Error, Pipeline, Result, Source, Step,
    step::table::{Opened, Rows, Rowwise as _, follow, open},
};

pub use estimate::Estimate;
pub use several::{Fitting, OneTable, SchemaRule, Several};

/// The rows of a table, as they are computed. Dropping it stops the scan.
///
/// It has to be polled within a tokio runtime, and computes while it is polled: on a thread for that. It ends behind the
/// first error.
pub struct Scan {
    schema: SchemaRef,
    estimate: Estimate,
    /// `None` once it has failed.
    batches: Option<BoxStream<'static, Result<RecordBatch>>>,
}

impl Scan {
    /// The columns.
    pub const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The same, with the rows before it that were taken from it.
    #[must_use]
    pub fn behind(self, taken: Vec<RecordBatch>) -> Self {
        let (taken, rest) = (taken.into_iter().map(Ok), self.batches.into_iter());
        let batches = stream::iter(taken).chain(stream::iter(rest).flatten());
        Self {
            batches: Some(batches.boxed()),
            ..self
        }
    }

    /// The same with a step behind it.
    fn followed_by(self, rows: Box<dyn Rows>) -> Self {
        let schema = SchemaRef::clone(rows.schema());
        let batches = self.batches.map(|batches| follow(batches, rows));
        Self {
            estimate: self.estimate.with_columns(&self.schema, &schema),
            schema,
            batches,
        }
    }

    /// What the scan will read and give.
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
    /// Whether [`scan`](Self::scan) can run `stretch`: it starts at the object, makes a table, and goes on with steps that
    /// take its rows in order.
    pub fn is_scan(&self, stretch: &Range<usize>) -> bool {
        let Some(steps) = self.steps().get(stretch.clone()) else {
            return false;
        };
        let is_rowwise = |step: &Step| matches!(step, Step::Sample(_) | Step::Each(_));
        let reads = matches!(steps.first(), Some(Step::Select(_) | Step::Sql(_)));
        stretch.start == 0 && reads && steps[1..].iter().all(is_rowwise)
    }

    /// Starts to run the steps `stretch` on an object: reads its footer, plans, and gives the rows as they come.
    ///
    /// The rows are those that [`run`](Self::run) makes of the whole object, in the same order. Has to be polled within
    /// a tokio runtime.
    ///
    /// # Errors
    /// [`InvalidPipeline`](crate::ErrorKind::InvalidPipeline) for a stretch that [`is_scan`](Self::is_scan) denies, and
    /// for a query that no object can answer; [`Undecodable`](crate::ErrorKind::Undecodable) for an object that is no
    /// table; [`Unsuitable`](crate::ErrorKind::Unsuitable) for one that lacks a column, with the nearest names;
    /// [`TooLarge`](crate::ErrorKind::TooLarge) past a limit; [`Source`](crate::ErrorKind::Source) as `source` has it.
    pub async fn scan(
        &self,
        stretch: Range<usize>,
        source: Arc<dyn Source>,
        context: &Context<'_>,
    ) -> Result<Scan> {
        let step = self.steps().first().filter(|_| self.is_scan(&stretch));
        let opened = match step {
            Some(Step::Select(select)) => open(select, source, context.sample_id, &context.limits).await,
            Some(Step::Sql(sql)) => open(sql, source, context.sample_id, &context.limits).await,
            _ => {
                return Err(Error::pipeline(
                    0,
                    format!("the steps {stretch:?} make no table of an object"),
                ));
            }
        };
        let Opened {
            schema,
            estimate,
            batches,
        } = opened.map_err(|error| self.located(0, error))?;
        let mut scan = Scan {
            schema,
            estimate,
            batches: Some(batches),
        };
        for index in 1..stretch.end {
            let scope = self.scope(index, context)?;
            let rows = match &self.steps()[index] {
                Step::Sample(step) => step.begin(&scan.schema, &scope),
                Step::Each(step) => step.begin(&scan.schema, &scope),
                other => Err(Error::internal(format!(
                    "`{}` takes no rows as they come",
                    other.name()
                ))),
            };
            scan = scan.followed_by(rows.map_err(|error| self.located(index, error))?);
        }
        Ok(scan)
    }
}
