//! Parquet files, read back by the `parquet` crate.

use arrow_array::{
    Array as _, ArrayRef, RecordBatch,
    cast::AsArray as _,
    types::{Float32Type, Float64Type, Int64Type},
};
use arrow_schema::{DataType, SchemaRef};
use bytes::Bytes;
use parquet::{
    arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder},
    basic::Compression,
    file::metadata::{PageIndexPolicy, ParquetMetaData},
};
use pushdown_core::{DType, Kind, MediaType, Sample};
use pushdown_part::{Label, LabelType, PartFormat, PartSpec, PartWriter};

use crate::samples::{GIF, bytes, classes, encoded, fixed, image, images, part, row, spec, tensor, tensors};

/// The rows of a file as one batch, its schema and its metadata.
fn read(file: Vec<u8>) -> (RecordBatch, ParquetMetaData) {
    let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(file)).unwrap();
    let metadata = reader.metadata().as_ref().clone();
    let rows = usize::try_from(metadata.file_metadata().num_rows()).unwrap();
    let schema: SchemaRef = SchemaRef::clone(reader.schema());
    let mut batches = reader.with_batch_size(rows.max(1)).build().unwrap();
    let batch = batches.next().transpose().unwrap();
    assert!(batches.next().is_none());
    (batch.unwrap_or_else(|| RecordBatch::new_empty(schema)), metadata)
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> &'a ArrayRef {
    batch.column_by_name(name).unwrap()
}

fn names(batch: &RecordBatch) -> Vec<String> {
    batch
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .collect()
}

/// The metadata of `datasets`.
fn features(metadata: &ParquetMetaData) -> String {
    let pairs = metadata.file_metadata().key_value_metadata().unwrap();
    let pair = pairs.iter().find(|pair| pair.key == "huggingface").unwrap();
    pair.value.clone().unwrap()
}

/// The extents of a nested list, and the bytes of its elements.
fn elements(array: &ArrayRef) -> (Vec<usize>, DataType, Vec<u8>) {
    let mut shape = Vec::new();
    let mut inner = ArrayRef::clone(array);
    while let Some(list) = inner.as_fixed_size_list_opt() {
        assert_eq!(list.null_count(), 0);
        shape.push(usize::try_from(list.value_length()).unwrap());
        inner = ArrayRef::clone(list.values());
    }
    let data = inner.to_data();
    let width = data.data_type().primitive_width().unwrap();
    let bytes = &data.buffers()[0][data.offset() * width..][..data.len() * width];
    (shape, data.data_type().clone(), bytes.to_vec())
}

#[test]
fn arrays_of_all_types_return() {
    for (dtype, data_type) in [
        (DType::U8, DataType::UInt8),
        (DType::I8, DataType::Int8),
        (DType::I32, DataType::Int32),
        (DType::I64, DataType::Int64),
        (DType::F16, DataType::Float16),
        (DType::Bf16, DataType::UInt16),
        (DType::F32, DataType::Float32),
    ] {
        for shape in [&[][..], &[3], &[1, 1], &[2, 3, 4]] {
            let values: Vec<Sample> = (0..3).map(|seed| tensor(dtype, shape, seed, None)).collect();
            let samples = ["a", "b", "c"].into_iter().zip(values.clone());
            let samples: Vec<_> = samples
                .map(|(name, value)| (name, None, Vec::new(), value))
                .collect();
            let spec = spec(PartFormat::Parquet, tensors(dtype, &fixed(shape), false));
            let (batch, _) = read(part(&spec, &samples));
            assert_eq!(names(&batch), ["key", "value"]);
            let expected: Vec<u8> = values
                .iter()
                .flat_map(|value| match value {
                    Sample::Tensor(tensor) => tensor.data().to_vec(),
                    _ => Vec::new(),
                })
                .collect();
            assert_eq!(
                elements(column(&batch, "value")),
                (shape.to_vec(), data_type.clone(), expected)
            );
            let schema = batch.schema();
            let metadata = schema.field_with_name("value").unwrap().metadata();
            let marked = metadata.get("pushdown.dtype").map(String::as_str);
            assert_eq!(marked, (dtype == DType::Bf16).then_some("bf16"));
        }
    }
}

#[test]
fn images_of_one_size_are_lists_of_rows_of_pixels() {
    let spec = spec(PartFormat::Parquet, images(Some(2), Some(5)));
    let (batch, metadata) = read(part(&spec, &[("a", None, Vec::new(), image(2, 5, 9))]));
    let Sample::Image(expected) = image(2, 5, 9) else {
        panic!()
    };
    assert_eq!(
        elements(column(&batch, "value")),
        (vec![2, 5, 3], DataType::UInt8, expected.pixels().to_vec())
    );
    assert_eq!(
        features(&metadata),
        concat!(
            r#"{"info":{"features":{"key":{"_type":"Value","dtype":"string"},"value":{"_type":"List","feature":{"_type":"List","#,
            r#""feature":{"_type":"List","feature":{"_type":"Value","dtype":"uint8"},"length":3},"length":5},"length":2}}}}"#
        )
    );
}

