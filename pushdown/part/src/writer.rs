//! Writes a part, whatever its format.

use std::collections::HashSet;

use bytes::Bytes;
use pushdown_core::{Error, Result, Sample};

use crate::{PartFormat, PartNote, PartSpec, label::Label, parquet::ParquetPart, tar::TarPart};

/// A sample of a part.
#[derive(Debug, Clone)]
pub struct PartRow<'a> {
    /// Its position among the names of the part.
    pub index: usize,
    /// Its label, if it has one.
    pub label: Option<&'a Label>,
    /// The contents of its further columns, in the order of [`PartSpec::columns`]; `None` for a column that it lacks.
    pub columns: Vec<Option<Bytes>>,
    /// Its value at the end of the pipeline.
    pub value: &'a Sample,
}

/// Writes one part in memory.
#[derive(Debug)]
pub struct PartWriter {
    spec: PartSpec,
    names: Vec<String>,
    /// The first position that a row may have.
    next: usize,
    part: Part,
}

#[derive(Debug)]
enum Part {
    Tar(TarPart),
    Parquet(Box<ParquetPart>),
}

impl PartWriter {
    /// A writer of the samples with these names, such as keys of objects, in the order of the data set.
    ///
    /// Names of samples that no row follows for, because they cannot be computed, belong to them: the other rows are written as if they
    /// had followed.
    ///
    /// # Errors
    /// As [`PartSpec::check`], and [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for an empty name and for equal ones.
    pub fn new<'a>(spec: PartSpec, names: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        spec.check()?;
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        check_names(&names)?;
        let part = match spec.format {
            PartFormat::Wds => Part::Tar(TarPart::new(&spec, &names)),
            PartFormat::Parquet => Part::Parquet(Box::new(ParquetPart::new(&spec)?)),
        };
        Ok(Self {
            spec,
            names,
            next: 0,
            part,
        })
    }

    /// Writes a row. Rows follow in the order of the names; samples may be left out.
    ///
    /// # Errors
    /// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for a row out of order, for a value of another kind, a label of another
    /// type, another number of columns, and a value whose extension a column of the tar has;
    /// [`TooLarge`](pushdown_core::ErrorKind::TooLarge) for bytes that a page of Parquet cannot hold. The message names the sample.
    /// Nothing is written of it then, and other rows may follow.
    pub fn push(&mut self, row: &PartRow<'_>) -> Result<()> {
        let name = self.names.get(row.index).ok_or_else(|| {
            Error::wire(format!(
                "invalid row: expected the position of one of {} samples, found {}",
                self.names.len(),
                row.index
            ))
        })?;
        if row.index < self.next {
            return Err(Error::wire(format!(
                "invalid row of sample {name:?}: expected a position from {} on, found {}",
                self.next, row.index
            )));
        }
        if row.columns.len() != self.spec.columns.len() {
            return Err(Error::wire(format!(
                "invalid row of sample {name:?}: expected {} further columns, found {}",
                self.spec.columns.len(),
                row.columns.len()
            )));
        }
        self.spec.check_value(name, row.value)?;
        let label = match (&self.spec.label, row.label) {
            (_, None) => None,
            (Some(label_type), Some(label)) => Some(label_type.fit(name, label)?),
            (None, Some(_)) => {
                return Err(Error::wire(format!(
                    "invalid label of sample {name:?}: expected none, as the part has no type of labels, found one"
                )));
            }
        };
        match &mut self.part {
            Part::Tar(tar) => tar.push(&self.spec, name, label.as_deref(), row)?,
            Part::Parquet(parquet) => parquet.push(name, label.as_deref(), row)?,
        }
        self.next = row.index + 1;
        Ok(())
    }

    /// Bytes of the part so far, to compare with a limit. Exact for a tar without notes. For Parquet, rows that are not encoded yet count with the
    /// bytes of their values, pages of the open row group with an estimate, and the footer is left out.
    pub fn bytes(&self) -> u64 {
        match &self.part {
            Part::Tar(tar) => tar.bytes(),
            Part::Parquet(parquet) => parquet.bytes(),
        }
    }

    /// Ends the part, which may have no rows, and returns the whole object, with notes about the samples that it lacks.
    ///
    /// # Errors
    /// [`TooLarge`](pushdown_core::ErrorKind::TooLarge) for more notes than a tar has room for;
    /// [`Internal`](pushdown_core::ErrorKind::Internal) if an encoder fails.
    pub fn finish(self, notes: &[PartNote]) -> Result<Vec<u8>> {
        match self.part {
            Part::Tar(tar) => tar.finish(notes),
            Part::Parquet(parquet) => parquet.finish(notes),
        }
    }
}

fn check_names(names: &[String]) -> Result<()> {
    let mut known = HashSet::new();
    match names
        .iter()
        .find(|name| name.is_empty() || !known.insert(name.as_str()))
    {
        Some(name) if name.is_empty() => Err(Error::wire(
            "invalid names: expected names of samples, found an empty one",
        )),
        Some(name) => Err(Error::wire(format!(
            "invalid names: expected each sample once in a part, found {name:?} twice"
        ))),
        None => Ok(()),
    }
}
