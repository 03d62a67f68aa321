//! One array as an Arrow IPC stream: one record batch with one row and one column, `value`.

pub(super) mod tensor;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::writer::StreamEncoder;
use arrow_schema::Schema;
use bytes::Bytes;

use super::{ipc, shape::Shape};
use pushdown_core::{Error, Limits, Result, Sample};

/// Encodes an array.
pub(super) fn encode(shape: &Shape, elements: Buffer) -> Result<Vec<Bytes>> {
    let field = tensor::field(shape)?.with_nullable(false);
    let schema = Arc::new(Schema::new(vec![field]));
    let column = tensor::array(shape, elements, 1, None)?;
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]).map_err(ipc::internal)?;
    let mut encoder = StreamEncoder::try_new(&schema).map_err(ipc::internal)?;
    let mut buffers = encoder.encode(&batch).map_err(ipc::internal)?;
    buffers.extend(encoder.finish().map_err(ipc::internal)?);
    Ok(ipc::parts(buffers))
}

/// Decodes an array.
///
/// # Errors
/// [`InvalidWire`](pushdown_core::ErrorKind::InvalidWire) for a truncated stream, or one that is not one row with one
/// fixed-shape tensor; [`TooLarge`](pushdown_core::ErrorKind::TooLarge) past `limits`.
pub(super) fn decode(body: Bytes, limits: &Limits) -> Result<Sample> {
    let mut batches = ipc::RecordBatchReader::new(body.len() as u64);
    let mut chunk = Buffer::from(body);
    let mut value = None;
    while let Some(batch) = batches.next(&mut chunk)? {
        if value.is_some() || batch.rows() != 1 || batch.schema().fields().len() != 1 {
            return Err(Error::wire(
                "invalid Arrow stream of a value: expected one row of one column",
            ));
        }
        let columns = batch.read(&[0])?;
        let shape = tensor::shape(batch.schema().field(0))?;
        let elements = tensor::elements(columns.column(0), &shape, 0)?;
        value = Some(shape.into_sample(elements, limits)?);
    }
    batches.finish()?;
    value.ok_or_else(|| Error::wire("invalid Arrow stream of a value: expected one row, found none"))
}
