//! The rows of a table, to a file or to the terminal, as they come.

use std::{
    fs,
    io::{self, IsTerminal as _, Write as _},
};

use arrow_schema::SchemaRef;
use bytes::Bytes;
use clap::ValueEnum;
use futures::StreamExt as _;
use pushdown::{
    BytesKind, Limits, Pipeline, Scan,
    wire::{Split, TableEncoder, TableForm},
};
use pushdown_client::{Store, StoredTable, TableRows, ValueStream};

use super::{
    Get,
    accept::Accept,
    binary,
    ending::{Named, Written},
    out::{Out, Rows},
};
use crate::{connection::Randomness, fault::Usage, location::Location};

/// A form of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// An Arrow IPC stream
    Arrow,
    /// Apache Parquet
    Parquet,
    /// Comma-separated values with a header line
    Csv,
    /// A JSON object on each line
    Ndjson,
}

impl Format {
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

    /// As it stands on the command line.
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
    /// Writes the rows that the gateway makes of the object, or of all under a prefix, or this side where the gateway shall
    /// not.
    pub(super) async fn rows(&self, pipeline: &Pipeline) -> anyhow::Result<()> {
        let format = self.format_of_rows()?;
        self.stage(pipeline, &BytesKind::default())?;
        let store = self.connection.store().build().await;
        let store = store.map_err(|error| self.fault(error))?;
        let mut out = if self.to_stdout() {
            Out::Stdout(io::stdout())
        } else {
            Out::File(self.output.clone(), None)
        };
        let written = if self.is_prefix() || self.key_column {
            self.several_to(&store, pipeline, format, &mut out).await
        } else {
            self.rows_to(&store, pipeline, format, &mut out).await
        };
        let written = written.and_then(|()| Ok(out.flush()?));
        if let (Err(_), Out::File(path, Some(_))) = (&written, &out) {
            // Half a table must not look like one.
            drop(fs::remove_file(path));
        }
        written
    }

    /// Rows come from where they are there sooner, unless it is said where.
    async fn rows_to(
        &self,
        store: &Store,
        pipeline: &Pipeline,
        format: Format,
        out: &mut Out,
    ) -> anyhow::Result<()> {
        let Location { bucket, key } = &self.object;
        let table = store.table(bucket, key, &Limits::default());
        let here = self.plain || self.split == Split::At(0);
        if !here && self.split != Split::Smallest {
            return self.rows_of_the_gateway(store, pipeline, format, out).await;
        }
        let Randomness { seed, epoch } = self.randomness;
        if here {
            let scan = table.scan(pipeline, seed, epoch).await;
            let scan = scan.map_err(|error| self.fault(error))?;
            return self.rows_here(&table, scan, format, out).await;
        }
        let rows = table.rows(pipeline, seed, epoch).await;
        let rows = rows.map_err(|error| self.fault(error))?;
        self.rows_sooner(rows, format, out).await
    }

    /// Rows from where they are there sooner.
    pub(super) async fn rows_sooner(
        &self,
        mut from: TableRows,
        format: Format,
        out: &mut Out,
    ) -> anyhow::Result<()> {
        let mut rows = self.rows_into(format, from.schema(), out)?;
        while let Some(batch) = from.next().await.map_err(|error| self.fault(error))? {
            rows.write(&batch)?;
        }
        rows.finish()
    }

    async fn rows_of_the_gateway(
        &self,
        store: &Store,
        pipeline: &Pipeline,
        format: Format,
        out: &mut Out,
    ) -> anyhow::Result<()> {
        let Location { bucket, key } = &self.object;
        let what = self.what(pipeline, Some(format.content_type()));
        let value = store.stream_value(bucket, key, &what).await;
        self.write_value(value.map_err(|error| self.fault(error))?, out)
            .await
    }

    /// Writes what the gateway answers, as it comes.
    pub(super) async fn write_value(&self, mut value: ValueStream, out: &mut Out) -> anyhow::Result<()> {
        let mut bytes = 0;
        while let Some(piece) = value.next().await.map_err(|error| self.fault(error))? {
            bytes += piece.len();
            self.write_all(out, &piece)?;
        }
        tracing::info!(stage = value.stage, bytes, form = value.content_type, "got");
        Ok(())
    }

    /// The same step here, over the parts of the object that it takes.
    async fn rows_here(
        &self,
        table: &StoredTable,
        mut scan: Scan,
        format: Format,
        out: &mut Out,
    ) -> anyhow::Result<()> {
        let mut rows = self.rows_into(format, scan.schema(), out)?;
        while let Some(batch) = scan.next().await {
            rows.write(&batch.map_err(|error| self.fault(table.fault(error)))?)?;
        }
        rows.finish()?;
        tracing::info!(estimate = ?scan.estimate(), "read");
        Ok(())
    }

    /// What writes rows in a format.
    pub(super) fn rows_into<'a>(
        &'a self,
        format: Format,
        schema: &SchemaRef,
        out: &'a mut Out,
    ) -> anyhow::Result<Rows<'a>> {
        let form = TableForm::negotiate(Some(format.content_type()))
            .ok_or_else(|| Usage(format!("this version writes no {}", format.content_type())))?;
        Ok(Rows {
            get: self,
            encoder: TableEncoder::new(form, schema)?,
            out,
        })
    }

    pub(super) fn write_all(&self, out: &mut Out, piece: &Bytes) -> anyhow::Result<()> {
        match out.write_all(piece) {
            // Whoever reads stdout may have had enough, which `main` knows by the error's kind.
            Err(error) if self.to_stdout() => Err(error.into()),
            Err(error) => Err(self.unwritable(&error)),
            Ok(()) => Ok(()),
        }
    }

    fn format_of_rows(&self) -> anyhow::Result<Format> {
        let terminal = self.to_stdout() && io::stdout().is_terminal();
        let accepted = match self.accept {
            None => None,
            Some(Accept::Arrow) => Some(Format::Arrow),
            Some(_) => {
                return Err(Usage(
                    "the result is a table, found --accept of an array: use --format".to_owned(),
                )
                .into());
            }
        };
        let asked = self.format.or(accepted);
        let named = if self.to_stdout() {
            asked
        } else {
            let Written { form, note } = Named::of(&self.output).rows(asked)?;
            if let Some(note) = note {
                writeln!(io::stderr(), "note: {note}")?;
            }
            form
        };
        let format = named.unwrap_or(if terminal { Format::Csv } else { Format::Arrow });
        if terminal && !format.is_text() {
            return Err(binary().into());
        }
        Ok(format)
    }

    fn unwritable(&self, error: &io::Error) -> anyhow::Error {
        anyhow::anyhow!("cannot write {}: {error}", self.output.display())
    }
}
