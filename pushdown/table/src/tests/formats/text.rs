//! CSV and JSON lines.

use super::*;

#[test]
fn csv_types_are_inferred_from_the_first_rows() {
    let table = read("t/a.csv", "select", CSV).unwrap();
    let expected = [
        ("id", &DataType::Int64),
        ("name", &DataType::Utf8),
        ("price", &DataType::Float64),
        ("day", &DataType::Date32),
        ("at", &DataType::Timestamp(TimeUnit::Second, None)),
        ("ok", &DataType::Boolean),
    ];
    assert_eq!(types(&table), expected);
    assert_eq!(int64s(&table, 0), [1, 2, 3]);
    let names = [Some("a, \"b\"".to_owned()), None, Some("two\nlines".to_owned())];
    assert_eq!(texts(&table, 1), names);
    let ok = table.batches()[0].column(5).as_boolean().clone();
    assert_eq!(ok, BooleanArray::from(vec![Some(true), None, Some(false)]));
}

#[test]
fn csv_is_read_by_columns_conditions_and_sql() {
    let table = read(
        "a.csv",
        "select(columns=[price, id], where=\"id <> 2\", limit=1)",
        CSV,
    )
    .unwrap();
    assert_eq!(
        types(&table),
        [("price", &DataType::Float64), ("id", &DataType::Int64)]
    );
    assert_eq!(int64s(&table, 1), [1]);
    let table = read(
        "a.csv",
        "sql(\"select count(*) as c, sum(id) as s from object\")",
        CSV,
    )
    .unwrap();
    assert_eq!((int64s(&table, 0), int64s(&table, 1)), (vec![3], vec![6]));
    let nested = "sql(\"select id from object where id <= (select max(id) from object) order by id\")";
    assert_eq!(int64s(&read("a.csv", nested, CSV).unwrap(), 0), [1, 2, 3]);
}

#[test]
fn csv_is_read_without_a_header_and_with_other_delimiters() {
    let table = read(
        "x",
        "select(format=csv, header=false, delimiter=\";\")",
        "1;a\n2;b\n",
    )
    .unwrap();
    assert_eq!(
        types(&table),
        [("column_1", &DataType::Int64), ("column_2", &DataType::Utf8)]
    );
    assert_eq!(int64s(&table, 0), [1, 2]);
    let table = read("a.tsv", "select", "a\tb\n1\tx, y\n").unwrap();
    assert_eq!(texts(&table, 1), [Some("x, y".to_owned())]);
    let table = read("a.csv", "select", "\u{feff}a,,c\n").unwrap();
    assert_eq!(table.rows(), 0);
    let names = [
        ("a", &DataType::Utf8),
        ("column_2", &DataType::Utf8),
        ("c", &DataType::Utf8),
    ];
    assert_eq!(types(&table), names);
}

#[test]
fn late_rows_that_do_not_fit_are_errors_with_their_line() {
    let mut text = "n,t\n".to_owned();
    for row in 0..200_000 {
        writeln!(text, "{row},word").unwrap();
    }
    let whole = read_with("a.csv", "select", Bytes::from(text.clone()), Limits::default()).unwrap();
    assert_eq!(whole.rows(), 200_000);
    text.push_str("many,word\n");
    let found = read_with("a.csv", "select", Bytes::from(text.clone()), Limits::default()).unwrap_err();
    let message =
        "malformed CSV in line 200002: expected Int64 in column `n` as in the first rows, found `many`";
    assert!(found.to_string().starts_with(message), "{found}");
    // Columns that are not selected are not checked.
    assert!(
        read_with(
            "a.csv",
            "select(columns=[t])",
            Bytes::from(text),
            Limits::default()
        )
        .is_ok()
    );

    let rows: Vec<_> = (0..100_000).map(|row| format!("{{\"n\": {row}}}\n\n")).collect();
    let mut text = rows.concat();
    text.push_str("{\"n\": 1, \"new\": 2}\n");
    let found = read_with("a.json", "select", Bytes::from(text), Limits::default()).unwrap_err();
    let message = "malformed JSON in line 200001: expected the names of the first rows, found `new`";
    assert_eq!(found.to_string(), message);
}

#[test]
fn malformed_csv_is_an_error_with_its_line() {
    for (text, message) in [
        ("a,b\n1,2\n3\n", "in line 3: wrong number of values: expected 2"),
        (
            "a,b\r\n1,2\r\n3,4,5\r\n",
            "in line 3: wrong number of values: expected 2",
        ),
        ("a,b\n1,\"2\n3,4\n", "in line 2: "),
        ("a\n1\n\"2\n3", "unclosed quote"),
        (
            "a\nx\0y\n",
            "in line 2: expected text in UTF-8, found a zero byte",
        ),
        (
            "a,a\n1,2\n",
            "expected unique names in the first row, found `a` twice",
        ),
        ("", "empty CSV"),
    ] {
        let error = error("a.csv", "select", text);
        assert!(error.contains(message), "{text:?}: {error}");
    }
    let in_header = error("a.csv", "select", &b"\xe9,b\n1,2\n"[..]);
    assert!(
        in_header.contains("in line 1: expected text in UTF-8, found invalid bytes"),
        "{in_header}"
    );
    let error = error("a.csv", "select", &b"a\n\xff\xfe\n"[..]);
    assert!(
        error.contains("in line 2: expected text in UTF-8, found invalid bytes"),
        "{error}"
    );
}

