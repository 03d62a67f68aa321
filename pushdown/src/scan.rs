//! Runs a stretch of a pipeline that makes a table, over an object that is read in parts: rows flow as they are ready.

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
    plan::float,
    step::table::{Opened, Rows, Rowwise as _, open, parts},
};

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

/// What a scan will read and give, as far as an object's footer tells. In bytes; figures of what is not known are absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Size of the object.
    pub stored: u64,
    /// Bytes that will be read of it, its footer apart: less where `limit` ends the scan early.
    pub read: Option<u64>,
    /// Rows of the answer, at most: those of the row groups and pages that a condition leaves.
    pub rows: Option<u64>,
    /// Size of these rows as Arrow, by the widths of their types; an estimate for strings and lists.
    pub answer: Option<u64>,
    /// Size of the rows that the condition likely leaves, if values are spread evenly between the least and the greatest one
    /// of their row groups.
    pub likely: Option<u64>,
    /// What of it is in memory at once: the columns of a row group and of the next ones as they are stored, and pages of
    /// one. What sorting, grouping and joining hold comes on top.
    pub held: Option<u64>,
}

/// Bytes of stored columns that are made into rows beside the store in a second, by one core that the store uses, too: of
/// `lineitem` 130 MB, and 335 MB where the store has cores of its own.
const MADE: f64 = 130e6;

impl Estimate {
    /// Whether the rows are likely fewer bytes than what has to be read for them: then they are better made beside the store.
    /// A sixteenth counts for nothing: making them there takes time.
    ///
    /// What `each` makes of values, and what grouping leaves, is not known beforehand: it is taken to be less.
    pub fn rows_are_fewer_bytes(&self) -> bool {
        match (self.likely, self.read) {
            (Some(rows), Some(read)) => rows.saturating_add(rows / 16) < read,
            _ => true,
        }
    }

    /// Whether the rows are likely there sooner if they are made beside the store, where so many bytes per second come from it:
    /// whether that which need not come takes longer than making them there.
    pub fn sooner_beside_the_store(&self, bytes_per_second: f64) -> bool {
        let (Some(rows), Some(read)) = (self.likely, self.read) else {
            return true;
        };
        let spared = float(read.saturating_sub(rows));
        self.rows_are_fewer_bytes() && spared * MADE >= float(read) * bytes_per_second
    }

    /// That of this object and of another one, read one after the other.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        Self {
            stored: self.stored.saturating_add(other.stored),
            read: sum(self.read, other.read),
            rows: sum(self.rows, other.rows),
            answer: sum(self.answer, other.answer),
            likely: sum(self.likely, other.likely),
            held: self.held.zip(other.held).map(|(a, b)| a.max(b)),
        }
    }
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
    fn followed_by(self, mut rows: Box<dyn Rows>) -> Self {
        let (schema, most) = (SchemaRef::clone(rows.schema()), rows.most());
        let same = schema == self.schema;
        let batches = self.batches.map(|batches| {
            let parts = batches.flat_map(move |batch| stream::iter(parts(batch, most)));
            parts.map(move |batch| rows.next(batch?)).boxed()
        });
        Self {
            schema,
            estimate: Estimate {
                // Values take another room than the bytes that they are made of.
                answer: self.estimate.answer.filter(|_| same),
                likely: self.estimate.likely.filter(|_| same),
                ..self.estimate
            },
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_made_where_they_are_there_sooner() {
        let of = |read, likely| Estimate {
            read: Some(read),
            likely: Some(likely),
            ..Estimate::default()
        };
        let (thin, wide) = (12.5e6, 400e6);
        let half = of(67_000_000, 26_000_000);
        assert!(half.sooner_beside_the_store(thin));
        assert!(!half.sooner_beside_the_store(wide), "making them takes longer");
        let few = of(67_000_000, 1_000);
        assert!(few.sooner_beside_the_store(MADE * 0.99));
        assert!(!few.sooner_beside_the_store(MADE * 1.01));
        assert!(!of(10, 26).sooner_beside_the_store(0.0), "rows are more bytes");
        assert!(
            Estimate::default().sooner_beside_the_store(wide),
            "of grouping nothing is known"
        );
    }
}
