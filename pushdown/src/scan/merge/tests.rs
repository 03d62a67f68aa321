use arrow_array::{
    Array as _, DictionaryArray, Float32Array, Int8Array, Int64Array, LargeStringArray, UInt64Array,
    cast::AsArray as _,
    types::{Int8Type, Int64Type},
};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{Fields, TimeUnit};

use super::*;

fn schema(columns: &[(&str, DataType, bool)]) -> Schema {
    let field = |(name, kind, nullable): &(&str, DataType, bool)| Field::new(*name, kind.clone(), *nullable);
    Schema::new(columns.iter().map(field).collect::<Vec<_>>())
}

fn rule(key: bool, schema: SchemaRule) -> MergeRule {
    MergeRule { key, schema }
}

const INT: DataType = DataType::Int64;

/// The columns of the merged table.
fn merge(rule: MergeRule, tables: &[&[(&str, DataType, bool)]]) -> Result<String> {
    let mut merger = SchemaMerger::new(rule, 4);
    for (index, table) in tables.iter().enumerate() {
        merger.add(&format!("{index}.parquet").into(), &schema(table))?;
    }
    let all = merger.schema();
    let columns = all.fields().iter().map(|field| {
        let null = if field.is_nullable() { "?" } else { "" };
        format!("{}: {}{null}", field.name(), field.data_type())
    });
    Ok(columns.collect::<Vec<_>>().join(", "))
}

#[test]
fn columns_match_or_the_error_says_why() {
    let same = rule(false, SchemaRule::Same);
    let ab: &[_] = &[("a", INT, false), ("b", DataType::Utf8, true)];
    assert_eq!(merge(same, &[ab, ab]).unwrap(), "a: Int64, b: Utf8?");
    let null: &[_] = &[("a", INT, true), ("b", DataType::Utf8, false)];
    assert_eq!(merge(same, &[ab, null]).unwrap(), "a: Int64?, b: Utf8?");
    assert_eq!(
        merge(rule(true, SchemaRule::Same), &[ab]).unwrap(),
        "key: Utf8, a: Int64, b: Utf8?"
    );
    let ba: &[_] = &[("b", DataType::Utf8, true), ("a", INT, false)];
    let union = rule(false, SchemaRule::Union);
    let other: &[_] = &[("c", INT, false), ("a", INT, false)];
    assert_eq!(
        merge(union, &[ab, other]).unwrap(),
        "a: Int64, b: Utf8?, c: Int64?"
    );
    assert_eq!(merge(same, &[ab, ba]).unwrap(), "a: Int64, b: Utf8?");
    let five = ["c", "d", "e"].map(|name| (name, INT, false));
    let faults = [
        merge(same, &[ab, &ab[..1]]),
        merge(
            same,
            &[
                ab,
                ba,
                &[("a", INT, false), ("b", DataType::Utf8, true), ("c", INT, true)],
            ],
        ),
        merge(same, &[ab, &[("a", INT, false), ("x", INT, false)]]),
        merge(
            same,
            &[ab, &[("a", DataType::Utf8, false), ("b", DataType::Utf8, true)]],
        ),
        merge(union, &[ab, &[("a", DataType::Utf8, false)]]),
        merge(union, &[&[("a", INT, false), ("a", INT, false)], ab]),
        merge(union, &[ab, &five]),
        merge(rule(true, SchemaRule::Union), &[&[("key", INT, false)]]),
    ];
    let faults = faults.map(|fault| fault.unwrap_err().to_string());
    insta::assert_snapshot!(faults.join("\n"));
}

