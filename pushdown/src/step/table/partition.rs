//! The one partition of the table: columns of an object as record batches, in the order that a plan asks for.

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

use super::{
    fault,
    parquet::{ParquetFile, ParquetScan},
    row_numbers::RowNumbers,
    row_range::RowRange,
    stream::StreamFile,
};
use crate::{Error, Result};

/// Some columns of an object.
pub(super) struct Partition {
    schema: SchemaRef,
    input: Input,
    /// Where each column stands among those that are read.
    order: Vec<usize>,
    /// Behind the columns that are stored, the places of rows.
    numbered: bool,
}

/// What is read, its columns in ascending order.
pub(super) enum Input {
    Parquet(ParquetFile, ParquetScan),
    Stream(StreamFile, Vec<usize>, Option<RowRange>),
}

impl Partition {
    /// The `columns` of an object that stores `stored` of them; the one behind those has the places of rows.
    pub(super) fn new(schema: SchemaRef, input: Input, columns: &[usize], stored: usize) -> Self {
        let mut sorted = columns.to_vec();
        sorted.sort_unstable();
        let place = |column| sorted.partition_point(|other| other < column);
        Self {
            schema,
            input,
            order: columns.iter().map(place).collect(),
            numbered: columns.contains(&stored),
        }
    }

    fn batches(&self) -> Result<(BoxStream<'static, Result<RecordBatch>>, RowNumbers)> {
        match &self.input {
            Input::Parquet(file, part) => Ok((file.read(part), RowNumbers::of(file, part))),
            Input::Stream(file, columns, None) => Ok((file.read(columns)?, RowNumbers::from(0))),
            Input::Stream(file, columns, Some(rows)) => Ok((
                rows.filter_stream(file.read(columns)?),
                RowNumbers::from(rows.start()),
            )),
        }
    }
}

impl fmt::Debug for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Partition")
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl PartitionStream for Partition {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let (schema, order, numbered) = (SchemaRef::clone(&self.schema), self.order.clone(), self.numbered);
        let batches = match self.batches() {
            Err(error) => stream::iter([Err(error)]).boxed(),
            Ok((batches, mut numbers)) => {
                let ordered = batches.map(move |batch| {
                    let batch = batch?;
                    let numbers = numbered.then(|| numbers.next(batch.num_rows()));
                    let read: Vec<_> = batch.columns().iter().cloned().chain(numbers).collect();
                    arrange(&read, batch.num_rows(), &order, &schema)
                });
                ordered.boxed()
            }
        };
        let batches = batches.map_err(fault::to_datafusion).then(giving_way);
        Box::pin(RecordBatchStreamAdapter::new(
            SchemaRef::clone(&self.schema),
            batches,
        ))
    }
}

/// Lets who polls a query do something else between two record batches: nothing else in a plan would ever give way.
async fn giving_way<T>(batch: T) -> T {
    tokio::task::yield_now().await;
    batch
}

/// The columns in their order. The schema of an object has metadata that its record batches lack.
fn arrange(read: &[ArrayRef], rows: usize, order: &[usize], schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = order
        .iter()
        .filter_map(|place| read.get(*place).cloned())
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(SchemaRef::clone(schema), columns, &options).map_err(|error| {
        Error::undecodable(format!("found rows that do not fit the object's schema: {error}"))
    })
}
