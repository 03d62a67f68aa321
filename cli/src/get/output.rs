//! The destination of rows: stdout, or a file.

use std::{
    io::{self, BufWriter, IntoInnerError, IsTerminal as _, Write},
    path::Path,
};

use arrow_array::RecordBatch;
use pushdown::wire::TableEncoder;
use pushdown_client::internal::Draft;

use super::{Get, rows::TableFormat};
use crate::terminal::Printable;

/// Writes rows of one schema to their destination.
pub(super) struct RowWriter<'a> {
    pub(super) get: &'a Get,
    pub(super) encoder: TableEncoder,
    pub(super) out: &'a mut Output,
}

impl RowWriter<'_> {
    pub(super) fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        let pieces = self.encoder.write(batch)?;
        let mut pieces = pieces.iter();
        pieces.try_for_each(|piece| self.get.write_all(self.out, piece))
    }

    pub(super) fn finish(self) -> anyhow::Result<()> {
        let pieces = self.encoder.finish()?;
        let mut pieces = pieces.iter();
        pieces.try_for_each(|piece| self.get.write_all(self.out, piece))
    }
}

/// The destination of rows.
pub(super) enum Output {
    Stdout(Box<dyn Write>),
    File(BufWriter<Draft>),
}

impl Output {
    /// Rows of this format on stdout. Files and other programs receive their exact bytes; on a terminal, control characters are escaped.
    pub(super) fn stdout(format: TableFormat) -> Self {
        let out = io::stdout();
        Self::Stdout(match format {
            _ if !out.is_terminal() => Box::new(out),
            TableFormat::Ndjson => Box::new(Printable::json(out)),
            TableFormat::Csv | TableFormat::Arrow | TableFormat::Parquet => Box::new(Printable::text(out)),
        })
    }

    /// A file, which is complete as soon as it exists.
    pub(super) fn file(path: &Path) -> io::Result<Self> {
        Ok(Self::File(BufWriter::new(Draft::create(path)?)))
    }

    /// Ends the rows.
    pub(super) fn finish(self) -> io::Result<()> {
        match self {
            Self::Stdout(mut out) => out.flush(),
            Self::File(file) => file.into_inner().map_err(IntoInnerError::into_error)?.finish(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::File(file) => file.flush(),
        }
    }
}
