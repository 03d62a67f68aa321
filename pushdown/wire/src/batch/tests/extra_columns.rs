//! Answers of later versions, with columns that this one does not know.

use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_ipc::{reader::StreamReader, writer::StreamWriter};
use arrow_schema::{Field, Schema};

use super::*;

/// The stream with more columns, inserted at these positions.
fn with_columns(stream: &[u8], columns: &[(usize, ArrayRef)]) -> Bytes {
    let names = (0..columns.len()).map(|index| format!("later_{index}"));
    let columns: Vec<_> = columns
        .iter()
        .zip(names)
        .map(|((position, column), name)| (*position, name, Arc::clone(column)))
        .collect();
    with_named_columns(stream, &columns)
}

/// The stream with columns of these names, inserted at these positions.
pub(super) fn with_named_columns(stream: &[u8], columns: &[(usize, String, ArrayRef)]) -> Bytes {
    let reader = StreamReader::try_new(stream, None).unwrap();
    let mut fields: Vec<_> = reader.schema().fields().iter().cloned().collect();
    for (position, name, column) in columns {
        let field = Field::new(name, column.data_type().clone(), true);
        fields.insert(*position, Arc::new(field));
    }
    let schema = Arc::new(Schema::new_with_metadata(
        fields,
        reader.schema().metadata().clone(),
    ));
    let mut writer = StreamWriter::try_new(Vec::new(), &schema).unwrap();
    for batch in reader {
        let batch = batch.unwrap();
        let mut arrays = batch.columns().to_vec();
        for (position, _, column) in columns {
            arrays.insert(*position, column.slice(0, batch.num_rows()));
        }
        writer
            .write(&RecordBatch::try_new(Arc::clone(&schema), arrays).unwrap())
            .unwrap();
    }
    writer.into_inner().unwrap().into()
}

#[test]
fn unknown_columns_are_ignored() {
    let quantized = |row| Sample::Tensor(tensor(DType::I8, &[2, 3], row).with_scale(Some(0.5)));
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("later"), None, Some("text")]));
    let values = [
        Sample::Tensor(tensor(DType::F32, &[2, 3], 0)),
        quantized(0),
        Sample::Bytes("bytes".into()),
    ];
    for value in values {
        for cache_column in [false, true] {
            let mut rows = [
                successful(0, value.clone()),
                successful(1, value.clone()),
                failed(2),
            ];
            if cache_column {
                rows[0].cache = CacheStatus::Memory;
            }
            let writer = writer(&fixed(&value), Compression::None, cache_column);
            let stream = write_by(writer, &rows, 3);
            let last = StreamReader::try_new(&stream[..], None)
                .unwrap()
                .schema()
                .fields()
                .len();
            // After the known columns, before the cache status, and before the scale.
            for columns in [
                vec![(last, Arc::clone(&numbers))],
                vec![(last, Arc::clone(&texts)), (last + 1, Arc::clone(&numbers))],
                vec![((last - 1).max(5), Arc::clone(&numbers))],
                vec![(5, Arc::clone(&texts))],
            ] {
                let (found, end) = read([with_columns(&stream, &columns)]);
                end.unwrap();
                assert_eq!(found, rows);
            }
        }
    }
}

#[test]
fn a_column_before_the_known_ones_is_refused() {
    let value = Sample::Bytes("bytes".into());
    let stream = write(&fixed(&value), &[successful(0, value.clone())], 1);
    let number: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let (_, end) = read([with_columns(&stream, &[(0, number)])]);
    assert!(end.unwrap_err().to_string().contains("unexpected columns"));
}
