//! Answers without values: the column `stored`.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, UInt8Array};

use super::{extra_columns::with_named_columns, *};

/// A row whose value is not sent.
fn undelivered(row: u32, stored: bool) -> Row {
    Row {
        cache: CacheStatus::Disk,
        stored: Some(stored),
        ..successful(row, Sample::Bytes(Bytes::new()))
    }
}

fn rows() -> [Row; 4] {
    [
        undelivered(0, true),
        undelivered(1, false),
        failed(2),
        undelivered(3, true),
    ]
}

fn stream(value_type: &ValueType, chunk_rows: usize, rows: &[Row]) -> Bytes {
    let columns = OptionalColumns {
        cache: true,
        stored: true,
        ..OptionalColumns::default()
    };
    let (engine, pipeline) = (Engine::default(), digest());
    let writer = BatchWriter::new(value_type.clone(), Compression::None, &engine, &pipeline, columns);
    write_by(writer.unwrap(), rows, chunk_rows)
}

fn read_without_values(stream: Bytes) -> Result<Vec<Row>> {
    let mut reader = BatchReader::without_values(Limits::default());
    let rows = reader.push(stream)?;
    reader.finish()?;
    Ok(rows)
}

/// Whatever the type of the values is: they would have megabytes.
#[test]
fn rows_without_values_have_all_else() {
    let large = fixed(&Sample::Tensor(tensor(DType::F32, &[3, 500, 500], 0)));
    for value_type in [large, ValueType::Bytes, ValueType::Any] {
        for chunk_rows in [1, 4] {
            let stream = stream(&value_type, chunk_rows, &rows());
            assert!(stream.len() < 8_000, "{} bytes", stream.len());
            assert_eq!(read_without_values(stream).unwrap(), rows());
        }
    }
}

#[test]
fn a_value_for_which_nobody_asked_is_not_sent() {
    let columns = OptionalColumns {
        stored: true,
        ..OptionalColumns::default()
    };
    let (engine, pipeline) = (Engine::default(), digest());
    let writer = BatchWriter::new(ValueType::Bytes, Compression::None, &engine, &pipeline, columns);
    let row = successful(0, Sample::Bytes("bytes".into()));
    let error = writer.unwrap().rows(vec![row]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
}

#[test]
fn an_answer_with_values_is_refused_if_none_were_asked_for() {
    let value = Sample::Bytes("bytes".into());
    let plain = write(&fixed(&value), &[successful(0, value)], 1);
    let error = read_without_values(plain.clone()).unwrap_err().to_string();
    assert!(error.contains("expected the column `stored`"), "{error}");
    // Also with the column.
    let stored: ArrayRef = Arc::new(UInt8Array::from(vec![1]));
    let both = with_named_columns(&plain, &[(5, "stored".to_owned(), stored)]);
    let error = read_without_values(both).unwrap_err().to_string();
    assert!(error.contains("expected no value"), "{error}");
}

#[test]
fn an_answer_without_values_is_refused_if_they_were_asked_for() {
    let (found, end) = read([stream(&ValueType::Bytes, 4, &rows())]);
    assert!(found.is_empty());
    let error = end.unwrap_err().to_string();
    assert!(
        error.contains("expected values, found the column `stored`"),
        "{error}"
    );
}

#[test]
fn a_column_of_another_type_is_refused() {
    let bytes = Sample::Bytes("bytes".into());
    let number: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let flag: ArrayRef = Arc::new(UInt8Array::from(vec![1]));
    let tensor = Sample::Tensor(tensor(DType::F32, &[2], 0));
    for (value, column) in [(bytes, number), (tensor, flag)] {
        let stream = write(&fixed(&value), &[successful(0, value)], 1);
        let stream = with_named_columns(&stream, &[(5, "stored".to_owned(), column)]);
        let error = read_without_values(stream).unwrap_err().to_string();
        assert!(error.contains("unexpected columns"), "{error}");
    }
}
