//! Reads row groups: rows from the gateway, or stored columns.

use std::ops::Range;

use arrow_array::{RecordBatch, UInt32Array};
use arrow_schema::SchemaRef;
use arrow_select::{concat::concat_batches, take::take_record_batch};
use futures::StreamExt as _;
use pushdown::{
    Context, Kind, Limits, Pipeline, Sample, Table, TableBuilder,
    wire::{Compression, Split, TableForm, header::SOURCE_ETAG},
};
use tokio::runtime::Handle;

use super::{
    RowId,
    order::{RowGroupSlice, RowOrder},
    row_groups::SampleRows,
};
use crate::{
    cpu::CpuPool,
    error::{Error, ErrorKind, Result},
    objects::Objects,
    planning::ExpansionGuard,
    stats::{Counters, add},
    store::{Store, StoredTable, ValueRequest},
};

/// The objects of a reader of rows.
#[derive(Debug)]
pub(crate) struct TableSource {
    pub(crate) store: Store,
    pub(crate) objects: Objects,
    /// The same objects, with their versions and footers.
    pub(crate) tables: Vec<StoredTable>,
    pub(crate) seed: Option<u64>,
    pub(crate) compression: Compression,
    pub(crate) limits: Limits,
    pub(crate) cpu: CpuPool,
    pub(crate) counters: Counters,
}

/// Reads the rows of a data set through a pipeline.
#[derive(Debug)]
pub(super) struct RowReader {
    pub(super) source: TableSource,
    pub(super) pipeline: Pipeline,
    /// Number of steps that run at the gateway.
    pub(super) stage: usize,
    /// Set if the stage was chosen by estimated bytes.
    pub(super) expansion_guard: Option<ExpansionGuard>,
    pub(super) samples: SampleRows,
    pub(super) schema: SchemaRef,
}

/// Rows of a row group, in the order of the epoch.
#[derive(Debug)]
pub(super) struct RowBlock {
    rows: RecordBatch,
    pub(super) ids: Vec<RowId>,
}

impl RowBlock {
    /// Removes and returns the first `count` rows, or all.
    pub(super) fn split_off_front(&mut self, count: usize) -> (RecordBatch, Vec<RowId>) {
        let count = count.min(self.ids.len());
        let rest = self.ids.split_off(count);
        let ids = std::mem::replace(&mut self.ids, rest);
        let rows = self.rows.slice(0, count);
        self.rows = self.rows.slice(count, self.rows.num_rows() - count);
        (rows, ids)
    }
}

impl RowReader {
    /// Reads the row group of a slice, and returns the rows of the slice.
    ///
    /// # Errors
    /// [`ErrorKind::Sample`] for an object replaced since its footer was read; errors of reading it.
    pub(super) async fn read(&self, slice: &RowGroupSlice, order: RowOrder, epoch: u32) -> Result<RowBlock> {
        let group = &self.samples.groups()[slice.group];
        let over = over(&self.pipeline, group.rows())?;
        let is_exceeded = self
            .expansion_guard
            .as_ref()
            .is_some_and(ExpansionGuard::is_exceeded);
        let stage = if is_exceeded { 0 } else { self.stage };
        let table = self.source.table(group.object(), &over, stage, epoch).await?;
        if let Some(guard) = self.expansion_guard.as_ref().filter(|_| stage > 0) {
            let rows = group.rows();
            guard.observe(rows.end.saturating_sub(rows.start), table.bytes());
        }
        let expected = group.count();
        if table.rows() != expected {
            return Err(self.source.replaced(
                group.object(),
                &format!("found {} rows of a row group, expected {expected}", table.rows()),
            ));
        }
        if table.schema().fields() != self.schema.fields() {
            return Err(self.source.replaced(group.object(), "found other columns"));
        }
        let taken = order.rows_of(slice, expected);
        let ids = group.ids(&taken);
        let taking = move || {
            let rows = concat_batches(table.schema(), table.batches())?;
            take_record_batch(&rows, &UInt32Array::from(taken))
        };
        let rows = self.source.cpu.run(taking).await?;
        let rows = rows.map_err(|error| Error::internal("cannot reorder rows").with_source(error))?;
        Ok(RowBlock { rows, ids })
    }
}

