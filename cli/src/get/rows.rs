//! Streams the rows of a table to a file or to the terminal.

use std::io::{self, IsTerminal as _, Write as _};

use arrow_schema::SchemaRef;
use bytes::Bytes;
use clap::ValueEnum;
use futures::StreamExt as _;
use pushdown::{
    BytesKind, Limits, Pipeline, Scan,
    wire::{Split, TableEncoder, TableForm},
};
use pushdown_client::store::{Store, StoredTable, TableRows, ValueStream};

use super::{
    Get,
    accept::Accept,
    binary,
    extension::{OutputFile, OutputForm},
    output::{Output, RowWriter},
};
use crate::{connection::Randomness, errors::Usage, location::Location, terminal::write_line};

/// A form of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum TableFormat {
    /// An Arrow IPC stream
    Arrow,
    /// Apache Parquet
    Parquet,
    /// Comma-separated values with a header line
    Csv,
    /// A JSON object on each line
    Ndjson,
}

impl TableFormat {
    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::Arrow => "application/vnd.apache.arrow.stream",
            Self::Parquet => "application/vnd.apache.parquet",
            Self::Csv => "text/csv",
            Self::Ndjson => "application/x-ndjson",
        }
    }

    const fn is_text(self) -> bool {
        matches!(self, Self::Csv | Self::Ndjson)
    }

    /// The name on the command line.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Arrow => "arrow",
            Self::Parquet => "parquet",
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
        }
    }
}

impl Get {
    /// Writes the rows of the object, or of all objects under a prefix, computed by the gateway or on this host.
    pub(super) async fn rows(&self, pipeline: &Pipeline) -> anyhow::Result<()> {
        let format = self.table_format()?;
        self.stage(pipeline, &BytesKind::default())?;
        let store = self.connection.store().build().await;
        let store = store.map_err(|error| self.wrap_error(error))?;
        let mut out = if self.to_stdout() {
            Output::stdout(format)
        } else {
            Output::file(&self.output).map_err(|error| self.unwritable(&error))?
        };
        let written = if self.is_prefix() || self.key_column {
            self.write_tables(&store, pipeline, format, &mut out).await
        } else {
            self.write_table(&store, pipeline, format, &mut out).await
        };
        written?;
        self.written(out.finish())
    }

    /// Writes the rows of one table. Without an explicit split, the client chooses the placement.
    async fn write_table(
        &self,
        store: &Store,
        pipeline: &Pipeline,
        format: TableFormat,
        out: &mut Output,
    ) -> anyhow::Result<()> {
        let Location { bucket, key } = &self.object;
        let table = store.table(bucket, key, &Limits::default());
        let is_local = self.plain || self.split == Split::At(0);
        if !is_local && self.split != Split::Smallest {
            return self.write_remote_rows(store, pipeline, format, out).await;
        }
        let Randomness { seed, epoch } = self.randomness;
        if is_local {
            let scan = table.scan(pipeline, seed, epoch).await;
            let scan = scan.map_err(|error| self.wrap_error(error))?;
            return self.write_local_rows(&table, scan, format, out).await;
        }
        let rows = table.rows(pipeline, seed, epoch).await;
        let rows = rows.map_err(|error| self.wrap_error(error))?;
        self.write_placed_rows(rows, format, out).await
    }

    /// Writes rows from the placement that the client chose.
    pub(super) async fn write_placed_rows(
        &self,
        mut from: TableRows,
        format: TableFormat,
        out: &mut Output,
    ) -> anyhow::Result<()> {
        let mut rows = self.row_writer(format, from.schema(), out)?;
        while let Some(batch) = from.next().await.map_err(|error| self.wrap_error(error))? {
            rows.write(&batch)?;
        }
        rows.finish()
    }

    async fn write_remote_rows(
        &self,
        store: &Store,
        pipeline: &Pipeline,
        format: TableFormat,
        out: &mut Output,
    ) -> anyhow::Result<()> {
        let Location { bucket, key } = &self.object;
        let request = self.request(pipeline, Some(format.content_type()));
        let value = store.stream_value(bucket, key, &request).await;
        self.write_value(value.map_err(|error| self.wrap_error(error))?, out)
            .await
    }

    /// Writes the gateway's answer as it arrives.
    pub(super) async fn write_value(&self, mut value: ValueStream, out: &mut Output) -> anyhow::Result<()> {
        let mut bytes = 0;
        while let Some(piece) = value.next().await.map_err(|error| self.wrap_error(error))? {
            bytes += piece.len();
            self.write_all(out, &piece)?;
        }
        tracing::info!(stage = value.stage, bytes, form = value.content_type, "got");
        Ok(())
    }

    /// Writes rows computed on this host.
    async fn write_local_rows(
        &self,
        table: &StoredTable,
        mut scan: Scan,
        format: TableFormat,
        out: &mut Output,
    ) -> anyhow::Result<()> {
        let mut rows = self.row_writer(format, scan.schema(), out)?;
        while let Some(batch) = scan.next().await {
            rows.write(&batch.map_err(|error| self.wrap_error(table.map_error(error)))?)?;
        }
        rows.finish()?;
        tracing::info!(estimate = ?scan.estimate(), "read");
        Ok(())
    }

    /// A writer of rows in a format.
    pub(super) fn row_writer<'a>(
        &'a self,
        format: TableFormat,
        schema: &SchemaRef,
        out: &'a mut Output,
    ) -> anyhow::Result<RowWriter<'a>> {
        let form = TableForm::negotiate(Some(format.content_type()))
            .ok_or_else(|| Usage(format!("this version cannot write {}", format.content_type())))?;
        Ok(RowWriter {
            get: self,
            encoder: TableEncoder::new(form, schema)?,
            out,
        })
    }

    pub(super) fn write_all(&self, out: &mut Output, piece: &Bytes) -> anyhow::Result<()> {
        self.written(out.write_all(piece))
    }

    fn written(&self, written: io::Result<()>) -> anyhow::Result<()> {
        match written {
            // The reader of stdout may have closed it; `errors::report` recognizes that by the error's kind.
            Err(error) if self.to_stdout() => Err(error.into()),
            Err(error) => Err(self.unwritable(&error)),
            Ok(()) => Ok(()),
        }
    }

    fn table_format(&self) -> anyhow::Result<TableFormat> {
        let terminal = self.to_stdout() && io::stdout().is_terminal();
        let accepted = match self.accept {
            None => None,
            Some(Accept::Arrow) => Some(TableFormat::Arrow),
            Some(_) => {
                return Err(Usage(
                    "found --accept with the form of an array, expected --format: the result is a table"
                        .to_owned(),
                )
                .into());
            }
        };
        let requested = self.format.or(accepted);
        let named = if self.to_stdout() {
            requested
        } else {
            let OutputForm { form, note } = OutputFile::new(&self.output).rows(requested)?;
            if let Some(note) = note {
                write_line(format_args!("note: {note}"))?;
            }
            form
        };
        let format = named.unwrap_or(if terminal {
            TableFormat::Csv
        } else {
            TableFormat::Arrow
        });
        if terminal && !format.is_text() {
            return Err(binary().into());
        }
        Ok(format)
    }

    fn unwritable(&self, error: &io::Error) -> anyhow::Error {
        anyhow::anyhow!("cannot write {}: {error}", self.output.display())
    }
}
