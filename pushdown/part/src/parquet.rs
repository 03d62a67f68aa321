//! Parts as Parquet files.

mod features;
mod rows;
mod schema;
mod settings;

use std::fmt;

use arrow_schema::SchemaRef;
use bytes::Bytes;
use parquet::{arrow::ArrowWriter, errors::ParquetError, file::metadata::KeyValue};
use pushdown_core::{DType, Error, Result, Sample};

use crate::{
    PartNote, PartRow, PartSpec,
    label::Label,
    notes::{NOTES_KEY, pack},
};
use rows::Rows;
pub(crate) use schema::{ValueColumn, own_columns};

/// Values of a batch that is encoded at once, in bytes. A data page has about that size.
pub(crate) const BATCH_BYTES: usize = 1 << 20;
/// Most rows of a batch.
const BATCH_ROWS: usize = 1024;
/// Values of a row group in bytes. Random access reads one row group.
const GROUP_BYTES: usize = 32 << 20;
/// Most rows of a row group.
const GROUP_ROWS: usize = 16 * 1024;
/// Most bytes of one value or column: a page has at least one, and at most 2 GiB.
const MAX_CELL_BYTES: usize = 1 << 30;

/// Writes the rows of a part to a Parquet file.
pub(crate) struct ParquetPart {
    writer: ArrowWriter<Vec<u8>>,
    /// Rows that are not encoded.
    rows: Rows,
    /// Rows of the open row group that are encoded, and the bytes of their values.
    group_rows: usize,
    group_bytes: usize,
}

/// The most bytes of memory for each element of an array while its batch is encoded, as measured.
pub(crate) const fn encoding_bytes(dtype: DType) -> u64 {
    match dtype {
        DType::F16 => 52,
        DType::I64 => 34,
        DType::U8 | DType::I8 | DType::I32 | DType::Bf16 | DType::F32 => 28,
    }
}

impl ParquetPart {
    pub(crate) fn new(spec: &PartSpec) -> Result<Self> {
        let value = ValueColumn::for_kind(&spec.kind)?;
        let features = features::features(spec, &value)?;
        let schema = schema::schema(spec, &value, &features)?;
        let settings = settings::settings(spec, &value, &features)?;
        let rows = Rows::new(spec, value, SchemaRef::clone(&schema));
        Ok(Self {
            writer: ArrowWriter::try_new(Vec::new(), schema, Some(settings)).map_err(unwritable)?,
            rows,
            group_rows: 0,
            group_bytes: 0,
        })
    }

    /// Adds a row, and encodes a batch if it is full.
    pub(crate) fn push(&mut self, name: &str, label: Option<&Label>, row: &PartRow<'_>) -> Result<()> {
        let value = match row.value {
            Sample::Bytes(bytes) => bytes.len(),
            // Checked for all rows: they have one shape.
            _ => 0,
        };
        let cells = row.columns.iter().flatten().map(Bytes::len);
        if let Some(bytes) = cells.chain([value]).find(|bytes| *bytes > MAX_CELL_BYTES) {
            return Err(Error::too_large(format!(
                "cannot write sample {name:?} to Parquet: expected values and columns of at most {MAX_CELL_BYTES} bytes, found {bytes}"
            )));
        }
        self.rows.push(name, label, row)?;
        if self.rows.bytes() >= BATCH_BYTES || self.rows.len() >= BATCH_ROWS {
            self.encode()?;
        }
        Ok(())
    }

    pub(crate) fn bytes(&self) -> u64 {
        let encoded = self.writer.bytes_written() + self.writer.in_progress_size();
        (encoded + self.rows.bytes()) as u64
    }

    pub(crate) fn finish(mut self, notes: &[PartNote]) -> Result<Vec<u8>> {
        if self.rows.len() > 0 {
            self.encode()?;
        }
        if !notes.is_empty() {
            let notes = KeyValue::new(NOTES_KEY.to_owned(), pack(&notes)?);
            self.writer.append_key_value_metadata(notes);
        }
        self.writer.into_inner().map_err(unwritable)
    }

    fn encode(&mut self) -> Result<()> {
        self.group_rows += self.rows.len();
        self.group_bytes += self.rows.bytes();
        let batch = self.rows.take()?;
        self.writer.write(&batch).map_err(unwritable)?;
        if self.group_bytes >= GROUP_BYTES || self.group_rows >= GROUP_ROWS {
            self.writer.flush().map_err(unwritable)?;
            (self.group_rows, self.group_bytes) = (0, 0);
        }
        Ok(())
    }
}

impl fmt::Debug for ParquetPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetPart")
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

#[expect(clippy::needless_pass_by_value, reason = "required by map_err")]
fn unwritable(error: ParquetError) -> Error {
    Error::internal(format!("cannot encode the part as Parquet: {error}"))
}
