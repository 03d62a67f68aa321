//! What the first rows tell.

use arrow_schema::{DataType, Field, Fields};
use bytes::Bytes;

use super::*;

fn infer(text: &str, is_cut: bool, max_columns: usize) -> Result<Table> {
    let head = Head {
        bytes: Bytes::copy_from_slice(text.as_bytes()),
        cut: is_cut,
    };
    let limits = TableLimits {
        max_columns,
        ..TableLimits::default()
    };
    Table::infer(&head, &limits)
}

fn inferred(text: &str) -> Result<Vec<(String, DataType)>> {
    let table = infer(text, false, usize::MAX)?;
    let field = |field: &Arc<Field>| (field.name().clone(), field.data_type().clone());
    Ok(table.schema.fields().iter().map(field).collect())
}

#[test]
fn types_are_those_of_all_rows() {
    let found =
        inferred("{\"b\": 1, \"a\": null}\n{\"a\": [{\"x\": true}], \"b\": 1.5, \"c\": \"t\"}\n").unwrap();
    let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["b", "a", "c"]);
    assert_eq!(found[0].1, DataType::Float64);
    let inner = Fields::from(vec![Field::new("x", DataType::Boolean, true)]);
    let item = Field::new_list_field(DataType::Struct(inner), true);
    assert_eq!(found[1].1, DataType::List(Arc::new(item)));
    assert_eq!(found[2].1, DataType::Utf8);
}

#[test]
fn types_that_do_not_fit_are_told() {
    let error = inferred("{\"a\": {\"b\": 1}}\n{\"a\": {\"b\": \"x\"}}")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("found a string, expected a number as before in `b`"),
        "{error}"
    );
    assert!(error.contains("line 2"), "{error}");
    assert!(
        inferred("[1]")
            .unwrap_err()
            .to_string()
            .contains("an object in each line")
    );
    assert!(inferred("{\"a\": ").is_err());
    assert!(infer("{\"a\": 1}\n{\"a\": 1", true, 1).is_ok());
}

#[test]
fn a_row_of_many_names_ends_at_the_limit() {
    let row = |names: &mut dyn Iterator<Item = u32>| {
        let members: Vec<_> = names.map(|name| format!("\"n{name}\": {name}")).collect();
        format!("{{{}}}\n", members.join(", "))
    };
    // The second row has the names of the first in another order: they are found, and not added.
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
        assert_eq!(error.kind(), crate::ErrorKind::TooLarge, "{error}");
    }
}

#[test]
fn numbers_have_the_type_that_holds_all_of_them() {
    let of = |numbers: &[&str]| {
        let rows = numbers.iter().map(|number| format!("{{\"a\": {number}}}\n"));
        inferred(&rows.collect::<String>()).map(|found| found[0].1.clone())
    };
    for (numbers, data_type) in [
        (&["1", "-2"][..], DataType::Int64),
        (&["1", "18446744073709551615"], DataType::UInt64),
        (&["1", "2.0"], DataType::Float64),
        (&["1", "NaN", "-Infinity"], DataType::Float64),
        (&["-1", "18446744073709551616"], DataType::Float64),
    ] {
        assert_eq!(of(numbers).unwrap(), data_type, "{numbers:?}");
    }
    for numbers in [
        &["-1", "18446744073709551615"][..],
        &["1.5", "9007199254740993"],
        &["123456789012345678901"],
        &["1e400"],
    ] {
        let error = of(numbers).unwrap_err().to_string();
        let line = numbers.len();
        let says = format!(
            "in line {line}: found `{}`, expected a number of a type",
            numbers[line - 1]
        );
        assert!(error.contains(&says) && error.ends_with(" in `a`"), "{error}");
    }
}

#[test]
fn names_that_stand_twice_in_an_object_are_errors() {
    for text in [
        "{\"a\": 1}\n{\"a\": 1, \"a\": 1}",
        "{}\n{\"b\": [{\"a\": 1, \"c\": 2, \"a\": 1}]}",
    ] {
        let error = inferred(text).unwrap_err().to_string();
        assert!(
            error.contains("in line 2: found the name `a` twice in one object"),
            "{error}"
        );
    }
    // In two objects of one row.
    assert!(inferred("{\"b\": [{\"a\": 1}, {\"a\": 2}]}").is_ok());
}

#[test]
fn what_is_nested_too_deep_is_an_error() {
    let nested = |depth: usize| format!("{{\"a\": {}1{}}}", "[".repeat(depth), "]".repeat(depth));
    assert!(inferred(&nested(127)).is_ok());
    let error = inferred(&nested(128)).unwrap_err().to_string();
    assert!(error.contains("nested deeper than 128"), "{error}");
    assert!(inferred(&nested(400_000)).is_err());
}

/// Each of the rows after the first takes 8 bytes in each of its columns, and two in the text.
#[test]
fn record_batches_of_many_columns_have_few_rows() {
    let names: Vec<_> = (0..10_000).map(|name| format!("\"n{name}\": 1")).collect();
    let text = format!("{{{}}}\n{}", names.join(", "), "{}\n".repeat(100_000));
    assert_eq!(infer(&text, false, 10_000).unwrap().batch_rows, 209);
    assert_eq!(
        infer("{\"a\": 1}\n{}", false, 10).unwrap().batch_rows,
        crate::limits::BATCH_ROWS
    );
}

#[test]
fn a_row_that_does_not_end_within_the_head_is_an_error() {
    let error = infer("{\"a\": \"x", true, 10).unwrap_err().to_string();
    assert!(
        error.contains("the first row of the JSON lines has more than 8 bytes"),
        "{error}"
    );
}
