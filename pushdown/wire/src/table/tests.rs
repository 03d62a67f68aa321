use std::sync::Arc;

use arrow_array::{
    Array as _, ArrayRef, DictionaryArray, FixedSizeBinaryArray, Int32Array, ListArray, StructArray,
    types::Int8Type, types::Int32Type,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Schema};

use super::*;
use pushdown_core::{ErrorKind, Kind, Sample};

fn table() -> Table {
    let words: DictionaryArray<Int8Type> = vec![Some("a"), None, Some("b")].into_iter().collect();
    let lists =
        ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None, Some(vec![])]);
    let columns: [(&str, ArrayRef); 3] = [
        ("number", Arc::new(Int32Array::from(vec![1, 2, 3]))),
        ("word", Arc::new(words)),
        ("list", Arc::new(lists)),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    Table::new(batch.schema(), vec![batch.clone(), batch]).unwrap()
}

#[test]
fn tables_are_encoded_as_arrow_streams() {
    let sample = Sample::Table(table());
    let kind = Kind::from(&sample);
    let form = crate::Form::negotiate(None, &kind).unwrap();
    let encoded = crate::encode(sample.clone(), form, &kind).unwrap();
    let header = |name: &str| {
        let mut headers = encoded.metadata.iter();
        headers
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value.as_str())
    };
    let body = Bytes::from(encoded.parts.concat());
    let back = crate::decode(encoded.content_type, header, body, &Limits::default()).unwrap();
    assert_eq!(back, sample);
}