#[test]
fn missing_columns_are_null() {
    let mut merger = SchemaMerger::new(rule(true, SchemaRule::Union), 8);
    let (one, two): (Arc<str>, Arc<str>) = ("one".into(), "two".into());
    let (first, second) = (
        schema(&[("a", INT, false)]),
        schema(&[("b", INT, false), ("a", INT, false)]),
    );
    merger.add(&one, &first).unwrap();
    merger.add(&two, &second).unwrap();
    let all = merger.schema();
    let map = |key: &Arc<str>, schema: &Schema, columns: Vec<Vec<i64>>| {
        let columns = columns
            .into_iter()
            .map(|values| Arc::new(Int64Array::from(values)) as ArrayRef);
        let batch = RecordBatch::try_new(Arc::new(schema.clone()), columns.collect()).unwrap();
        merger.mapping(key, schema, &all).unwrap().apply(&batch).unwrap()
    };
    let added = |key, schema| merger.mapping(key, schema, &all).unwrap().added_bytes_per_row();
    assert_eq!((added(&one, &first), added(&two, &second)), (3 + 8 + 9, 3 + 8));
    let rows = map(&one, &first, vec![vec![1, 2]]);
    assert_eq!(rows.column(0).as_string::<i32>().value(1), "one");
    assert_eq!(rows.column(1).as_primitive::<Int64Type>().values(), &[1, 2]);
    assert_eq!(rows.column(2).null_count(), 2);
    let rows = map(&two, &second, vec![vec![7], vec![8]]);
    let values = [1, 2].map(|column| rows.column(column).as_primitive::<Int64Type>().value(0));
    assert_eq!(values, [8, 7]);
    // Changed columns are an error.
    for other in [
        schema(&[("a", DataType::Utf8, false)]),
        schema(&[("a", INT, true)]),
        schema(&[("x", INT, false)]),
    ] {
        let error = merger.mapping(&one, &other, &all).unwrap_err().to_string();
        assert!(error.contains("was the object replaced?"), "{error}");
    }
}

/// A wide and a long table: the columns that the long one lacks take memory that admission has to count.
#[test]
fn nulls_of_any_type_are_counted() {
    let wide = Field::new("x", DataType::FixedSizeBinary(1000), true);
    let pair = DataType::Struct(
        vec![
            Field::new("a", INT, true),
            Field::new("b", DataType::Boolean, true),
        ]
        .into(),
    );
    let kinds = [
        (DataType::Float64, 9),
        (DataType::Utf8, 17),
        (DataType::Decimal128(10, 2), 17),
        (DataType::FixedSizeList(Arc::new(wide), 4), 4 * 1001 + 1),
        (
            DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            5,
        ),
        (pair, 1 + 9 + 17),
    ];
    for (kind, bytes) in kinds {
        assert_eq!(null_bytes(&kind), bytes, "{kind}");
    }
}

