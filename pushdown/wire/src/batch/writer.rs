//! Writes rows to an Arrow IPC stream.

use std::{fmt, sync::Arc};

use arrow_array::{
    ArrayRef, Float32Array, LargeBinaryArray, RecordBatch, StringArray, UInt8Array, UInt32Array,
};
use arrow_ipc::{
    CompressionType,
    writer::{IpcWriteOptions, StreamEncoder},
};
use arrow_schema::SchemaRef;
use bytes::Bytes;

use super::{
    CacheStatus, Compression, Row, column, crops,
    schema::{MAX_ROWS, OptionalColumns, ValueType},
};
use crate::ipc;
use pushdown_core::{Engine, Error, Result, Sample, language::Digest};

/// Maximum value bytes of a record batch with several rows. Small rows share the header of a message, which has hundreds of bytes;
/// a large row has a record batch of its own, since joining rows copies them.
const MAX_BATCH_BYTES: usize = 64 << 10;
/// Maximum length of the text of an error; longer texts are truncated.
const MAX_ERROR_BYTES: usize = 4 << 10;
/// Maximum length of the error texts of a record batch, which keeps the decompressed size at the reader small.
const MAX_BATCH_ERROR_BYTES: usize = 64 << 10;

/// Writes a batch answer. A record batch has either successful or failed rows, so that values are converted without
/// copies.
///
/// A failed row of a fixed-shape column is as large as a successful one, and consists of zeros. Record batches of such rows
/// are always LZ4-compressed; other record batches on request.
pub struct BatchWriter {
    value_type: ValueType,
    schema: SchemaRef,
    compression: Compression,
    /// Whether rows have the column `cache`.
    cache_column: bool,
    /// Whether rows have the columns about cropped JPEGs.
    crop_columns: bool,
    /// Whether rows have the column `stored`, and no values.
    stored_column: bool,
    /// Number of further columns.
    further_columns: usize,
    start: Bytes,
    plain: StreamEncoder,
    lz4: StreamEncoder,
}

impl BatchWriter {
    /// A writer of values of `value_type` that `engine` computes, for an answer to the pipeline with the digest `pipeline`, with these
    /// `columns` after the common ones. An answer without values has bytes of none, whatever `value_type` is.
    ///
    /// # Errors
    /// [`Internal`](pushdown_core::ErrorKind::Internal) for a bug.
    pub fn new(
        value_type: ValueType,
        compression: Compression,
        engine: &Engine,
        pipeline: &Digest,
        columns: OptionalColumns<'_>,
    ) -> Result<Self> {
        let value_type = if columns.stored {
            ValueType::Bytes
        } else {
            value_type
        };
        let schema = Arc::new(value_type.schema(engine, pipeline, columns)?);
        let options = IpcWriteOptions::default();
        let compressed = options
            .clone()
            .try_with_compression(Some(CompressionType::LZ4_FRAME))
            .map_err(ipc::internal)?;
        let (plain, start) = encoder(&schema, options)?;
        let (lz4, _) = encoder(&schema, compressed)?;
        Ok(Self {
            value_type,
            schema,
            compression,
            cache_column: columns.cache,
            crop_columns: columns.crops,
            stored_column: columns.stored,
            further_columns: columns.further.len(),
            start,
            plain,
            lz4,
        })
    }

    /// The start of the stream: the schema. It can be sent before the first row.
    pub fn start(&self) -> Bytes {
        self.start.clone()
    }

    /// Whether [`rows`](Self::rows) copies a value of this size, to join or to compress it.
    pub fn is_copied(&self, value_bytes: u64) -> bool {
        let max_bytes = if self.compression == Compression::None {
            MAX_BATCH_BYTES
        } else {
            ipc::MAX_COMPRESSED_BYTES
        };
        value_bytes <= max_bytes as u64
    }

    /// The same rows as [`rows`](Self::rows) without copies of their values: each in a record batch of its own, not
    /// compressed. Only values as short as the head of a message are joined with it.
    ///
    /// # Errors
    /// As [`rows`](Self::rows).
    pub fn rows_apart(&mut self, rows: Vec<Row>) -> Result<Vec<Bytes>> {
        let compression = std::mem::replace(&mut self.compression, Compression::None);
        let parts: Result<Vec<_>> = rows.into_iter().map(|row| self.rows(vec![row])).collect();
        self.compression = compression;
        parts.map(|parts| parts.concat())
    }

    /// The next rows of the stream.
    ///
    /// # Errors
    /// [`Internal`](pushdown_core::ErrorKind::Internal) for a value of another type.
    pub fn rows(&mut self, rows: Vec<Row>) -> Result<Vec<Bytes>> {
        let failed_row_bytes = column::failed_row_bytes(&self.value_type);
        let mut parts = Vec::new();
        let mut group = RowGroup::default();
        for Row {
            row,
            stage,
            seconds,
            cache,
            value,
            columns,
            stored,
        } in rows
        {
            let value = value.map_err(|error| {
                let mut text = error.to_string();
                text.truncate(text.floor_char_boundary(MAX_ERROR_BYTES));
                text
            });
            let column_bytes: usize = columns.iter().flatten().map(Bytes::len).sum();
            let (value_bytes, error_bytes) = match &value {
                Ok(sample) => {
                    let bytes = usize::try_from(sample.bytes()).unwrap_or(usize::MAX);
                    (bytes.saturating_add(column_bytes), 0)
                }
                Err(text) => (failed_row_bytes, text.len()),
            };
            if !group.has_space(value.is_ok(), value_bytes, error_bytes) {
                self.write(std::mem::take(&mut group), &mut parts)?;
            }
            group.push(row, stage, seconds, cache, value);
            group.columns.push(columns);
            group.stored.push(u8::from(stored == Some(true)));
            group.value_bytes = group.value_bytes.saturating_add(value_bytes);
            group.error_bytes += error_bytes;
        }
        self.write(group, &mut parts)?;
        Ok(parts)
    }

