//! The table `object`, as DataFusion accesses it.

use std::sync::Arc;

use arrow_schema::{FieldRef, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::{
    catalog::{Session, TableProvider},
    common::DFSchema,
    datasource::TableType,
    error::Result as PlanResult,
    logical_expr::{Expr, TableProviderFilterPushDown, utils::conjunction},
    physical_plan::{ExecutionPlan, streaming::StreamingTableExec},
};
use parking_lot::Mutex;

use crate::{
    engine::{
        partition::{ObjectPartition, ScanInput},
        row_numbers,
    },
    fault,
    formats::{format::TableFile, read_options::ReadOptions},
    guard::duplicate::first_duplicate,
    pruning::prune::{self, PrunedScan},
    row_range::RowRange,
};
use pushdown_core::{Error, ErrorKind, Result, language::excerpt, limits::BATCH_ROWS};

/// The table, and the scans planned over it.
#[derive(Debug)]
pub(crate) struct ObjectTable {
    stored: TableFile,
    schema: SchemaRef,
    row_range: Option<RowRange>,
    scans: Mutex<Vec<PrunedScan>>,
}

impl ObjectTable {
    /// The table of an object. Adds the column of row numbers if the options name it.
    pub(crate) fn new(stored: TableFile, options: &ReadOptions) -> Result<Self> {
        let names = stored.schema().fields().iter().map(|field| field.name().as_str());
        if let Some(name) = first_duplicate(names) {
            let name = excerpt(name, 60);
            return Err(Error::unsuitable(format!(
                "the object has two columns named `{name}`, expected unique names"
            )));
        }
        let schema = match options.row_number.as_deref() {
            None => SchemaRef::clone(stored.schema()),
            Some(name) => {
                let schema = stored.schema();
                if schema.index_of(name).is_ok() {
                    let name = excerpt(name, 60);
                    let message = format!(
                        "the object has a column `{name}` already: choose another name for `row_number`"
                    );
                    return Err(Error::new(ErrorKind::Unsuitable, message));
                }
                let number = FieldRef::new(row_numbers::field(name));
                let fields: Vec<_> = schema.fields().iter().cloned().chain([number]).collect();
                Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
            }
        };
        Ok(Self {
            stored,
            schema,
            row_range: options.rows,
            scans: Mutex::default(),
        })
    }

    /// The stored object.
    pub(crate) const fn stored(&self) -> &TableFile {
        &self.stored
    }

    /// Rows per record batch for the planned scans: fewer if values are large.
    pub(crate) fn batch_rows(&self) -> usize {
        let TableFile::Parquet(file) = &self.stored else {
            return BATCH_ROWS;
        };
        let scans = self.scans.lock();
        let rows = scans.iter().map(|scan| file.batch_rows(&scan.scan.columns));
        rows.min().unwrap_or(BATCH_ROWS)
    }

    /// The planned scans.
    pub(crate) fn scans(&self) -> Vec<PrunedScan> {
        self.scans.lock().clone()
    }
}

#[async_trait]
impl TableProvider for ObjectTable {
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
        let all_columns = || (0..self.schema.fields().len()).collect();
        let columns = projection.cloned().unwrap_or_else(all_columns);
        let predicate = match conjunction(filters.to_vec()) {
            Some(filter) => {
                let schema = DFSchema::try_from(SchemaRef::clone(&self.schema))?;
                Some(state.create_physical_expr(filter, &schema)?)
            }
            None => None,
        };
        let stored_columns = self.stored.schema().fields().len();
        let mut read_columns: Vec<_> = columns
            .iter()
            .copied()
            .filter(|column| *column < stored_columns)
            .collect();
        read_columns.sort_unstable();
        let input = match &self.stored {
            TableFile::Parquet(file) => {
                let (file, pruned) = fault::to_plan_result(
                    prune::prune(file, read_columns, predicate, limit, self.row_range).await,
                )?;
                let scan = pruned.scan.clone();
                self.scans.lock().push(pruned);
                ScanInput::Parquet(file, scan)
            }
            TableFile::Stream(file) => ScanInput::Stream(file.clone(), read_columns, self.row_range),
        };
        let schema = Arc::new(self.schema.project(&columns)?);
        let partition = ObjectPartition::new(SchemaRef::clone(&schema), input, &columns, stored_columns);
        let exec = StreamingTableExec::try_new(schema, vec![Arc::new(partition)], None, None, false, limit)?;
        Ok(Arc::new(exec))
    }

    /// Filters only prune the scan. The plan evaluates them again on the rows.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> PlanResult<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}
