//! From settings to a reader of rows.

use super::{PushdownReaderBuilder, open::Opened};
use crate::{
    cpu::CpuPool,
    error::Result,
    stats::Counters,
    table::{Settings, Source, TableReader},
};

impl PushdownReaderBuilder {
    /// A reader whose samples are the rows of Parquet objects: checks the settings, lists the prefix, reads footers, and
    /// finds out which rows fulfil the condition.
    ///
    /// The pipeline is a `select`, with a condition or without, and any `each` behind it. Where the split is left to the
    /// reader, rows come from the gateway where they take fewer bytes than their columns as they are stored, by the footers;
    /// else the columns are read by ranges, and all steps run here. The end of each object, up to 64 KiB, is kept.
    ///
    /// [`keep`](Self::keep), [`on_error`](Self::on_error) and [`max_expand`](Self::max_expand) do not apply: a value that
    /// fails in `each` is null, with the error beside it, and an object that cannot be read ends the stream.
    ///
    /// # Errors
    /// As [`build`](Self::build); [`ErrorKind::Config`](crate::ErrorKind) for a pipeline that does not make each row of one
    /// row; [`ErrorKind::Sample`](crate::ErrorKind) for an object that is no Parquet, or has other columns than the first.
    pub async fn build_table(mut self) -> Result<TableReader> {
        let cpu = CpuPool::build(self.threads)?;
        let Opened {
            plan,
            bucket,
            store,
            pipeline,
            objects,
        } = self.open().await?;
        let tables = objects
            .iter()
            .map(|object| store.table(&bucket, &object.key, &self.limits));
        let source = Source {
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
        let settings = Settings {
            pipeline,
            mode: self.mode,
            split: self.split,
            plan,
            gets: self.gets,
        };
        TableReader::open(source, settings).await
    }
}
