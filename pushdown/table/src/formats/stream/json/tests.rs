//! Inference of columns from the first rows.

use arrow_schema::{DataType, Field, Fields};
use bytes::Bytes;

use super::*;

fn infer(text: &str, is_truncated: bool, max_columns: usize) -> Result<JsonTable> {
    let head = Head {
        bytes: Bytes::copy_from_slice(text.as_bytes()),
        is_truncated,
    };
    let limits = TableLimits {
        max_columns,
        ..TableLimits::default()
    };
    JsonTable::infer(&head, &limits)
}

fn inferred_types(text: &str) -> Result<Vec<(String, DataType)>> {
    let table = infer(text, false, usize::MAX)?;
    let field = |field: &Arc<Field>| (field.name().clone(), field.data_type().clone());
    Ok(table.schema.fields().iter().map(field).collect())
}

#[test]
fn types_are_inferred_from_all_rows() {
    let types =
        inferred_types("{\"b\": 1, \"a\": null}\n{\"a\": [{\"x\": true}], \"b\": 1.5, \"c\": \"t\"}\n")
            .unwrap();
    let names: Vec<_> = types.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["b", "a", "c"]);
    assert_eq!(types[0].1, DataType::Float64);
    let inner = Fields::from(vec![Field::new("x", DataType::Boolean, true)]);
    let item = Field::new_list_field(DataType::Struct(inner), true);
    assert_eq!(types[1].1, DataType::List(Arc::new(item)));
    assert_eq!(types[2].1, DataType::Utf8);
}

#[test]
fn values_of_another_type_are_errors() {
    let error = inferred_types("{\"a\": {\"b\": 1}}\n{\"a\": {\"b\": \"x\"}}")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("expected a number as in the rows before, found a string in column `b`"),
        "{error}"
    );
    assert!(error.contains("line 2"), "{error}");
    assert!(
        inferred_types("[1]")
            .unwrap_err()
            .to_string()
            .contains("an object in each line")
    );
    assert!(inferred_types("{\"a\": ").is_err());
    assert!(infer("{\"a\": 1}\n{\"a\": 1", true, 1).is_ok());
}

#[test]
fn the_number_of_names_is_limited() {
    let row = |names: &mut dyn Iterator<Item = u32>| {
        let members: Vec<_> = names.map(|name| format!("\"n{name}\": {name}")).collect();
        format!("{{{}}}\n", members.join(", "))
    };
    // The second row has the same names in another order, so it adds none.
    let text = [row(&mut (0..5000_u32)), row(&mut (0..5000_u32).rev())].concat();
    let table = infer(&text, false, 5000).unwrap();
    let fields = table.schema.fields();
    assert_eq!(fields.len(), 5000);
    assert_eq!(
        (fields[0].name().as_str(), fields[4999].name().as_str()),
        ("n0", "n4999")
    );
    for text in [text, format!("{{\"rows\": [{}]}}", row(&mut (0..4999_u32)))] {
        let error = infer(&text, false, 4999).unwrap_err();
        assert_eq!(error.kind(), pushdown_core::ErrorKind::TooLarge, "{error}");
    }
}

#[test]
fn a_column_of_numbers_has_the_type_that_holds_all_of_them() {
    let inferred_type = |numbers: &[&str]| {
        let rows = numbers.iter().map(|number| format!("{{\"a\": {number}}}\n"));
        inferred_types(&rows.collect::<String>()).map(|types| types[0].1.clone())
    };
    for (numbers, data_type) in [
        (&["1", "-2"][..], DataType::Int64),
        (&["1", "18446744073709551615"], DataType::UInt64),
        (&["1", "2.0"], DataType::Float64),
        (&["1", "NaN", "-Infinity"], DataType::Float64),
        (&["-1", "18446744073709551616"], DataType::Float64),
    ] {
        assert_eq!(inferred_type(numbers).unwrap(), data_type, "{numbers:?}");
    }
    for numbers in [
        &["-1", "18446744073709551615"][..],
        &["1.5", "9007199254740993"],
        &["123456789012345678901"],
        &["1e400"],
    ] {
        let error = inferred_type(numbers).unwrap_err().to_string();
        let line = numbers.len();
        let found = format!("found `{}` in column `a`", numbers[line - 1]);
        assert!(
            error.contains(&format!("in line {line}: expected a number whose type")),
            "{error}"
        );
        assert!(error.ends_with(&found), "{error}");
    }
}

#[test]
fn duplicate_names_in_an_object_are_errors() {
    for text in [
        "{\"a\": 1}\n{\"a\": 1, \"a\": 1}",
        "{}\n{\"b\": [{\"a\": 1, \"c\": 2, \"a\": 1}]}",
    ] {
        let error = inferred_types(text).unwrap_err().to_string();
        assert!(
            error.contains("in line 2: expected unique names in an object, found `a` twice"),
            "{error}"
        );
    }
    // The same name in two objects of one row is valid.
    assert!(inferred_types("{\"b\": [{\"a\": 1}, {\"a\": 2}]}").is_ok());
}

#[test]
fn rows_nested_too_deep_are_errors() {
    let nested = |depth: usize| format!("{{\"a\": {}1{}}}", "[".repeat(depth), "]".repeat(depth));
    assert!(inferred_types(&nested(127)).is_ok());
    let error = inferred_types(&nested(128)).unwrap_err().to_string();
    assert!(error.contains("at most 128 deep"), "{error}");
    assert!(inferred_types(&nested(400_000)).is_err());
}

/// Each row after the first takes two bytes in the text, but 8 bytes in each column.
#[test]
fn record_batches_of_many_columns_have_few_rows() {
    let names: Vec<_> = (0..10_000).map(|name| format!("\"n{name}\": 1")).collect();
    let text = format!("{{{}}}\n{}", names.join(", "), "{}\n".repeat(100_000));
    assert_eq!(infer(&text, false, 10_000).unwrap().batch_rows, 209);
    assert_eq!(
        infer("{\"a\": 1}\n{}", false, 10).unwrap().batch_rows,
        pushdown_core::limits::BATCH_ROWS
    );
}

#[test]
fn a_first_row_longer_than_the_head_is_an_error() {
    let error = infer("{\"a\": \"x", true, 10).unwrap_err().to_string();
    assert!(
        error.contains("first JSON row too long: expected at most 8 bytes"),
        "{error}"
    );
}
