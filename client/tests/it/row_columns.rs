//! Objects whose columns differ: their rows are the same at every split, or an error says why they cannot be.

use std::sync::Arc;

use arrow_array::{
    Array as _, ArrayRef, BinaryArray, DictionaryArray, Int32Array, Int64Array, LargeBinaryArray,
    LargeStringArray, RecordBatch, StringArray, StructArray,
    cast::AsArray as _,
    new_null_array,
    types::{Int8Type, Int64Type},
};
use arrow_schema::DataType;
use parquet::{arrow::ArrowWriter, file::properties::WriterProperties};
use pushdown_client::{
    ErrorKind,
    reader::{Mode, Split},
    table::TableBatch,
};

use super::{
    rows::{ids, read_all},
    world::{Objects, World, photos},
};

const PIPELINE: &str = "select(columns=[image, label, tag], where='label < 1000', row_number=at) | each(image: decode | \
                        random_resized_crop(20) | flip_h)";

fn parquet<const N: usize>(columns: [(&str, ArrayRef); N]) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(3))
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

fn images(bytes: ArrayRef, paths: ArrayRef) -> ArrayRef {
    Arc::new(StructArray::try_from(vec![("bytes", bytes), ("path", paths)]).unwrap())
}

/// Four objects of four rows, labelled 0 to 15. Each has other columns, types and orders.
fn objects() -> Objects {
    let photos: Vec<_> = photos().into_values().take(4).collect();
    let bytes = || -> ArrayRef { Arc::new(BinaryArray::from_iter_values(&photos)) };
    let texts = |prefix: &str| -> Vec<String> { (0..4).map(|n| format!("{prefix} {n}")).collect() };
    let labels = |from: i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(from..from + 4)) };
    let words = || -> ArrayRef { Arc::new(StringArray::from(texts("word"))) };
    let categories: DictionaryArray<Int8Type> =
        texts("word").iter().map(|text| Some(text.as_str())).collect();
    let large = images(
        Arc::new(LargeBinaryArray::from_iter_values(&photos)),
        Arc::new(LargeStringArray::from(texts("path"))),
    );
    Objects::from([
        (
            "c/0.parquet".to_owned(),
            parquet([
                (
                    "image",
                    images(bytes(), Arc::new(StringArray::from(texts("path")))),
                ),
                ("label", labels(0)),
                ("tag", words()),
            ]),
        ),
        (
            "c/1.parquet".to_owned(),
            parquet([
                ("tag", Arc::new(LargeStringArray::from(texts("word")))),
                ("label", Arc::new(Int32Array::from_iter_values(4..8))),
                ("image", large),
            ]),
        ),
        (
            "c/2.parquet".to_owned(),
            parquet([
                ("more", words()),
                ("image", images(bytes(), new_null_array(&DataType::Null, 4))),
                ("tag", Arc::new(categories)),
                ("label", labels(8)),
            ]),
        ),
        (
            "c/3.parquet".to_owned(),
            parquet([
                ("label", labels(12)),
                ("tag", new_null_array(&DataType::Null, 4)),
                ("image", bytes()),
                ("more", labels(0)),
            ]),
        ),
        (
            "d/4.parquet".to_owned(),
            parquet([("label", words()), ("n", labels(0))]),
        ),
        (
            "d/3.parquet".to_owned(),
            parquet([("n", labels(0)), ("label", labels(12))]),
        ),
    ])
}

fn read_values(batches: &[TableBatch]) -> Vec<(i64, Option<String>)> {
    let rows = |batch: &TableBatch| {
        let labels = batch.rows["label"].as_primitive::<Int64Type>().clone();
        let tags = batch.rows["tag"].as_string::<i64>().clone();
        assert_eq!(batch.rows["image"].null_count(), 0);
        let tag = move |row: usize| tags.is_valid(row).then(|| tags.value(row).to_owned());
        (0..labels.len())
            .map(|row| (labels.value(row), tag(row)))
            .collect::<Vec<_>>()
    };
    batches.iter().flat_map(rows).collect()
}

#[tokio::test]
async fn objects_with_other_columns_are_read_alike_at_every_split() {
    let world = World::with_objects(objects());
    let reader = || world.reader(PIPELINE).prefix("c/").seed(3).batch_size(5);
    let mut expected = None;
    for (name, builder) in [
        ("plain", reader().mode(Mode::Plain)),
        ("stored columns", reader().split(Split::At(0))),
        ("rows", reader().split(Split::At(1))),
        ("all steps", reader().split(Split::Full)),
        ("auto", reader().mode(Mode::Auto)),
    ] {
        let batches = read_all(builder.build_table().await.unwrap()).await;
        let found = expected.get_or_insert_with(|| batches.clone());
        assert_eq!(&batches, found, "{name}");
        let mut values = read_values(&batches);
        values.sort();
        let tag = |label: i64| (label < 12).then(|| format!("word {}", label % 4));
        assert_eq!(
            values,
            (0..16).map(|label| (label, tag(label))).collect::<Vec<_>>()
        );
        // Objects and rows of each value.
        for (id, (label, _)) in ids(&batches).iter().zip(read_values(&batches)) {
            assert_eq!(
                id.object as u64 * 4 + id.row,
                u64::try_from(label).unwrap(),
                "{name}"
            );
        }
    }
}

#[tokio::test]
async fn columns_that_no_type_holds_name_two_objects() {
    let world = World::with_objects(objects());
    for mode in [Mode::Plain, Mode::Pushdown] {
        let builder = world.reader("select(columns=[label])").prefix("d/").mode(mode);
        let error = builder.build_table().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Sample);
        let message = "the columns of `d/4.parquet` differ from those of `d/3.parquet`: expected column `label` of type Int64, \
                       found Utf8; leave it out, or cast it in the query";
        assert_eq!(error.to_string(), message);
        // Others may differ.
        let builder = world.reader("select(columns=[n])").prefix("d/").mode(mode);
        let batches = read_all(builder.build_table().await.unwrap()).await;
        assert_eq!(ids(&batches).len(), 8);
    }
}
