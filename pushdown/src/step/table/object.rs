//! The table `object`: what DataFusion sees of a stored object.

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

use super::{
    duplicate::first_duplicate,
    fault,
    format::TableFile,
    partition::{Input, Partition},
    prune::{self, Kept},
    read_options::ReadOptions,
    row_numbers,
    row_range::RowRange,
};
use crate::{Error, ErrorKind, Result, limits::BATCH_ROWS, pipeline::excerpt};

/// The table, and what scans of it will read.
#[derive(Debug)]
pub(super) struct ObjectTable {
    stored: TableFile,
    schema: SchemaRef,
    rows: Option<RowRange>,
    scans: Mutex<Vec<Kept>>,
}

impl ObjectTable {
    /// The table of an object, with the places of rows as one more column if it has a name.
    pub(super) fn new(stored: TableFile, reading: &ReadOptions) -> Result<Self> {
        let names = stored.schema().fields().iter().map(|field| field.name().as_str());
        if let Some(twice) = first_duplicate(names) {
            let twice = excerpt(twice, 60);
            return Err(Error::unsuitable(format!(
                "the object has two columns named `{twice}`, expected names that differ"
            )));
        }
        let schema = match reading.row_number.as_deref() {
            None => SchemaRef::clone(stored.schema()),
            Some(name) => {
                let schema = stored.schema();
                if schema.index_of(name).is_ok() {
                    let name = excerpt(name, 60);
                    let message = format!("the object has a column `{name}`: give `row_number` another name");
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
            rows: reading.rows,
            scans: Mutex::default(),
        })
    }

    /// The object.
    pub(super) const fn stored(&self) -> &TableFile {
        &self.stored
    }

    /// Rows of a record batch of what the scans that were planned will read: fewer where values are large.
    pub(super) fn batch_rows(&self) -> usize {
        let TableFile::Parquet(file) = &self.stored else {
            return BATCH_ROWS;
        };
        let scans = self.scans.lock();
        let rows = scans.iter().map(|scan| file.batch_rows(&scan.part.columns));
        rows.min().unwrap_or(BATCH_ROWS)
    }

    /// What the scans that were planned will read.
    pub(super) fn scans(&self) -> Vec<Kept> {
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
        let all = || (0..self.schema.fields().len()).collect();
        let columns = projection.cloned().unwrap_or_else(all);
        let predicate = match conjunction(filters.to_vec()) {
            Some(filter) => {
                let schema = DFSchema::try_from(SchemaRef::clone(&self.schema))?;
                Some(state.create_physical_expr(filter, &schema)?)
            }
            None => None,
        };
        let stored = self.stored.schema().fields().len();
        let mut read: Vec<_> = columns
            .iter()
            .copied()
            .filter(|column| *column < stored)
            .collect();
        read.sort_unstable();
        let input = match &self.stored {
            TableFile::Parquet(file) => {
                let (file, kept) =
                    fault::to_plan_result(prune::prune(file, read, predicate, limit, self.rows).await)?;
                let part = kept.part.clone();
                self.scans.lock().push(kept);
                Input::Parquet(file, part)
            }
            TableFile::Stream(file) => Input::Stream(file.clone(), read, self.rows),
        };
        let schema = Arc::new(self.schema.project(&columns)?);
        let partition = Partition::new(SchemaRef::clone(&schema), input, &columns, stored);
        let exec = StreamingTableExec::try_new(schema, vec![Arc::new(partition)], None, None, false, limit)?;
        Ok(Arc::new(exec))
    }

    /// Filters choose what is read, and no more: whether a row fulfils one is found out behind the scan.
    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> PlanResult<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}
