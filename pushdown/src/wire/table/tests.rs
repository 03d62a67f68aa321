use std::sync::Arc;

use arrow_array::{DictionaryArray, Int32Array, ListArray, types::Int8Type, types::Int32Type};

use super::*;
use crate::{ErrorKind, Kind, Sample, wire};

fn table() -> Table {
    let words: DictionaryArray<Int8Type> = vec![Some("a"), None, Some("b")].into_iter().collect();
    let lists =
        ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None, Some(vec![])]);
    let columns: [(&str, arrow_array::ArrayRef); 3] = [
        ("number", Arc::new(Int32Array::from(vec![1, 2, 3]))),
        ("word", Arc::new(words)),
        ("list", Arc::new(lists)),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    Table::new(batch.schema(), vec![batch.clone(), batch]).unwrap()
}

#[test]
fn a_table_travels_as_an_arrow_stream() {
    let sample = Sample::Table(table());
    let kind = Kind::from(&sample);
    let form = wire::Form::negotiate(None, &kind).unwrap();
    let encoded = wire::encode(sample.clone(), form, &kind).unwrap();
    let header = |name: &str| {
        let mut headers = encoded.metadata.iter();
        headers
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value.as_str())
    };
    let body = Bytes::from(encoded.parts.concat());
    let back = wire::decode(encoded.content_type, header, body, &Limits::default()).unwrap();
    assert_eq!(back, sample);
}

#[test]
fn rows_are_written_as_they_come_compressed_or_not() {
    let table = table();
    for compression in [Compression::None, Compression::Lz4] {
        let mut encoder = TableEncoder::new(TableForm::ArrowStream(compression), table.schema()).unwrap();
        let mut body = Vec::new();
        for batch in table.batches() {
            let parts = encoder.write(batch).unwrap();
            assert!(!parts.is_empty());
            body.extend(parts);
        }
        body.extend(encoder.finish().unwrap());
        let back = decode(body.concat().into(), &Limits::default()).unwrap();
        assert_eq!(back, table);
    }
}

#[test]
fn a_stream_that_is_cut_off_is_no_table() {
    let body = encode(&table()).unwrap().concat();
    for length in 0..body.len() {
        let error = decode(body[..length].to_vec().into(), &Limits::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidWire, "{length}: {error}");
    }
}

#[test]
fn a_form_is_chosen_by_accept() {
    let arrow = Some(TableForm::ArrowStream(Compression::None));
    for (accept, expected) in [
        (None, arrow),
        (Some(" "), arrow),
        (Some("*/*"), arrow),
        (
            Some("image/png, application/vnd.apache.arrow.stream;q=0.1"),
            arrow,
        ),
        (Some("application/x-npy"), None),
        (Some("*/*;q=0"), None),
    ] {
        assert_eq!(TableForm::negotiate(accept), expected, "{accept:?}");
    }
}
