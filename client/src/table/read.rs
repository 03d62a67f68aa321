//! Reads row groups: what the gateway makes of them, or their columns as they are stored.

use std::{ops::Range, sync::Arc};

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
    order::{EpochOrder, Stretch},
    outgrown::Outgrown,
    space::Space,
};
use crate::{
    cpu::CpuPool,
    error::{Error, ErrorKind, Result},
    stats::{Counters, add},
    store::{GetValue, Object, Store, StoredTable},
};

/// Objects whose rows can be read.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) store: Store,
    pub(crate) bucket: String,
    pub(crate) objects: Vec<Object>,
    /// The objects again, with what is known of them.
    pub(crate) tables: Vec<StoredTable>,
    pub(crate) seed: Option<u64>,
    pub(crate) compression: Compression,
    pub(crate) limits: Limits,
    pub(crate) cpu: CpuPool,
    pub(crate) counters: Counters,
}

/// The rows of a data set, and what is made of them.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) source: Source,
    pub(super) pipeline: Pipeline,
    /// How many steps the gateway runs.
    pub(super) stage: usize,
    /// Where the stage was chosen for its bytes.
    pub(super) outgrown: Option<Outgrown>,
    pub(super) space: Space,
    pub(super) schema: SchemaRef,
}

/// Rows of a row group, in the order of the epoch.
#[derive(Debug)]
pub(super) struct Part {
    rows: RecordBatch,
    pub(super) ids: Vec<RowId>,
}

impl Part {
    /// Takes the first `count` rows, or all.
    pub(super) fn split_off_front(&mut self, count: usize) -> (RecordBatch, Vec<RowId>) {
        let count = count.min(self.ids.len());
        let rest = self.ids.split_off(count);
        let ids = std::mem::replace(&mut self.ids, rest);
        let rows = self.rows.slice(0, count);
        self.rows = self.rows.slice(count, self.rows.num_rows() - count);
        (rows, ids)
    }
}

impl Rows {
    /// Reads the row group of a stretch, and gives the rows of the stretch.
    ///
    /// # Errors
    /// [`ErrorKind::Sample`] for an object that was replaced since its footer was read; and as reading it fails.
    pub(super) async fn read(&self, stretch: &Stretch, order: EpochOrder, epoch: u32) -> Result<Part> {
        let unit = &self.space.units()[stretch.unit];
        let over = over(&self.pipeline, unit.rows())?;
        let here = self.outgrown.as_ref().is_some_and(Outgrown::is_told);
        let stage = if here { 0 } else { self.stage };
        let table = self.source.table(unit.object(), &over, stage, epoch).await?;
        if let Some(outgrown) = self.outgrown.as_ref().filter(|_| stage > 0) {
            let rows = unit.rows();
            outgrown.seen(rows.end.saturating_sub(rows.start), table.bytes());
        }
        let expected = unit.count();
        if table.rows() != expected {
            return Err(self.source.replaced(
                unit.object(),
                &format!("found {} rows of a row group, expected {expected}", table.rows()),
            ));
        }
        if table.schema().fields() != self.schema.fields() {
            return Err(self.source.replaced(unit.object(), "found other columns"));
        }
        let places = order.rows_of(stretch, expected);
        let ids = unit.ids(&places);
        let taking = move || {
            let rows = concat_batches(table.schema(), table.batches())?;
            take_record_batch(&rows, &UInt32Array::from(places))
        };
        let rows = self.source.cpu.run(taking).await?;
        let rows = rows.map_err(|error| Error::internal("rows cannot be put in order").with_source(error))?;
        Ok(Part { rows, ids })
    }
}

/// The pipeline over rows of an object.
pub(super) fn over(pipeline: &Pipeline, rows: Range<u64>) -> Result<Pipeline> {
    pipeline
        .with_rows(rows)
        .ok_or_else(|| Error::internal("rows are read by `select`"))
}

impl Source {
    /// What a pipeline makes of an object, its first `stage` steps at the gateway.
    pub(super) async fn table(
        &self,
        object: usize,
        pipeline: &Pipeline,
        stage: usize,
        epoch: u32,
    ) -> Result<Table> {
        let table = if stage == 0 {
            self.here(object, pipeline, epoch).await?
        } else {
            self.there(object, pipeline, stage, epoch).await?
        };
        add(&self.counters.value_bytes, table.bytes());
        if stage == 0 || stage == pipeline.len() {
            return Ok(table);
        }
        let (pipeline, key) = (pipeline.clone(), Arc::clone(&self.objects[object].key));
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
        let made = self.cpu.run(suffix).await?;
        match made.map_err(|error| self.tables[object].fault(error))? {
            Sample::Table(table) => Ok(table),
            other => Err(Error::internal(format!("rows became {}", Kind::from(&other)))),
        }
    }

    async fn there(&self, object: usize, pipeline: &Pipeline, stage: usize, epoch: u32) -> Result<Table> {
        let stage = u8::try_from(stage).map_err(|_| Error::internal("a stage beyond a pipeline's end"))?;
        let form = TableForm::ArrowStream(self.compression);
        let what = GetValue {
            pipeline,
            split: Split::At(stage),
            seed: self.seed,
            epoch: Some(epoch),
            accept: Some(form.accept()),
        };
        let key = &self.objects[object].key;
        let value = self
            .store
            .get_value(&self.bucket, key, &what, &self.limits)
            .await?;
        if !self.tables[object].may_be(value.headers.get(SOURCE_ETAG)) {
            return Err(self.replaced(object, "found another ETag"));
        }
        let limits = self.limits;
        match self.cpu.run(move || value.decode(&limits)).await?? {
            Sample::Table(table) => Ok(table),
            other => Err(Error::protocol(format!(
                "the gateway answered a table with {}",
                Kind::from(&other)
            ))),
        }
    }

    /// The same here, over the parts of the object that it takes.
    #[expect(
        clippy::disallowed_methods,
        reason = "a scan computes and waits by turns: it needs a thread, and a runtime"
    )]
    async fn here(&self, object: usize, pipeline: &Pipeline, epoch: u32) -> Result<Table> {
        let (table, pipeline) = (self.tables[object].clone(), pipeline.clone());
        let (seed, limit, runtime) = (self.seed, self.limits.max_value_bytes, Handle::current());
        let scanning = async move {
            let mut scan = table.scan(&pipeline, seed, epoch).await?;
            let mut rows = TableBuilder::new(SchemaRef::clone(scan.schema()), limit);
            while let Some(batch) = scan.next().await {
                let pushed = batch.and_then(|batch| rows.push(batch));
                pushed.map_err(|error| table.fault(error))?;
            }
            Ok(rows.build())
        };
        let scanned = tokio::task::spawn_blocking(move || runtime.block_on(scanning)).await;
        scanned.map_err(|error| Error::internal("a scan failed").with_source(error))?
    }

    /// The error of an object that is not what it was.
    pub(super) fn replaced(&self, object: usize, found: &str) -> Error {
        let key = &self.objects[object].key;
        let text = format!(
            "s3://{}/{key} was replaced while it was read: {found}; build the reader again",
            self.bucket
        );
        Error::new(ErrorKind::Sample, text)
    }
}