#[test]
fn record_batches_are_encoded_one_by_one() {
    let table = table();
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
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
fn truncated_streams_are_errors() {
    let body = encode(&table()).unwrap().concat();
    for length in 0..body.len() {
        let error = decode(body[..length].to_vec().into(), &Limits::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidWire, "{length}: {error}");
    }
}

fn written(form: TableForm, table: &Table) -> Result<Vec<u8>> {
    let mut encoder = TableEncoder::new(form, table.schema())?;
    let mut parts = Vec::new();
    for batch in table.batches() {
        parts.extend(encoder.write(batch)?);
    }
    parts.extend(encoder.finish()?);
    Ok(parts.concat())
}

#[test]
fn parquet_decodes_to_the_same_table() {
    let table = table();
    let body = written(TableForm::Parquet, &table).unwrap();
    assert_eq!(body, written(TableForm::Parquet, &table).unwrap());
    let reader =
        ::parquet::arrow::arrow_reader::ParquetRecordBatchReader::try_new(Bytes::from(body), 1024).unwrap();
    let batches: Vec<_> = reader.map(|batch| batch.unwrap()).collect();
    assert_eq!(Table::new(Arc::clone(table.schema()), batches).unwrap(), table);
}

#[test]
fn parquet_is_streamed_by_row_groups() {
    let noise =
        |batch: i64| (0..8192_i64).map(move |row| (batch * 8192 + row).wrapping_mul(0x5851_f42d_4c95_7f2d));
    let batch = |number| {
        RecordBatch::try_from_iter([(
            "n",
            Arc::new(arrow_array::Int64Array::from_iter_values(noise(number))) as _,
        )])
        .unwrap()
    };
    let mut encoder = TableEncoder::new(TableForm::Parquet, &batch(0).schema()).unwrap();
    let parts = (0..20).flat_map(|number| encoder.write(&batch(number)).unwrap());
    let flowed: usize = parts.map(|part| part.len()).sum();
    assert!(flowed > 500_000, "a row group before the last rows");
}

#[test]
fn texts_have_a_header_and_nulls() {
    let columns: [(&str, ArrayRef); 3] = [
        ("n", Arc::new(Int32Array::from(vec![Some(1), None]))),
        (
            "t",
            Arc::new(arrow_array::StringArray::from(vec![Some("a, \"b\""), None])),
        ),
        (
            "f",
            Arc::new(arrow_array::Float64Array::from(vec![0.5, f64::NAN])),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let table = Table::new(batch.schema(), vec![batch.clone()]).unwrap();
    let text = |form, table: &Table| String::from_utf8(written(form, table).unwrap()).unwrap();
    assert_eq!(
        text(TableForm::Csv, &table),
        "n,t,f\n1,\"a, \"\"b\"\"\",0.5\n,,NaN\n"
    );
    let lines = "{\"n\":1,\"t\":\"a, \\\"b\\\"\",\"f\":0.5}\n{\"n\":null,\"t\":null,\"f\":null}\n";
    assert_eq!(text(TableForm::Ndjson, &table), lines);
    let empty = Table::new(batch.schema(), vec![]).unwrap();
    assert_eq!(text(TableForm::Csv, &empty), "n,t,f\n");
    assert_eq!(text(TableForm::Ndjson, &empty), "");
}

fn uuid_field(name: &str, nullable: bool) -> Field {
    let metadata = [("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned())];
    Field::new(name, DataType::FixedSizeBinary(16), nullable).with_metadata(metadata.into())
}

/// As pyarrow's `to_pylist`, and the CSV and JSON of `DuckDB`.
#[test]
fn uuids_are_texts_with_hyphens() {
    let bytes = |first: u8| (0..16).map(|byte| first + byte).collect::<Vec<u8>>();
    let uuids = [Some(bytes(0)), None, Some(bytes(0xf0))];
    let uuids: ArrayRef =
        Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(uuids.into_iter(), 16).unwrap());
    let field = uuid_field("id", true);
    let schema = Arc::new(Schema::new(vec![field.clone()]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::clone(&uuids)]).unwrap();
    let text = |form, batch: &RecordBatch| {
        let table = Table::new(
            batch.schema(),
            vec![batch.slice(0, 1), batch.slice(1, batch.num_rows() - 1)],
        );
        String::from_utf8(written(form, &table.unwrap()).unwrap()).unwrap()
    };
    let (first, last) = (
        "00010203-0405-0607-0809-0a0b0c0d0e0f",
        "f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff",
    );
    assert_eq!(
        text(TableForm::Csv, &batch),
        format!("id\n{first}\n\"\"\n{last}\n")
    );
    let json = format!("{{\"id\":\"{first}\"}}\n{{\"id\":null}}\n{{\"id\":\"{last}\"}}\n");
    assert_eq!(text(TableForm::Ndjson, &batch), json);
    // Other bytes of this size, and UUIDs in Arrow, stay what they are.
    let plain = RecordBatch::try_from_iter([("id", uuids)]).unwrap();
    assert!(TableEncoder::new(TableForm::Csv, &plain.schema()).is_err());
    let table = Table::new(schema, vec![batch.clone()]).unwrap();
    let arrow = written(TableForm::ArrowStream(Compression::None), &table).unwrap();
    assert_eq!(decode(arrow.into(), &Limits::default()).unwrap(), table);

    let pair = StructArray::new(vec![field].into(), batch.columns().to_vec(), None);
    let lists = ListArray::new(
        Arc::new(Field::new("element", pair.data_type().clone(), false)),
        OffsetBuffer::from_lengths([2, 0, 1]),
        Arc::new(pair),
        Some(vec![true, false, true].into()),
    );
    let nested = RecordBatch::try_from_iter([("ids", Arc::new(lists) as ArrayRef)]).unwrap();
    let json = format!(
        "{{\"ids\":[{{\"id\":\"{first}\"}},{{\"id\":null}}]}}\n{{\"ids\":null}}\n{{\"ids\":[{{\"id\":\"{last}\"}}]}}\n"
    );
    assert_eq!(text(TableForm::Ndjson, &nested), json);
}

#[test]
fn unsupported_columns_are_named() {
    let bytes: ArrayRef = Arc::new(arrow_array::BinaryArray::from(vec![&b"x"[..]]));
    let batch = RecordBatch::try_from_iter([("photo", bytes)]).unwrap();
    for (form, schema, says) in [
        (
            TableForm::Csv,
            Arc::clone(table().schema()),
            "CSV does not support column `list` of type List",
        ),
        (
            TableForm::Csv,
            batch.schema(),
            "CSV does not support column `photo` of type Binary",
        ),
        (
            TableForm::Ndjson,
            batch.schema(),
            "JSON does not support column `photo` of type Binary",
        ),
    ] {
        let error = TableEncoder::new(form, &schema).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidWire);
        assert!(error.to_string().contains(says), "{error}");
    }
    assert!(TableEncoder::new(TableForm::Ndjson, table().schema()).is_ok());
}

#[test]
fn accept_selects_the_form_of_a_table() {
    let arrow = TableForm::ArrowStream(Compression::None);
    for (accept, expected) in [
        (None, Some(arrow)),
        (Some("*/*"), Some(arrow)),
        (Some("text/csv"), Some(TableForm::Csv)),
        (
            Some("text/*;q=0.5, application/x-ndjson;q=0.4"),
            Some(TableForm::Csv),
        ),
        (
            Some("application/vnd.apache.parquet, */*;q=0.1"),
            Some(TableForm::Parquet),
        ),
        (Some("application/x-ndjson"), Some(TableForm::Ndjson)),
        (
            Some("image/png, application/vnd.apache.arrow.stream;q=0.1"),
            Some(arrow),
        ),
        (Some(" "), Some(arrow)),
        (Some("image/*"), None),
        (Some("*/*;q=0"), None),
    ] {
        assert_eq!(TableForm::negotiate(accept), expected, "{accept:?}");
    }
}
