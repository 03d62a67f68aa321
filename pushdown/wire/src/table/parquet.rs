//! Tables as Parquet files.

use std::fmt;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use parquet::{
    arrow::ArrowWriter, basic::Compression, errors::ParquetError, file::properties::WriterProperties,
};

use super::sink::Sink;
use pushdown_core::{Error, Result};

/// Maximum number of rows of a row group.
const GROUP_ROWS: usize = 128 * 1024;
/// Encoded bytes that end a row group: the size of the buffer of the encoder.
pub(super) const GROUP_BYTES: usize = 16 << 20;

/// Encodes a file.
pub(super) struct Encoder {
    writer: ArrowWriter<Sink>,
    sink: Sink,
}

impl Encoder {
    pub(super) fn new(schema: &SchemaRef) -> Result<Self> {
        let sink = Sink::default();
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .build();
        let writer = ArrowWriter::try_new(sink.clone(), SchemaRef::clone(schema), Some(properties));
        Ok(Self {
            writer: writer.map_err(unwritable)?,
            sink,
        })
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<Vec<Bytes>> {
        self.writer.write(batch).map_err(unwritable)?;
        if self.writer.in_progress_size() > GROUP_BYTES {
            self.writer.flush().map_err(unwritable)?;
        }
        Ok(self.sink.take())
    }

    pub(super) fn finish(self) -> Result<Vec<Bytes>> {
        self.writer.close().map_err(unwritable)?;
        Ok(self.sink.take())
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Encoder")
    }
}

#[expect(clippy::needless_pass_by_value, reason = "required by map_err")]
fn unwritable(error: ParquetError) -> Error {
    Error::wire(format!("the table cannot be encoded as Parquet: {error}"))
}