#[test]
fn json_columns_have_the_names_of_the_first_rows_in_order() {
    let table = read("a.jsonl", "select", JSON).unwrap();
    let at = [("x", DataType::Int64), ("y", DataType::Utf8)];
    let at = at.map(|(name, data_type)| Field::new(name, data_type, true));
    let tags = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
    let expected = Schema::new(vec![
        Field::new("id", DataType::Float64, true),
        Field::new("tags", tags, true),
        Field::new("at", DataType::Struct(at.to_vec().into()), true),
    ]);
    assert_eq!(**table.schema(), expected);
    assert_eq!(table.rows(), 3);
    for text in [
        "select(columns=[tags])",
        "select(columns=[at, id], where=\"id > 1\")",
    ] {
        let part = read("a.jsonl", text, JSON).unwrap();
        assert!(part.rows() > 0 && part.schema().fields().len() < 3);
    }
    let count = read("a.jsonl", "sql(\"select count(*) as c from object\")", JSON).unwrap();
    assert_eq!(int64s(&count, 0), [3]);
}

#[test]
fn malformed_json_is_an_error_with_its_line() {
    for (text, message) in [
        (
            "{\"a\": 1}\n{\"a\": \"x\"}",
            "expected a number as in the rows before, found a string",
        ),
        ("[{\"a\": 1}]", "an object in each line"),
        ("{\"a\": 1}\n{\"a\": ", "line 2"),
        ("", "no columns"),
        ("{}", "no columns"),
        ("{\"a\": 1}\nnonsense", "line 2"),
    ] {
        let error = error("a.json", "select", text);
        assert!(error.contains(message), "{text:?}: {error}");
    }
}

/// As in pandas 3.1.1 and pyarrow 26.0.1. `DuckDB` 2.0.1 and Polars 2.1.0 read the blank line of a single column as null.
#[test]
fn blank_csv_lines_are_skipped_and_backslashes_are_literal() {
    let table = read("a.csv", "select", "a\n\n1\n\r\n\"\"\n2\n\n").unwrap();
    assert_eq!(table.rows(), 3);
    assert_eq!(table.batches()[0].column(0).null_count(), 1);
    let error = read("a.csv", "select", "a,b\n\\N,c\\,\n\"\\\",1\n").unwrap_err();
    assert!(
        error.to_string().contains("in line 2: wrong number of values"),
        "{error}"
    );
    let table = read("a.csv", "select", "a,b\n\\N,1\n\"\\\",1\n").unwrap();
    assert_eq!(texts(&table, 0), [Some("\\N".to_owned()), Some("\\".to_owned())]);
}

#[test]
fn times_with_a_zone_compare_with_texts_and_times() {
    let text = "n,at\n1,2024-01-01T01:00:00+02:00\n2,2024-01-01T00:00:00Z\n3,2024-01-01T02:00:00Z\n";
    for (condition, rows) in [
        ("at >= '2024-01-01 00:00:00'", &[2, 3][..]),
        ("at < '2024-01-01T01:00:00+01:00'", &[1]),
        ("at = '2023-12-31 23:00:00Z'", &[1]),
        ("at > timestamp '2024-01-01 01:00:00'", &[3]),
    ] {
        let table = read("a.csv", &format!("select(where=\"{condition}\")"), text).unwrap();
        assert_eq!(int64s(&table, 0), rows, "{condition}");
    }
}

#[test]
fn a_byte_order_mark_is_skipped() {
    let with_bom = |text: &str| format!("\u{feff}{text}");
    for (name, query, text) in [
        ("a.csv", "select(header=false)", "1,a\n2,b\n"),
        ("a.csv", "select", CSV),
        ("a.csv", "select(header=false)", "\"a\nb\",1\n"),
        ("a.jsonl", "select", JSON),
    ] {
        let plain = read(name, query, text).unwrap();
        assert_eq!(read(name, query, with_bom(text)).unwrap(), plain, "{text}");
        let decompressed = read(name, query, gzip(with_bom(text).as_bytes())).unwrap();
        assert_eq!(decompressed, plain, "{text}");
    }
    assert_eq!(
        error("a.csv", "select", with_bom("")),
        error("a.csv", "select", "")
    );
    let malformed = error("a.csv", "select", with_bom("a,b\n1,2\n3\n"));
    assert!(malformed.contains("in line 3: "), "{malformed}");
}
