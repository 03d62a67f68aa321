//! Streams that Arrow writes and that are not those of pushdown.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringViewArray};
use arrow_buffer::Buffer;
use arrow_ipc::writer::StreamEncoder;
use arrow_schema::{Field, TimeUnit};

use super::*;
use crate::ipc::RecordBatchReader;

fn stream(schema: &Schema, batches: &[RecordBatch]) -> Buffer {
    let mut encoder = StreamEncoder::try_new(schema).unwrap();
    let mut buffers: Vec<Buffer> = batches
        .iter()
        .flat_map(|batch| encoder.encode(batch).unwrap())
        .collect();
    buffers.extend(encoder.finish().unwrap());
    buffers.iter().flat_map(|buffer| buffer.iter().copied()).collect()
}

fn with_one(data_type: DataType) -> Schema {
    Schema::new(vec![Field::new("x", data_type, true)])
}

fn nested(depth: usize) -> DataType {
    (0..depth).fold(DataType::Int8, |item, _| {
        DataType::List(Arc::new(Field::new_list_field(item, true)))
    })
}

#[test]
fn only_supported_types_pass() {
    let known = [
        DataType::UInt8,
        DataType::Float16,
        DataType::LargeUtf8,
        DataType::Binary,
        nested(3),
    ];
    for data_type in known {
        let mut batches = RecordBatchReader::new(0);
        assert!(
            batches
                .next(&mut stream(&with_one(data_type.clone()), &[]))
                .unwrap()
                .is_none()
        );
        assert_eq!(batches.schema().unwrap().field(0).data_type(), &data_type);
        batches.finish().unwrap();
    }
    let unknown = [
        DataType::Null,
        DataType::Boolean,
        DataType::Float64,
        DataType::Utf8View,
        DataType::Timestamp(TimeUnit::Second, None),
        DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)),
        DataType::Struct(arrow_schema::Fields::empty()),
        nested(4),
    ];
    for data_type in unknown {
        let error = RecordBatchReader::new(0)
            .next(&mut stream(&with_one(data_type.clone()), &[]))
            .unwrap_err();
        assert_eq!(
            error.kind(),
            pushdown_core::ErrorKind::InvalidWire,
            "{data_type}: {error}"
        );
    }
}

#[test]
fn record_batches_are_checked_against_the_schema() {
    let ints = Schema::new(vec![Field::new("x", DataType::Int32, true)]);
    let batch = |column: ArrayRef| RecordBatch::try_from_iter_with_nullable([("x", column, true)]).unwrap();
    let column: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
    let mut good = stream(&ints, &[batch(Arc::clone(&column))]);
    let raw = RecordBatchReader::new(4096).next(&mut good).unwrap().unwrap();
    assert_eq!(raw.read(&[0]).unwrap().column(0), &column);

    // The same record batch with other schemas.
    for data_type in [DataType::Int64, DataType::Utf8, nested(1), DataType::LargeBinary] {
        let mut batches = RecordBatchReader::new(4096);
        let start = stream(&with_one(data_type.clone()), &[]);
        batches
            .next(&mut start.slice_with_length(0, start.len() - 8))
            .unwrap();
        let mut whole = stream(&ints, &[batch(Arc::clone(&column))]);
        whole.advance(stream(&ints, &[]).len() - 8);
        let raw = batches.next(&mut whole).unwrap().unwrap();
        let error = raw.read(&[0]).unwrap_err();
        assert_eq!(
            error.kind(),
            pushdown_core::ErrorKind::InvalidWire,
            "{data_type}: {error}"
        );
    }

    let views = batch(Arc::new(StringViewArray::from(vec![
        "a view that is longer than twelve bytes",
    ])));
    assert!(
        RecordBatchReader::new(4096)
            .next(&mut stream(&views.schema(), std::slice::from_ref(&views)))
            .is_err()
    );
    let mut large = stream(&ints, &[batch(column)]);
    assert_eq!(
        RecordBatchReader::new(8).next(&mut large).unwrap_err().kind(),
        pushdown_core::ErrorKind::TooLarge
    );
}