#[test]
fn quantized_arrays_have_a_scale() {
    let spec = spec(PartFormat::Parquet, tensors(DType::I8, &fixed(&[2]), true));
    let samples = [("a", 0.5), ("b", 0.25)];
    let samples =
        samples.map(|(name, scale)| (name, None, Vec::new(), tensor(DType::I8, &[2], 1, Some(scale))));
    let (batch, metadata) = read(part(&spec, &samples));
    assert_eq!(names(&batch), ["key", "value", "scale"]);
    assert_eq!(
        column(&batch, "scale").as_primitive::<Float32Type>().values(),
        &[0.5, 0.25]
    );
    assert!(features(&metadata).ends_with(r#""length":2},"scale":{"_type":"Value","dtype":"float32"}}}}"#));
}

#[test]
fn encoded_images_are_those_of_datasets() {
    let spec = PartSpec {
        label: Some(classes()),
        columns: vec!["json".to_owned()],
        ..spec(PartFormat::Parquet, encoded(MediaType::Jpeg))
    };
    let json = Some(Bytes::from_static(b"{}"));
    let samples = [
        ("x.y/a.b.PNG", Some(Label::Int(1)), vec![json], bytes(b"first")),
        ("x/c", None, vec![None], bytes(b"second")),
        ("x/", Some(Label::Int(0)), vec![None], bytes(b"")),
    ];
    let (batch, metadata) = read(part(&spec, &samples));
    assert_eq!(names(&batch), ["key", "image", "label", "json"]);
    let keys = column(&batch, "key").as_string::<i32>();
    assert_eq!(
        keys.iter().flatten().collect::<Vec<_>>(),
        ["x.y/a.b.PNG", "x/c", "x/"]
    );
    let image = column(&batch, "image").as_struct();
    let files = image.column_by_name("bytes").unwrap().as_binary::<i32>();
    assert_eq!(
        files.iter().flatten().collect::<Vec<_>>(),
        [&b"first"[..], b"second", b""]
    );
    let paths = image.column_by_name("path").unwrap().as_string::<i32>();
    assert_eq!(
        paths.iter().flatten().collect::<Vec<_>>(),
        ["a.b.jpg", "c.jpg", ".jpg"]
    );
    let labels = column(&batch, "label").as_primitive::<Int64Type>();
    assert_eq!(labels.iter().collect::<Vec<_>>(), [Some(1), None, Some(0)]);
    let json = column(&batch, "json").as_binary::<i32>();
    assert_eq!(json.iter().collect::<Vec<_>>(), [Some(&b"{}"[..]), None, None]);
    assert_eq!(
        features(&metadata),
        concat!(
            r#"{"info":{"features":{"key":{"_type":"Value","dtype":"string"},"image":{"_type":"Image"},"#,
            r#""label":{"_type":"ClassLabel","names":["cat","dog"]},"json":{"_type":"Value","dtype":"binary"}}}}"#
        )
    );
}

#[test]
fn labels_have_a_column_of_their_type() {
    let of = |label_type, labels: [Option<Label>; 2]| {
        let spec = PartSpec {
            label: Some(label_type),
            ..spec(PartFormat::Parquet, Kind::object())
        };
        let samples: Vec<_> = ["a", "b"]
            .into_iter()
            .zip(labels)
            .map(|(name, label)| (name, label, Vec::new(), bytes(b"")))
            .collect();
        let (batch, metadata) = read(part(&spec, &samples));
        (ArrayRef::clone(column(&batch, "label")), features(&metadata))
    };
    let (labels, metadata) = of(LabelType::Int, [Some(Label::Int(i64::MIN)), None]);
    assert_eq!(
        labels.as_primitive::<Int64Type>().iter().collect::<Vec<_>>(),
        [Some(i64::MIN), None]
    );
    assert!(metadata.contains(r#""label":{"_type":"Value","dtype":"int64"}"#));
    let (labels, metadata) = of(LabelType::Float, [Some(Label::Float(0.1)), Some(Label::Int(2))]);
    assert_eq!(labels.as_primitive::<Float64Type>().values(), &[0.1, 2.0]);
    assert!(metadata.contains(r#""label":{"_type":"Value","dtype":"float64"}"#));
    let (labels, metadata) = of(LabelType::Text, [None, Some(Label::Text("ä\0".to_owned()))]);
    assert_eq!(
        labels.as_string::<i32>().iter().collect::<Vec<_>>(),
        [None, Some("ä\0")]
    );
    assert!(metadata.contains(r#""label":{"_type":"Value","dtype":"string"}"#));
}

/// Many small rows, which are several batches, and large ones, which are several row groups.
#[test]
fn batches_and_row_groups_have_all_rows() {
    let spec = spec(PartFormat::Parquet, Kind::object());
    for (rows, row_bytes, groups) in [
        (0, 0, 0),
        (1, 0, 1),
        (3000, 5, 1),
        (40_000, 0, 3),
        (70, 1 << 20, 3),
    ] {
        let names: Vec<String> = (0..rows).map(|row| format!("{row:05}")).collect();
        let values: Vec<Sample> = (0..rows)
            .map(|row| bytes(&vec![u8::try_from(row % 251).unwrap(); row_bytes]))
            .collect();
        let mut writer = PartWriter::new(spec.clone(), names.iter().map(String::as_str)).unwrap();
        for (index, value) in values.iter().enumerate() {
            writer.push(&row(index, value)).unwrap();
        }
        let (batch, metadata) = read(writer.finish(&[]).unwrap());
        assert_eq!(
            metadata.num_row_groups(),
            groups,
            "{rows} rows of {row_bytes} bytes"
        );
        let keys = column(&batch, "key").as_string::<i32>();
        assert!(keys.iter().flatten().eq(names.iter()));
        let found = column(&batch, "value").as_binary::<i32>();
        let same =
            |(value, found): (&Sample, &[u8])| matches!(value, Sample::Bytes(value) if *value == found);
        assert_eq!(found.len(), rows);
        assert!(values.iter().zip(found.iter().flatten()).all(same));
    }
}

#[test]
fn bytes_grow_with_rows_to_about_those_of_the_file() {
    let spec = spec(PartFormat::Parquet, encoded(MediaType::Gif));
    let names: Vec<String> = (0..80).map(|row| row.to_string()).collect();
    let value = bytes(&vec![7; 1_000_000]);
    let mut writer = PartWriter::new(spec, names.iter().map(String::as_str)).unwrap();
    for index in 0..names.len() {
        writer.push(&row(index, &value)).unwrap();
        let expected = (index as u64 + 1) * 1_000_000;
        assert!(
            (expected..expected + 20_000).contains(&writer.bytes()),
            "{} after {index}",
            writer.bytes()
        );
    }
    let bytes = writer.bytes();
    let length = writer.finish(&[]).unwrap().len() as u64;
    assert!(
        length.abs_diff(bytes) < 20_000,
        "expected about {bytes}, found {length}"
    );
}

#[test]
fn files_have_fixed_settings() {
    let labelled = |kind| PartSpec {
        label: Some(LabelType::Int),
        columns: vec!["json".to_owned()],
        ..spec(PartFormat::Parquet, kind)
    };
    let image_part = part(
        &labelled(encoded(MediaType::Gif)),
        &[("a", Some(Label::Int(3)), vec![None], bytes(GIF))],
    );
    let tensor_part = part(
        &labelled(tensors(DType::U8, &fixed(&[2, 2]), false)),
        &[(
            "a",
            Some(Label::Int(3)),
            vec![None],
            tensor(DType::U8, &[2, 2], 0, None),
        )],
    );
    let settings = |file: Vec<u8>| {
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
        let metadata = ArrowReaderMetadata::load(&Bytes::from(file), options).unwrap();
        let metadata = metadata.metadata().as_ref().clone();
        assert_eq!(metadata.file_metadata().created_by(), Some("pushdown"));
        let columns = metadata.row_group(0).columns().iter();
        let columns = columns.map(|column| {
            assert_eq!(column.offset_index_offset(), None);
            assert_eq!(column.column_index_offset(), None);
            let is_compressed = column.compression() != Compression::UNCOMPRESSED;
            let has_dictionary = column.dictionary_page_offset().is_some();
            let path = column.column_path().string();
            (path, is_compressed, column.statistics().is_some(), has_dictionary)
        });
        columns.collect::<Vec<_>>()
    };
    let row = |path: &str, is_compressed, has_statistics, has_dictionary| {
        (path.to_owned(), is_compressed, has_statistics, has_dictionary)
    };
    assert_eq!(
        settings(image_part),
        [
            row("key", true, true, false),
            row("image.bytes", false, false, false),
            row("image.path", true, false, false),
            row("label", true, true, true),
            row("json", true, false, false),
        ]
    );
    assert_eq!(
        settings(tensor_part)[1],
        row("value.list.item.list.item", true, false, true)
    );
}
