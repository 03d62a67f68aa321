use arrow_array::{Array as _, Int64Array, cast::AsArray as _, types::Int64Type};

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
    let five = ["c", "d", "e"].map(|name| (name, INT, false));
    let faults = [
        merge(same, &[ab, ba]),
        merge(same, &[ab, &ab[..1]]),
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
