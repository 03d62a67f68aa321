//! Builds a reader of rows from its settings.

use pushdown::available_engine;

use super::{PushdownReaderBuilder, applies::SampleKind, open::OpenedDataSet};
use crate::{
    cpu::CpuPool,
    error::{Error, Result},
    planning::Mode,
    stats::Counters,
    units::rows::{Footers, RowsRead, TableReader, TableSettings, TableSource},
};

impl PushdownReaderBuilder {
    /// The footers that an earlier reader of rows [has read](TableReader::footers), so that they are not requested again. Without effect if
    /// the objects are others. Default: none.
    pub fn footers(mut self, known: Footers) -> Self {
        self.footers = Some(known);
        self
    }

    /// A reader whose samples are the rows of Parquet objects. Checks the settings, lists the prefix, reads footers, and
    /// evaluates the condition.
    ///
    /// The pipeline is a `select`, with or without a condition, and any number of `each` after it. If the split is left to
    /// the reader, it compares sizes by the footers: rows are requested from the gateway at the stage with the fewest bytes, which
    /// may be inside of an `each`, if they have fewer bytes than their stored columns; otherwise the columns are read by ranges, and
    /// all steps run on this host. In [`Mode::Auto`](crate::reader::Mode::Auto) they do so at an endpoint that is no gateway, too. The end of
    /// each object, up to 64 KiB, stays in memory.
    ///
    /// [`value_cache`](Self::value_cache), [`on_error`](Self::on_error) and [`max_expand`](Self::max_expand) do not apply: a
    /// value that fails in `each` is null with its error in another column, and an object that cannot be read ends the
    /// stream. [`start_position`](Self::start_position) and [`worker`](Self::worker) are refused, since ranks keep contiguous
    /// stretches of rows: [`rows_read`](Self::rows_read) resumes in any world. So is [`Tail::Pad`](crate::reader::Tail::Pad), since no row of
    /// a batch is padding, and an [`order`](Self::order) of shards. Rows that the other policies drop are the last ones of stretches.
    ///
    /// # Errors
    /// As [`build`](Self::build); [`ErrorKind::Config`](crate::ErrorKind) for these settings, an invalid
    /// [`rows_read`](Self::rows_read), or a pipeline that does not map each row to one row;
    /// [`ErrorKind::Sample`](crate::ErrorKind) for an object that is not Parquet, or whose columns differ from the first object's.
    pub async fn build_table(mut self) -> Result<TableReader> {
        self.check_applies(SampleKind::Rows)?;
        let rows_read = RowsRead::merge(&self.spec.rows_read)?;
        let cpu = CpuPool::build(self.spec.threads, self.spec.local_ranks)?;
        let OpenedDataSet {
            plan,
            store,
            pipeline,
            objects,
        } = self.open(SampleKind::Rows).await?;
        if objects.has_members() {
            return Err(Error::config(
                "a reader of rows reads whole objects: found a list with members of shards",
            ));
        }
        let engine = match self.spec.mode {
            Mode::Auto => {
                let steps = pipeline.clone();
                Some(cpu.run(move || available_engine(steps.steps())).await?)
            }
            Mode::Pushdown | Mode::Plain => None,
        };
        let footers = self.footers.as_ref();
        let tables = objects.iter().enumerate().map(|(index, object)| {
            let end = footers.and_then(|footers| footers.end(&objects, index));
            store.table_with_end(objects.bucket(), object.key, &self.limits, end)
        });
        let source = TableSource {
            tables: tables.collect(),
            store,
            objects,
            seed: self.spec.seed,
            compression: self.spec.compression,
            engine,
            limits: self.limits,
            cpu,
            counters: Counters::default(),
        };
        let settings = TableSettings {
            pipeline,
            mode: self.spec.mode,
            split: self.spec.split,
            plan,
            rows_read,
            gets: self.spec.gets,
            observations: self.observations,
        };
        TableReader::open(source, settings).await
    }
}
