//! Rows to an Arrow IPC stream.

use std::{fmt, sync::Arc};

use arrow_array::{ArrayRef, Float32Array, RecordBatch, StringArray, UInt8Array, UInt32Array};
use arrow_ipc::{
    CompressionType,
    writer::{IpcWriteOptions, StreamEncoder},
};
use arrow_schema::SchemaRef;
use bytes::Bytes;

use super::{
    Compression, Row, column,
    schema::{MAX_ROWS, ValueType},
};
use crate::{Pipeline, Result, Sample, wire::ipc};

/// What a record batch has in value bytes at most, unless a single row has more. Small rows share the frame, which has
/// hundreds of bytes; a large one has a record batch of its own, since joining two would copy both.
const BATCH_BYTES: usize = 64 << 10;
/// The longest text of an error, in bytes; the rest is cut off.
const ERROR_BYTES: usize = 4 << 10;
/// What a record batch has in texts of errors at most. A reader inflates no more than a few hundred KiB of them.
const ERRORS_BYTES: usize = 64 << 10;

/// Writes a batch answer. A record batch holds only good rows or only failed ones, so that good ones convert
/// without copies.
///
/// A failed row of a fixed-shape column takes as much room as a good one, which is a lot of zeros: record batches
/// of such rows are LZ4-compressed, others where that is asked for.
pub struct BatchWriter {
    value_type: ValueType,
    schema: SchemaRef,
    compression: Compression,
    start: Bytes,
    plain: StreamEncoder,
    lz4: StreamEncoder,
}

impl BatchWriter {
    /// A writer of values of `value_type`, for an answer to `pipeline`.
    ///
    /// # Errors
    /// [`Internal`](crate::ErrorKind::Internal), for a defect.
    pub fn new(value_type: ValueType, compression: Compression, pipeline: &Pipeline) -> Result<Self> {
        let schema = Arc::new(value_type.schema(pipeline)?);
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
            start,
            plain,
            lz4,
        })
    }

    /// The start of the stream: the schema. It can be sent before any row is ready.
    pub fn start(&self) -> Bytes {
        self.start.clone()
    }

    /// The next rows of the stream.
    ///
    /// # Errors
    /// [`Internal`](crate::ErrorKind::Internal) for a value that is not of the writer's type.
    pub fn rows(&mut self, rows: Vec<Row>) -> Result<Vec<Bytes>> {
        let filler = column::filler(&self.value_type);
        let mut parts = Vec::new();
        let mut group = Group::default();
        for Row {
            row,
            stage,
            seconds,
            value,
        } in rows
        {
            let value = value.map_err(|error| {
                let mut text = error.to_string();
                text.truncate(text.floor_char_boundary(ERROR_BYTES));
                text
            });
            let (bytes, text) = match &value {
                Ok(sample) => (usize::try_from(sample.bytes()).unwrap_or(usize::MAX), 0),
                Err(text) => (filler, text.len()),
            };
            if !group.takes(value.is_ok(), bytes, text) {
                self.write(std::mem::take(&mut group), &mut parts)?;
            }
            group.push(row, stage, seconds, value);
            group.bytes = group.bytes.saturating_add(bytes);
            group.texts += text;
        }
        self.write(group, &mut parts)?;
        Ok(parts)
    }

    /// The end of the stream. An answer without it is cut off.
    ///
    /// # Errors
    /// [`Internal`](crate::ErrorKind::Internal), for a defect.
    pub fn finish(self) -> Result<Bytes> {
        let end = self.plain.finish().map_err(ipc::internal)?;
        Ok(end.iter().flat_map(|buffer| buffer.iter().copied()).collect())
    }

    fn write(&mut self, group: Group, parts: &mut Vec<Bytes>) -> Result<()> {
        let Group {
            rows,
            stages,
            seconds,
            samples,
            errors,
            bytes,
            ..
        } = group;
        if rows.is_empty() {
            return Ok(());
        }
        let failed = samples.is_empty();
        let texts = if failed {
            StringArray::from(errors)
        } else {
            StringArray::new_null(rows.len())
        };
        let values = if failed {
            column::failed(&self.value_type, rows.len())?
        } else {
            column::good(&self.value_type, samples)?
        };
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(UInt32Array::from(rows)),
            Arc::new(UInt8Array::from(stages)),
            Arc::new(texts),
            Arc::new(Float32Array::from(seconds)),
        ];
        columns.extend(values);
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(ipc::internal)?;
        // A reader inflates no more at once; of zeros it does not have to.
        let asked = self.compression != Compression::None && bytes <= ipc::MAX_COMPRESSED;
        let compressed = asked || failed && column::filler(&self.value_type) > 0;
        let encoder = if compressed {
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

/// Rows that will be a record batch.
#[derive(Default)]
struct Group {
    rows: Vec<u32>,
    stages: Vec<u8>,
    seconds: Vec<f32>,
    samples: Vec<Sample>,
    errors: Vec<String>,
    /// Bytes in the column `value`.
    bytes: usize,
    /// Bytes in the column `error`.
    texts: usize,
}

impl Group {
    /// Whether a row, good or failed, of so many bytes may join.
    fn takes(&self, good: bool, bytes: usize, text: usize) -> bool {
        let alike = if good {
            self.errors.is_empty()
        } else {
            self.samples.is_empty()
        };
        let small = self.bytes.saturating_add(bytes) <= BATCH_BYTES && self.texts + text <= ERRORS_BYTES;
        self.rows.is_empty() || (alike && small && self.rows.len() < MAX_ROWS)
    }

    fn push(&mut self, row: u32, stage: u8, seconds: f32, value: Result<Sample, String>) {
        self.rows.push(row);
        self.stages.push(stage);
        self.seconds.push(seconds);
        match value {
            Ok(sample) => self.samples.push(sample),
            Err(text) => self.errors.push(text),
        }
    }
}

/// An encoder that has said its schema, and the bytes of that. It only does so with a first record batch, so that
/// it is given an empty one, which is not sent.
fn encoder(schema: &SchemaRef, options: IpcWriteOptions) -> Result<(StreamEncoder, Bytes)> {
    let mut encoder = StreamEncoder::try_new_with_options(schema, options).map_err(ipc::internal)?;
    let buffers = encoder
        .encode(&RecordBatch::new_empty(Arc::clone(schema)))
        .map_err(ipc::internal)?;
    let mut start: Vec<u8> = buffers.iter().flat_map(|buffer| buffer.iter().copied()).collect();
    start.truncate(ipc::first_message(&start));
    Ok((encoder, start.into()))
}