/// As pyarrow's `unify_schemas(promote_options="permissive")`, but for whole numbers of 64 bits and floats, which have to fit.
#[test]
fn columns_have_a_type_that_holds_the_values_of_all() {
    use DataType::{
        Binary, Boolean, Date32, Date64, Decimal128, Decimal256, Dictionary, Duration, FixedSizeBinary,
        FixedSizeList, Float16, Float32, Float64, Int8, Int16, Int32, Int64, LargeBinary, LargeUtf8, List,
        Null, Struct, Time32, Time64, Timestamp, UInt8, UInt16, UInt32, UInt64, Utf8,
    };
    let fields = |fields: &[(&str, DataType)]| -> Fields {
        let field = |(name, data_type): &(&str, DataType)| Field::new(*name, data_type.clone(), false);
        fields.iter().map(field).collect()
    };
    let image = |path: DataType| Struct(fields(&[("bytes", Binary), ("path", path)]));
    let list = |name: &str, item: DataType| List(Arc::new(Field::new(name, item, true)));
    let fixed = |length| FixedSizeList(Arc::new(Field::new("item", Float32, true)), length);
    let category = |key: DataType, value: DataType| Dictionary(Box::new(key), Box::new(value));
    let at = |unit, zone: Option<&str>| Timestamp(unit, zone.map(Into::into));
    for (one, other, merged) in [
        (Int32, Int64, "Int64"),
        (UInt8, Int8, "Int16"),
        (UInt32, Int32, "Int64"),
        (UInt64, Int64, "Int64"),
        (UInt16, UInt64, "UInt64"),
        (Int16, Float32, "Float32"),
        (Int64, Float32, "Float64"),
        (Float16, Float64, "Float64"),
        (Float16, Float32, "Float32"),
        (Null, Utf8, "Utf8"),
        (Utf8, LargeUtf8, "LargeUtf8"),
        (Utf8, Binary, "Binary"),
        (FixedSizeBinary(4), FixedSizeBinary(16), "Binary"),
        (FixedSizeBinary(4), LargeBinary, "LargeBinary"),
        (Decimal128(10, 2), Decimal128(12, 5), "Decimal128(13, 5)"),
        (Decimal128(38, 2), Decimal128(38, 4), "Decimal256(40, 4)"),
        (Decimal128(5, 2), Int64, "Decimal128(22, 2)"),
        (Date32, Date64, "Date64"),
        (
            Time32(TimeUnit::Millisecond),
            Time64(TimeUnit::Microsecond),
            "Time64(µs)",
        ),
        (
            Duration(TimeUnit::Second),
            Duration(TimeUnit::Nanosecond),
            "Duration(ns)",
        ),
        (
            at(TimeUnit::Microsecond, None),
            at(TimeUnit::Nanosecond, None),
            "Timestamp(ns)",
        ),
        (
            at(TimeUnit::Second, Some("Europe/Berlin")),
            at(TimeUnit::Second, Some("UTC")),
            "Timestamp(s, \"UTC\")",
        ),
        (
            category(Int8, Utf8),
            category(Int16, Utf8),
            "Dictionary(Int32, Utf8)",
        ),
        (
            category(Int8, Utf8),
            category(Int8, Utf8),
            "Dictionary(Int32, Utf8)",
        ),
        (
            category(Int8, Utf8),
            category(Int64, LargeUtf8),
            "Dictionary(Int64, LargeUtf8)",
        ),
        (category(Int8, Utf8), Utf8, "Utf8"),
        (list("item", Int32), list("element", Int64), "List(Int64)"),
        (fixed(2), fixed(3), "List(Float32)"),
        (fixed(2), list("element", Float64), "List(Float64)"),
    ] {
        for (first, second) in [(&one, &other), (&other, &one)] {
            let found = merge_types(first, second).unwrap_or_else(|| panic!("{first} and {second}"));
            // The names of items are those of the first type.
            if first == &one || !first.is_nested() {
                assert_eq!(found.to_string(), merged, "{first} and {second}");
            }
            // The merged column holds both.
            for part in [first, second] {
                assert_eq!(
                    merge_types(&found, part),
                    Some(found.clone()),
                    "{found} and {part}"
                );
            }
        }
    }
    assert_eq!(
        merge_types(&image(Null), &image(Utf8)).unwrap().to_string(),
        r#"Struct("bytes": non-null Binary, "path": Utf8)"#
    );
    let bytes = Struct(fields(&[("path", LargeUtf8), ("size", Int8)]));
    assert_eq!(
        merge_types(&image(Utf8), &bytes).unwrap().to_string(),
        r#"Struct("bytes": Binary, "path": non-null LargeUtf8, "size": Int8)"#
    );
    for (one, other) in [
        (Utf8, Int64),
        (Boolean, Int8),
        (Utf8, FixedSizeBinary(16)),
        (Decimal128(10, 2), Float64),
        (Decimal256(76, 2), Decimal256(76, 4)),
        (at(TimeUnit::Second, None), at(TimeUnit::Second, Some("UTC"))),
        (Date32, at(TimeUnit::Second, None)),
        (image(Utf8), Binary),
        (image(Utf8), image(Int8)),
        (list("item", Int32), list("item", Utf8)),
        (category(Int8, Utf8), Int8),
    ] {
        assert_eq!(merge_types(&one, &other), None, "{one} and {other}");
        assert_eq!(merge_types(&other, &one), None, "{other} and {one}");
    }
}

#[test]
fn metadata_that_differs_is_left_out_but_extension_types_have_to_agree() {
    let field = |metadata: &[(&str, &str)]| {
        let metadata = metadata
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Field::new("a", DataType::FixedSizeBinary(16), true).with_metadata(metadata.collect())
    };
    let uuid = ("ARROW:extension:name", "arrow.uuid");
    let other = ("ARROW:extension:name", "other");
    let id = |id| ("PARQUET:field_id", id);
    let merge = |one: &[_], other: &[_]| merge_fields(&field(one), &field(other));
    assert_eq!(merge(&[id("1")], &[id("2")]), Some(field(&[])));
    assert_eq!(merge(&[id("1"), uuid], &[uuid]), Some(field(&[uuid])));
    assert_eq!(merge(&[uuid], &[]), Some(field(&[])));
    assert_eq!(merge(&[uuid], &[other]), None);
}

fn batch(column: &ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([("a", Arc::clone(column), true)]).unwrap()
}

fn display(column: &ArrayRef) -> Vec<String> {
    let options = FormatOptions::new().with_null("null");
    let formatter = ArrayFormatter::try_new(column, &options).unwrap();
    (0..column.len())
        .map(|row| formatter.value(row).to_string())
        .collect()
}

