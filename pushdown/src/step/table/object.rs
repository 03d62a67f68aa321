//! The table `object`: what DataFusion sees of a stored object.

use std::{fmt, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion::{
    catalog::{Session, TableProvider},
    common::DFSchema,
    datasource::TableType,
    error::Result as PlanResult,
    execution::{SendableRecordBatchStream, TaskContext},
    logical_expr::{Expr, TableProviderFilterPushDown, utils::conjunction},
    physical_plan::{
        ExecutionPlan,
        stream::RecordBatchStreamAdapter,
        streaming::{PartitionStream, StreamingTableExec},
    },
};
use futures::{StreamExt as _, TryStreamExt as _};
use parking_lot::Mutex;

use super::{
    fault,
    format::Stored,
    parquet::{File, Part},
    prune::{self, Kept},
};
use crate::Result;

/// The table, and what scans of it will read.
#[derive(Debug)]
pub(super) struct Object {
    stored: Stored,
    schema: SchemaRef,
    scans: Mutex<Vec<Kept>>,
}

impl Object {
    pub(super) fn new(stored: Stored) -> Self {
        let schema = match &stored {
            Stored::Parquet(file) => SchemaRef::clone(file.schema()),
        };
        Self {
            stored,
            schema,
            scans: Mutex::default(),
        }
    }

    /// The object.
    pub(super) const fn stored(&self) -> &Stored {
        &self.stored
    }

    /// What the scans that were planned will read.
    pub(super) fn scans(&self) -> Vec<Kept> {
        self.scans.lock().clone()
    }
}

#[async_trait]
impl TableProvider for Object {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let all = || (0..self.schema.fields().len()).collect();
        let columns = projection.cloned().unwrap_or_else(all);
        let predicate = match conjunction(filters.to_vec()) {
            Some(filter) => {
                let schema = DFSchema::try_from(SchemaRef::clone(&self.schema))?;
                Some(state.create_physical_expr(filter, &schema)?)
            }
            None => None,
        };
        let Stored::Parquet(file) = &self.stored;
        let (file, kept) = fault::checked(prune::prune(file, &columns, predicate, limit).await)?;
        let scan = ParquetScan {
            schema: Arc::new(self.schema.project(&columns)?),
            file,
            part: kept.part.clone(),
            order: order(&columns),
        };
        self.scans.lock().push(kept);
        let exec = StreamingTableExec::try_new(
            SchemaRef::clone(&scan.schema),
            vec![Arc::new(scan)],
            None,
            None,
            false,
            limit,
        )?;
        Ok(Arc::new(exec))
    }

    /// Filters choose what is read, and no more: whether a row fulfils one is found out behind the scan.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> PlanResult<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}

/// Where each of the columns stands among them in ascending order.
fn order(columns: &[usize]) -> Vec<usize> {
    let mut sorted = columns.to_vec();
    sorted.sort_unstable();
    let place = |column| sorted.partition_point(|other| other < column);
    columns.iter().map(place).collect()
}

/// A part of a Parquet file as a partition.
struct ParquetScan {
    schema: SchemaRef,
    file: File,
    part: Part,
    order: Vec<usize>,
}

impl fmt::Debug for ParquetScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetScan")
            .field("part", &self.part)
            .finish_non_exhaustive()
    }
}

impl PartitionStream for ParquetScan {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let schema = SchemaRef::clone(&self.schema);
        let order = self.order.clone();
        let ordered = move |batch: RecordBatch| -> Result<RecordBatch> {
            // The schema of the file has metadata that its record batches lack.
            batch
                .project(&order)
                .and_then(|batch| batch.with_schema(SchemaRef::clone(&schema)))
                .map_err(|error| fault::parquet(error.into()))
        };
        let batches = match self.file.read(&self.part) {
            Ok(batches) => batches,
            Err(error) => futures::stream::iter([Err(error)]).boxed(),
        };
        let batches = batches
            .map(move |batch| batch.and_then(&ordered))
            .map_err(fault::outward);
        Box::pin(RecordBatchStreamAdapter::new(
            SchemaRef::clone(&self.schema),
            batches,
        ))
    }
}
