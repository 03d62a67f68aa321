//! Where rows go: the terminal, or a file.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::PathBuf,
};

use arrow_array::RecordBatch;
use pushdown::wire::TableEncoder;

use super::Get;

/// Rows of one schema on their way to where they belong.
pub(super) struct Rows<'a> {
    pub(super) get: &'a Get,
    pub(super) encoder: TableEncoder,
    pub(super) out: &'a mut Out,
}

impl Rows<'_> {
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

/// Where rows go: a file is made for the first of them.
pub(super) enum Out {
    Stdout(io::Stdout),
    File(PathBuf, Option<BufWriter<File>>),
}

impl Write for Out {
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
            // No rows may be no bytes: the file is there all the same, and not what it was.
            Self::File(path, file) => file.insert(BufWriter::new(File::create(path)?)).flush(),
        }
    }
}
