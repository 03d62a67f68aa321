//! Builds a reader of rows from its settings.

use super::{PushdownReaderBuilder, open::OpenedDataSet};
use crate::{
    cpu::CpuPool,
    error::{Error, Result},
    order::Tail,
    stats::Counters,
    table::{TableReader, TableSettings, TableSource},
};

impl PushdownReaderBuilder {
    /// A reader whose samples are the rows of Parquet objects. Checks the settings, lists the prefix, reads footers, and
    /// evaluates the condition.
    ///
    /// The pipeline is a `select`, with or without a condition, and any number of `each` after it. If the split is left to
    /// the reader, it compares sizes by the footers: rows are requested from the gateway if they have fewer bytes than their
    /// stored columns; otherwise the columns are read by ranges, and all steps run on this host. The end of each object, up
    /// to 64 KiB, stays in memory.
    ///
    /// [`value_cache`](Self::value_cache), [`on_error`](Self::on_error) and [`max_expand`](Self::max_expand) do not apply: a
    /// value that fails in `each` is null with its error in another column, and an object that cannot be read ends the
    /// stream. [`start_position`](Self::start_position), [`tail`](Self::tail) and [`every`](Self::every) are refused: ranks keep
    /// contiguous stretches of rows.
    ///
    /// # Errors
    /// As [`build`](Self::build); [`ErrorKind::Config`](crate::ErrorKind) for a pipeline that does not map each row to one
    /// row; [`ErrorKind::Sample`](crate::ErrorKind) for an object that is not Parquet, or whose columns differ from the first
    /// object's.
    pub async fn build_table(mut self) -> Result<TableReader> {
        if self.start_position != 0 || self.tail != Tail::Short || self.stride != (1, 0) {
            return Err(Error::config(
                "start_position, tail and every apply to readers of objects, not of rows: resume with start_at",
            ));
        }
        let cpu = CpuPool::build(self.threads, self.local_ranks)?;
        let OpenedDataSet {
            plan,
            bucket,
            store,
            pipeline,
            objects,
        } = self.open().await?;
        let tables = objects
            .iter()
            .map(|object| store.table(&bucket, &object.key, &self.limits));
        let source = TableSource {
            tables: tables.collect(),
            store,
            bucket,
            objects,
            seed: self.seed,
            compression: self.compression,
            limits: self.limits,
            cpu,
            counters: Counters::default(),
        };
        let settings = TableSettings {
            pipeline,
            mode: self.mode,
            split: self.split,
            plan,
            gets: self.gets,
        };
        TableReader::open(source, settings).await
    }
}