    /// The end of the stream. An answer without it is truncated.
    ///
    /// # Errors
    /// [`Internal`](pushdown_core::ErrorKind::Internal) for a bug.
    pub fn finish(self) -> Result<Bytes> {
        let end = self.plain.finish().map_err(ipc::internal)?;
        Ok(end.iter().flat_map(|buffer| buffer.iter().copied()).collect())
    }

    fn write(&mut self, group: RowGroup, parts: &mut Vec<Bytes>) -> Result<()> {
        let RowGroup {
            rows,
            stages,
            seconds,
            cache,
            samples,
            errors,
            columns: further,
            stored,
            value_bytes,
            ..
        } = group;
        if rows.is_empty() {
            return Ok(());
        }
        let is_failed = samples.is_empty();
        let error_column = if is_failed {
            StringArray::from(errors)
        } else {
            StringArray::new_null(rows.len())
        };
        let positions: Vec<_> = if is_failed {
            vec![None; rows.len()]
        } else {
            samples.iter().map(crops::position).collect()
        };
        if self.stored_column && value_bytes > 0 {
            return Err(Error::internal("a value for which nobody has asked"));
        }
        let values = if is_failed || self.stored_column {
            column::rows_without_values(&self.value_type, rows.len())?
        } else {
            column::successful_rows(&self.value_type, samples)?
        };
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(UInt32Array::from(rows)),
            Arc::new(UInt8Array::from(stages)),
            Arc::new(error_column),
            Arc::new(Float32Array::from(seconds)),
        ];
        columns.extend(values);
        if self.cache_column {
            columns.push(Arc::new(UInt8Array::from(cache)));
        }
        if self.crop_columns {
            columns.extend(crops::columns(&positions));
        } else if positions.iter().any(Option::is_some) {
            return Err(Error::internal("a cropped JPEG for which nobody has asked"));
        }
        if self.stored_column {
            columns.push(Arc::new(UInt8Array::from(stored)));
        }
        columns.extend((0..self.further_columns).map(|index| {
            let contents = further.iter().map(|row| row.get(index)?.as_ref());
            Arc::new(contents.collect::<LargeBinaryArray>()) as ArrayRef
        }));
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(ipc::internal)?;
        // A reader refuses larger compressed buffers. Those of failed rows compress to less, and the reader does not decode them.
        let is_requested = self.compression != Compression::None && value_bytes <= ipc::MAX_COMPRESSED_BYTES;
        let is_compressed = is_requested || is_failed && column::failed_row_bytes(&self.value_type) > 0;
        let encoder = if is_compressed {
            &mut self.lz4
        } else {
            &mut self.plain
        };
        parts.extend(ipc::parts(encoder.encode(&batch).map_err(ipc::internal)?));
        Ok(())
    }
}

impl fmt::Debug for BatchWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchWriter")
            .field("value_type", &self.value_type)
            .finish_non_exhaustive()
    }
}

/// Rows for one record batch.
#[derive(Default)]
struct RowGroup {
    rows: Vec<u32>,
    stages: Vec<u8>,
    seconds: Vec<f32>,
    /// The numbers of the [`CacheStatus`] of each row.
    cache: Vec<u8>,
    samples: Vec<Sample>,
    errors: Vec<String>,
    /// 1 for a row whose value is in the result cache, else 0.
    stored: Vec<u8>,
    /// The further columns of each row.
    columns: Vec<Vec<Option<Bytes>>>,
    /// Bytes in the column `value`, and in the further columns.
    value_bytes: usize,
    /// Bytes in the column `error`.
    error_bytes: usize,
}

impl RowGroup {
    /// Whether a row of this size can be added.
    fn has_space(&self, is_successful: bool, value_bytes: usize, error_bytes: usize) -> bool {
        let is_same_kind = if is_successful {
            self.errors.is_empty()
        } else {
            self.samples.is_empty()
        };
        let fits = self.value_bytes.saturating_add(value_bytes) <= MAX_BATCH_BYTES
            && self.error_bytes + error_bytes <= MAX_BATCH_ERROR_BYTES;
        self.rows.is_empty() || (is_same_kind && fits && self.rows.len() < MAX_ROWS)
    }

    fn push(&mut self, row: u32, stage: u8, seconds: f32, cache: CacheStatus, value: Result<Sample, String>) {
        self.rows.push(row);
        self.stages.push(stage);
        self.seconds.push(seconds);
        self.cache.push(cache as u8);
        match value {
            Ok(sample) => self.samples.push(sample),
            Err(text) => self.errors.push(text),
        }
    }
}

/// An encoder that has written its schema, and the bytes of the schema. Arrow writes the schema with the first record batch, so
/// this encodes an empty one, which is not sent.
fn encoder(schema: &SchemaRef, options: IpcWriteOptions) -> Result<(StreamEncoder, Bytes)> {
    let mut encoder = StreamEncoder::try_new_with_options(schema, options).map_err(ipc::internal)?;
    let buffers = encoder
        .encode(&RecordBatch::new_empty(Arc::clone(schema)))
        .map_err(ipc::internal)?;
    let mut start: Vec<u8> = buffers.iter().flat_map(|buffer| buffer.iter().copied()).collect();
    start.truncate(ipc::first_message(&start));
    Ok((encoder, start.into()))
}