/// The pipeline over a range of rows of an object.
pub(super) fn over(pipeline: &Pipeline, rows: Range<u64>) -> Result<Pipeline> {
    pipeline
        .with_rows(rows)
        .ok_or_else(|| Error::internal("expected a pipeline that begins with `select`"))
}

impl TableSource {
    /// Runs a pipeline on an object, its first `stage` steps at the gateway.
    pub(super) async fn table(
        &self,
        object: usize,
        pipeline: &Pipeline,
        stage: usize,
        epoch: u32,
    ) -> Result<Table> {
        let table = if stage == 0 {
            self.read_local(object, pipeline, epoch).await?
        } else {
            self.read_remote(object, pipeline, stage, epoch).await?
        };
        add(&self.counters.value_bytes, table.bytes());
        if stage == 0 || stage == pipeline.len() {
            return Ok(table);
        }
        let (pipeline, key) = (pipeline.clone(), self.objects.key(object).to_owned());
        let (seed, limits) = (self.seed, self.limits);
        let suffix = move || {
            let context = Context {
                seed,
                epoch: Some(epoch),
                limits,
                ..Context::new(key.as_bytes())
            };
            pipeline.run(stage..pipeline.len(), Sample::Table(table), &context)
        };
        let value = self.cpu.run(suffix).await?;
        match value.map_err(|error| self.tables[object].map_error(error))? {
            Sample::Table(table) => Ok(table),
            other => Err(Error::internal(format!(
                "expected rows from the suffix, found {}",
                Kind::from(&other)
            ))),
        }
    }

    async fn read_remote(
        &self,
        object: usize,
        pipeline: &Pipeline,
        stage: usize,
        epoch: u32,
    ) -> Result<Table> {
        let stage =
            u8::try_from(stage).map_err(|_| Error::internal("a stage is beyond the pipeline's end"))?;
        let form = TableForm::ArrowStream(self.compression);
        let request = ValueRequest {
            pipeline,
            split: Split::At(stage),
            seed: self.seed,
            epoch: Some(epoch),
            accept: Some(form.accept()),
        };
        let key = self.objects.key(object);
        let value = self
            .store
            .get_value(self.objects.bucket(), key, &request, &self.limits)
            .await?;
        if !self.tables[object].matches_etag(value.headers.get(SOURCE_ETAG)) {
            return Err(self.replaced(object, "found another ETag"));
        }
        let limits = self.limits;
        match self.cpu.run(move || value.decode(&limits)).await?? {
            Sample::Table(table) => Ok(table),
            other => Err(Error::protocol(format!(
                "invalid answer from the gateway: expected a table, found {}",
                Kind::from(&other)
            ))),
        }
    }

    /// Runs a pipeline on this host, over the ranges of the object that it needs.
    #[expect(
        clippy::disallowed_methods,
        reason = "a scan alternates between computing and waiting, so it needs a thread and a runtime"
    )]
    async fn read_local(&self, object: usize, pipeline: &Pipeline, epoch: u32) -> Result<Table> {
        let (table, pipeline) = (self.tables[object].clone(), pipeline.clone());
        let (seed, limit, runtime) = (self.seed, self.limits.max_value_bytes, Handle::current());
        let scanning = async move {
            let mut scan = table.scan(&pipeline, seed, epoch).await?;
            let mut rows = TableBuilder::new(SchemaRef::clone(scan.schema()), limit);
            while let Some(batch) = scan.next().await {
                let pushed = batch.and_then(|batch| rows.push(batch));
                pushed.map_err(|error| table.map_error(error))?;
            }
            Ok(rows.build())
        };
        let scanned = tokio::task::spawn_blocking(move || runtime.block_on(scanning)).await;
        scanned.map_err(|error| Error::internal("a scan failed").with_source(error))?
    }

    /// The error for an object that was replaced.
    pub(super) fn replaced(&self, object: usize, found: &str) -> Error {
        let key = self.objects.key(object);
        let text = format!(
            "s3://{}/{key} was replaced while it was read: {found}; build the reader again",
            self.objects.bucket()
        );
        Error::new(ErrorKind::Sample, text)
    }
}
