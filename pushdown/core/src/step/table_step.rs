//! The interfaces of table steps: those that read a table from an object, and those that process its rows in order.

use std::{
    fmt,
    sync::Arc,
    task::{Context as Task, Poll},
};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::{future::BoxFuture, stream::BoxStream};

use super::Scope;
use crate::{Estimate, Limits, Result, Source};

/// A step that reads an object as a table.
pub trait TableReader {
    /// Reads the metadata of an object and plans the step over it. The future and the rows must be polled within a tokio
    /// runtime.
    ///
    /// # Errors
    /// As `Pipeline::scan`.
    fn open<'a>(
        &'a self,
        source: Arc<dyn Source>,
        sample_id: &'a [u8],
        limits: &'a Limits,
    ) -> BoxFuture<'a, Result<OpenTable>>;

    /// How the step chooses rows, if each output row is one row of the object. `None` for any query.
    fn row_selection(&self) -> Option<RowSelection<'_>>;
}

/// A planned table whose rows have not been read yet.
pub struct OpenTable {
    /// The output columns.
    pub schema: SchemaRef,
    /// Sizes of input and output.
    pub estimate: Estimate,
    /// The output rows.
    pub batches: BoxStream<'static, Result<RecordBatch>>,
}

impl fmt::Debug for OpenTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenTable")
            .field("schema", &self.schema)
            .field("estimate", &self.estimate)
            .finish_non_exhaustive()
    }
}

/// How a step chooses rows of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowSelection<'a> {
    /// The condition on rows, if there is one.
    pub condition: Option<&'a str>,
    /// The argument that chooses rows by position, if there is one.
    pub positional_argument: Option<&'static str>,
}

/// A step that transforms a table row by row, in order.
pub trait RowwiseStep {
    /// Starts a transform of rows with these columns.
    ///
    /// # Errors
    /// [`Unsuitable`](crate::ErrorKind::Unsuitable) for columns that the step cannot be applied to.
    fn start(&self, schema: &SchemaRef, scope: &Scope<'_>) -> Result<Box<dyn RowTransform>>;

    /// Whether each input row is one output row.
    fn keeps_all_rows(&self) -> bool;

    /// Maximum bytes of computed values in one record batch, in addition to the input; 0 if the step computes none.
    fn computed_bytes(&self) -> u64 {
        0
    }
}

/// The state of a row-by-row step while it transforms one table.
pub trait RowTransform: Send {
    /// The output columns.
    fn schema(&self) -> &SchemaRef;

    /// The maximum number of rows per call of [`next`](Self::next).
    fn max_rows(&self) -> usize;

    /// Transforms the first rows of `rows` and removes them from it: all of them, or fewer (at least one, unless `rows` is
    /// empty) if their output is already large.
    ///
    /// If the work is unfinished or waits, the caller calls again with the same rows.
    fn next(&mut self, rows: &mut RecordBatch, task: &mut Task<'_>) -> Poll<Result<RowProgress>>;
}

/// What a [`RowTransform`] has done.
pub enum RowProgress {
    /// The output of the rows that it has removed.
    Output(RecordBatch),
    /// A part of the work: the caller can yield the thread.
    Unfinished,
}

impl fmt::Debug for RowProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(batch) => f.debug_tuple("Output").field(batch).finish(),
            Self::Unfinished => f.write_str("Unfinished"),
        }
    }
}
