//! The destination of rows: stdout, or a file.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::PathBuf,
};

use arrow_array::RecordBatch;
use pushdown::wire::TableEncoder;

use super::Get;

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

/// The destination of rows. The file is created with the first of them.
pub(super) enum Output {
    Stdout(io::Stdout),
    File(PathBuf, Option<BufWriter<File>>),
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::File(_, Some(file)) => file.write(bytes),
            Self::File(path, file) => file.insert(BufWriter::new(File::create(path)?)).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::File(_, Some(file)) => file.flush(),
            // Without any rows: create the file, in place of an old one.
            Self::File(path, file) => file.insert(BufWriter::new(File::create(path)?)).flush(),
        }
    }
}
