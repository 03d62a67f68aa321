//! The single partition of the table: reads columns of an object in the order that a plan requests.

use std::{fmt, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use datafusion::{
    execution::{SendableRecordBatchStream, TaskContext},
    physical_plan::{stream::RecordBatchStreamAdapter, streaming::PartitionStream},
};
use futures::{
    StreamExt as _, TryStreamExt as _,
    stream::{self, BoxStream},
};

use crate::{
    engine::row_numbers::RowNumbers,
    fault,
    formats::{
        parquet::{ParquetFile, ParquetScan},
        stream::StreamFile,
    },
    row_range::RowRange,
};
use pushdown_core::{Error, Result};

/// Some columns of an object.
pub(crate) struct ObjectPartition {
    schema: SchemaRef,
    input: ScanInput,
    /// For each output column, its index among the columns that are read.
    order: Vec<usize>,
    /// Whether a column of row numbers follows the stored columns.
    has_row_numbers: bool,
}

/// The input to read.
pub(crate) enum ScanInput {
    Parquet(ParquetFile, ParquetScan),
    /// A file, the columns in ascending order, and the row range.
    Stream(StreamFile, Vec<usize>, Option<RowRange>),
}

impl ObjectPartition {
    /// Some columns of an object that stores `stored_columns` columns. The index `stored_columns` is the column of row numbers.
    pub(crate) fn new(schema: SchemaRef, input: ScanInput, columns: &[usize], stored_columns: usize) -> Self {
        let mut sorted = columns.to_vec();
        sorted.sort_unstable();
        let read_index = |column| sorted.partition_point(|other| other < column);
        Self {
            schema,
            input,
            order: columns.iter().map(read_index).collect(),
            has_row_numbers: columns.contains(&stored_columns),
        }
    }

    fn batches(&self) -> Result<(BoxStream<'static, Result<RecordBatch>>, RowNumbers)> {
        match &self.input {
            ScanInput::Parquet(file, scan) => Ok((file.read(scan), RowNumbers::for_scan(file, scan))),
            ScanInput::Stream(file, columns, None) => Ok((file.read(columns)?, RowNumbers::starting_at(0))),
            ScanInput::Stream(file, columns, Some(rows)) => Ok((
                rows.filter_stream(file.read(columns)?),
                RowNumbers::starting_at(rows.start()),
            )),
        }
    }
}

impl fmt::Debug for ObjectPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectPartition")
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl PartitionStream for ObjectPartition {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (schema, order) = (SchemaRef::clone(&self.schema), self.order.clone());
        let has_row_numbers = self.has_row_numbers;
        let batches = match self.batches() {
            Err(error) => stream::iter([Err(error)]).boxed(),
            Ok((batches, mut numbers)) => {
                let reordered = batches.map(move |batch| {
                    let batch = batch?;
                    let numbers = has_row_numbers.then(|| numbers.next(batch.num_rows()));
                    let columns: Vec<_> = batch.columns().iter().cloned().chain(numbers).collect();
                    reorder(&columns, batch.num_rows(), &order, &schema)
                });
                reordered.boxed()
            }
        };
        let batches = batches.map_err(fault::to_datafusion).then(yield_after_batch);
        Box::pin(RecordBatchStreamAdapter::new(
            SchemaRef::clone(&self.schema),
            batches,
        ))
    }
}

/// Yields to the executor after a record batch. No other operator of a plan ever yields.
async fn yield_after_batch<T>(batch: T) -> T {
    tokio::task::yield_now().await;
    batch
}

/// A record batch of the columns in the output order, with the object's schema: record batches lack its metadata.
fn reorder(read: &[ArrayRef], rows: usize, order: &[usize], schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = order
        .iter()
        .filter_map(|index| read.get(*index).cloned())
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(SchemaRef::clone(schema), columns, &options).map_err(|error| {
        Error::undecodable(format!("malformed object: rows do not match the schema: {error}"))
    })
}