/// Rows of objects with these columns `a`, as one table.
fn rows(columns: &[ArrayRef]) -> Result<Vec<String>> {
    let mut merger = SchemaMerger::new(MergeRule::default(), 8);
    let key = |index: usize| Arc::<str>::from(format!("{index}.parquet"));
    for (index, column) in columns.iter().enumerate() {
        merger.add(&key(index), batch(column).schema_ref())?;
    }
    let all = merger.schema();
    let mut rows = Vec::new();
    for (index, column) in columns.iter().enumerate() {
        let batch = batch(column);
        let mapping = merger.mapping(&key(index), batch.schema_ref(), &all)?;
        let mapped = mapping.apply(&batch)?;
        assert_eq!(mapped.schema(), all);
        rows.extend(display(mapped.column(0)));
    }
    Ok(rows)
}

#[test]
fn values_of_other_types_are_converted_or_an_error() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("cat"), None]));
    let categories: DictionaryArray<Int8Type> = vec![Some("dog"), None, Some("dog")].into_iter().collect();
    let large = LargeStringArray::from(vec!["bird"]);
    let nulls = new_null_array(&DataType::Null, 1);
    let all: [ArrayRef; 4] = [texts, Arc::new(categories), Arc::new(large), nulls];
    assert_eq!(
        rows(&all).unwrap(),
        ["cat", "null", "dog", "null", "dog", "bird", "null"]
    );

    let small: ArrayRef = Arc::new(Int8Array::from(vec![-1]));
    let long = |value| -> ArrayRef { Arc::new(UInt64Array::from(vec![value])) };
    let float: ArrayRef = Arc::new(Float32Array::from(vec![0.5]));
    let whole: ArrayRef = Arc::new(Int64Array::from(vec![(1 << 53) + 1]));
    assert_eq!(
        rows(&[Arc::clone(&small), long(1 << 63 >> 1)]).unwrap(),
        ["-1", "4611686018427387904"]
    );
    assert_eq!(
        rows(&[Arc::clone(&float), Arc::clone(&small)]).unwrap(),
        ["0.5", "-1.0"]
    );
    for (columns, message) in [
        ([small, long(1 << 63)], "does not fit Int64"),
        ([float, whole], "expected whole numbers that Float64 holds"),
    ] {
        let error = rows(&columns).unwrap_err().to_string();
        assert!(error.starts_with("a value of the column `a` "), "{error}");
        assert!(error.contains(message), "{error}");
    }
}

/// 200 categories do not fit keys of 8 bits.
#[test]
fn dictionaries_of_several_objects_have_room_for_all_values() {
    let categories = |from: usize| -> ArrayRef {
        let words: Vec<_> = (from..from + 100).map(|word| format!("word {word}")).collect();
        let array: DictionaryArray<Int8Type> = words.iter().map(|word| Some(word.as_str())).collect();
        Arc::new(array)
    };
    let found = rows(&[categories(0), categories(100)]).unwrap();
    assert_eq!((found.len(), found[199].as_str()), (200, "word 199"));
}

#[test]
fn errors_name_the_object_from_which_a_type_comes() {
    let one: &[_] = &[("a", DataType::Null, true)];
    let two: &[_] = &[("a", DataType::Utf8, true)];
    let error = merge(MergeRule::default(), &[one, two, two, &[("a", INT, true)]]).unwrap_err();
    let message = "the columns of `3.parquet` differ from those of `1.parquet`: expected column `a` of type Utf8, found Int64; \
                   leave it out, or cast it in the query";
    assert_eq!(error.to_string(), message);
}

/// Converted columns take memory that admission has to count.
#[test]
fn converted_values_are_counted() {
    let dictionary = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    for (from, to, bytes) in [
        (DataType::Int64, DataType::Int64, 0),
        (DataType::Int32, DataType::Int64, 9),
        (DataType::Utf8, DataType::LargeUtf8, 8),
        (DataType::Null, DataType::Utf8, 17),
        (DataType::FixedSizeBinary(16), DataType::Binary, 24),
        (dictionary, DataType::Utf8, CONVERTED_BYTES),
    ] {
        assert_eq!(converted_bytes(&from, &to), bytes, "{from} to {to}");
    }
}

#[test]
fn a_table_may_have_no_columns() {
    let mut merger = SchemaMerger::new(rule(false, SchemaRule::Same), 8);
    let none: Arc<str> = "none".into();
    merger.add(&none, &Schema::empty()).unwrap();
    merger.add(&"other".into(), &Schema::empty()).unwrap();
    let all = merger.schema();
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(3));
    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).unwrap();
    let fitted = merger
        .mapping(&none, &Schema::empty(), &all)
        .unwrap()
        .apply(&batch)
        .unwrap();
    assert_eq!(fitted.num_rows(), 3);
}
