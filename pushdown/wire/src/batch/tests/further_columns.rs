//! Further columns of members.

use std::sync::Arc;

use arrow_array::{ArrayRef, LargeBinaryArray, StringArray};

use super::{super::MAX_COLUMN_BYTES, extra_columns::with_named_columns, *};

/// A stream of rows with further columns of these names.
fn stream(value_type: &ValueType, compression: Compression, names: &[&str], rows: &[Row]) -> Bytes {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let (engine, pipeline) = (Engine::default(), digest());
    let columns = OptionalColumns {
        cache: true,
        crops: false,
        stored: false,
        further: &names,
    };
    let writer = BatchWriter::new(value_type.clone(), compression, &engine, &pipeline, columns);
    write_by(writer.unwrap(), rows, 3)
}

fn row(row: u32, value: &Sample, columns: &[Option<&'static str>]) -> Row {
    let content = |text: &'static str| Bytes::from_static(text.as_bytes());
    Row {
        columns: columns.iter().map(|text| text.map(content)).collect(),
        ..successful(row, value.clone())
    }
}

#[test]
fn columns_are_sent_as_they_are() {
    let values = [
        Sample::Tensor(tensor(DType::F32, &[2, 3], 0)),
        Sample::Tensor(tensor(DType::I8, &[2, 3], 0).with_scale(Some(0.5))),
        Sample::Bytes("bytes".into()),
    ];
    for value in &values {
        for value_type in [fixed(value), ValueType::Any] {
            let rows = [
                row(0, value, &[Some("7"), Some("{}")]),
                row(1, value, &[None, Some("")]),
                failed(2),
                row(3, value, &[Some("\0\n"), None]),
            ];
            for compression in [Compression::None, Compression::Lz4] {
                let stream = stream(&value_type, compression, &["cls", "seg.json"], &rows);
                let mut reader = BatchReader::new(Limits::default());
                assert_eq!(reader.column_names(), None);
                let found = reader.push(stream.clone()).unwrap();
                assert_eq!(found, rows);
                assert_eq!(reader.column_names().unwrap(), ["cls", "seg.json"]);
                reader.finish().unwrap();
                let (found, end) = read(chunks(stream, &[1]));
                end.unwrap();
                assert_eq!(found, rows);
            }
        }
    }
}

/// A reader of another version.
#[test]
fn columns_have_any_position_after_the_value() {
    let value = Sample::Tensor(tensor(DType::I8, &[2, 3], 0).with_scale(Some(0.5)));
    let rows = [successful(0, value.clone()), successful(1, value.clone())];
    let written = write(&fixed(&value), &rows, 2);
    let column = |texts: [Option<&str>; 2]| -> ArrayRef { Arc::new(LargeBinaryArray::from_iter(texts)) };
    let found = with_named_columns(
        &written,
        &[
            (5, "column:cls".to_owned(), column([Some("7"), None])),
            (7, "column:txt".to_owned(), column([Some("a"), Some("b")])),
        ],
    );
    let (found, end) = read([found]);
    end.unwrap();
    let expected = [
        row(0, &value, &[Some("7"), Some("a")]),
        row(1, &value, &[None, Some("b")]),
    ];
    assert_eq!(found, expected);
}

#[test]
fn large_columns_have_record_batches_of_their_own() {
    let value = Sample::Bytes("bytes".into());
    let rows: Vec<Row> = (0..4)
        .map(|number| Row {
            columns: vec![Some(vec![7; 40 << 10].into())],
            ..successful(number, value.clone())
        })
        .collect();
    let names = ["cls".to_owned()];
    let (engine, pipeline) = (Engine::default(), digest());
    let mut writer = BatchWriter::new(
        ValueType::Bytes,
        Compression::None,
        &engine,
        &pipeline,
        OptionalColumns {
            further: &names,
            ..OptionalColumns::default()
        },
    )
    .unwrap();
    let mut reader = BatchReader::new(Limits::default());
    reader.push(writer.start()).unwrap();
    let arrivals: Vec<usize> = (writer.rows(rows).unwrap().into_iter())
        .flat_map(|part| chunks(part, &[1 << 10]))
        .map(|chunk| reader.push(chunk).unwrap().len())
        .filter(|rows| *rows > 0)
        .collect();
    assert_eq!(arrivals, [1, 1, 1, 1], "at most 64 KiB per record batch");
}

#[test]
fn columns_of_another_type_too_many_and_too_large_ones_are_refused() {
    let value = Sample::Bytes("bytes".into());
    let rows = [successful(0, value.clone())];
    let written = write(&ValueType::Bytes, &rows, 1);
    let text: ArrayRef = Arc::new(StringArray::from(vec!["7"]));
    let (_, end) = read([with_named_columns(
        &written,
        &[(5, "column:cls".to_owned(), text)],
    )]);
    assert!(end.unwrap_err().to_string().contains("unexpected columns"));

    let bytes: ArrayRef = Arc::new(LargeBinaryArray::from_iter([Some("7")]));
    let many: Vec<_> = (0..17)
        .map(|index| (5, format!("column:{index}"), Arc::clone(&bytes)))
        .collect();
    let (_, end) = read([with_named_columns(&written, &many)]);
    assert!(end.unwrap_err().to_string().contains("unexpected columns"));

    let half = vec![7; usize::try_from(MAX_COLUMN_BYTES / 2).unwrap()];
    let large = |more: &[u8]| Row {
        columns: vec![Some(half.clone().into()), Some([&half[..], more].concat().into())],
        ..successful(0, value.clone())
    };
    for (more, is_read) in [(&b""[..], true), (b"x", false)] {
        let stream = stream(&ValueType::Bytes, Compression::None, &["a", "b"], &[large(more)]);
        let (found, end) = read([stream]);
        assert_eq!(found.len(), usize::from(is_read));
        match end {
            Ok(()) => assert!(is_read),
            Err(error) => assert_eq!((error.kind(), is_read), (ErrorKind::TooLarge, false)),
        }
    }
}
