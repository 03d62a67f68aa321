use arrow_array::{Array as _, Int64Array, cast::AsArray as _, types::Int64Type};

use super::*;

fn schema(columns: &[(&str, DataType, bool)]) -> Schema {
    let field = |(name, kind, nullable): &(&str, DataType, bool)| Field::new(*name, kind.clone(), *nullable);
    Schema::new(columns.iter().map(field).collect::<Vec<_>>())
}

fn rule(key: bool, schema: SchemaRule) -> OneTable {
    OneTable { key, schema }
}

const INT: DataType = DataType::Int64;

/// The columns of several tables as one, or why they are none.
fn together(rule: OneTable, tables: &[&[(&str, DataType, bool)]]) -> Result<String> {
    let mut several = Several::new(rule, 4);
    for (index, table) in tables.iter().enumerate() {
        several.add(&format!("{index}.parquet").into(), &schema(table))?;
    }
    let all = several.schema();
    let columns = all.fields().iter().map(|field| {
        let null = if field.is_nullable() { "?" } else { "" };
        format!("{}: {}{null}", field.name(), field.data_type())
    });
    Ok(columns.collect::<Vec<_>>().join(", "))
}

#[test]
fn columns_agree_or_are_told() {
    let same = rule(false, SchemaRule::Same);
    let ab: &[_] = &[("a", INT, false), ("b", DataType::Utf8, true)];
    assert_eq!(together(same, &[ab, ab]).unwrap(), "a: Int64, b: Utf8?");
    let null: &[_] = &[("a", INT, true), ("b", DataType::Utf8, false)];
    assert_eq!(together(same, &[ab, null]).unwrap(), "a: Int64?, b: Utf8?");
    assert_eq!(
        together(rule(true, SchemaRule::Same), &[ab]).unwrap(),
        "key: Utf8, a: Int64, b: Utf8?"
    );
    let ba: &[_] = &[("b", DataType::Utf8, true), ("a", INT, false)];
    let union = rule(false, SchemaRule::Union);
    let other: &[_] = &[("c", INT, false), ("a", INT, false)];
    assert_eq!(
        together(union, &[ab, other]).unwrap(),
        "a: Int64, b: Utf8?, c: Int64?"
    );
    let five = ["c", "d", "e"].map(|name| (name, INT, false));
    let faults = [
        together(same, &[ab, ba]),
        together(same, &[ab, &ab[..1]]),
        together(same, &[ab, &[("a", INT, false), ("x", INT, false)]]),
        together(
            same,
            &[ab, &[("a", DataType::Utf8, false), ("b", DataType::Utf8, true)]],
        ),
        together(union, &[ab, &[("a", DataType::Utf8, false)]]),
        together(union, &[&[("a", INT, false), ("a", INT, false)], ab]),
        together(union, &[ab, &five]),
        together(rule(true, SchemaRule::Union), &[&[("key", INT, false)]]),
    ];
    let faults = faults.map(|fault| fault.unwrap_err().to_string());
    insta::assert_snapshot!(faults.join("\n"));
}

#[test]
fn rows_get_what_their_table_lacks() {
    let mut several = Several::new(rule(true, SchemaRule::Union), 8);
    let (one, two): (Arc<str>, Arc<str>) = ("one".into(), "two".into());
    let (first, second) = (
        schema(&[("a", INT, false)]),
        schema(&[("b", INT, false), ("a", INT, false)]),
    );
    several.add(&one, &first).unwrap();
    several.add(&two, &second).unwrap();
    let all = several.schema();
    let fit = |key: &Arc<str>, schema: &Schema, columns: Vec<Vec<i64>>| {
        let columns = columns
            .into_iter()
            .map(|values| Arc::new(Int64Array::from(values)) as ArrayRef);
        let batch = RecordBatch::try_new(Arc::new(schema.clone()), columns.collect()).unwrap();
        several.fitting(key, schema, &all).unwrap().fit(&batch).unwrap()
    };
    let added = |key, schema| several.fitting(key, schema, &all).unwrap().added_bytes();
    assert_eq!((added(&one, &first), added(&two, &second)), (3 + 8 + 9, 3 + 8));
    let rows = fit(&one, &first, vec![vec![1, 2]]);
    assert_eq!(rows.column(0).as_string::<i32>().value(1), "one");
    assert_eq!(rows.column(1).as_primitive::<Int64Type>().values(), &[1, 2]);
    assert_eq!(rows.column(2).null_count(), 2);
    let rows = fit(&two, &second, vec![vec![7], vec![8]]);
    let values = [1, 2].map(|column| rows.column(column).as_primitive::<Int64Type>().value(0));
    assert_eq!(values, [8, 7]);
    // What has changed since is seen.
    for other in [
        schema(&[("a", DataType::Utf8, false)]),
        schema(&[("a", INT, true)]),
        schema(&[("x", INT, false)]),
    ] {
        let error = several.fitting(&one, &other, &all).unwrap_err().to_string();
        assert!(error.contains("was it replaced?"), "{error}");
    }
}

/// A wide table beside a long one: what the long one lacks takes memory, which has to be known.
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
    let mut several = Several::new(rule(false, SchemaRule::Same), 8);
    let none: Arc<str> = "none".into();
    several.add(&none, &Schema::empty()).unwrap();
    several.add(&"other".into(), &Schema::empty()).unwrap();
    let all = several.schema();
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(3));
    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).unwrap();
    let fitted = several
        .fitting(&none, &Schema::empty(), &all)
        .unwrap()
        .fit(&batch)
        .unwrap();
    assert_eq!(fitted.num_rows(), 3);
}
