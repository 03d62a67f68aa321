//! Values after the first MiB, from which the types are inferred: late values fit without loss, or are errors with their line.
//! CSV columns whose values disagree within the first MiB are text.

mod any;
mod csv;
mod json;

use arrow_cast::display::{ArrayFormatter, FormatOptions};

use super::*;

/// The expected result of a late value: the text that Arrow displays, or a part of the error.
type Expected = Result<&'static str, &'static str>;

/// Number of padded rows that exceed a MiB.
const ROWS: usize = 150;

fn padding() -> String {
    "x".repeat(8000)
}

fn csv_with(values: impl IntoIterator<Item = &'static str>) -> String {
    let padding = padding();
    let rows = values.into_iter().map(|value| format!("{padding},{value}\n"));
    format!("k,v\n{}", rows.collect::<String>())
}

fn display(table: &Table, column: usize) -> Vec<String> {
    let options = FormatOptions::new().with_null("null");
    let display_batch = |batch: &RecordBatch| {
        let column = Arc::clone(batch.column(column));
        let formatter = ArrayFormatter::try_new(&column, &options).unwrap();
        (0..column.len())
            .map(|row| formatter.value(row).to_string())
            .collect::<Vec<_>>()
    };
    table.batches().iter().flat_map(display_batch).collect()
}

/// Reads an object and compares the value of its last row, or the error, with the expected one.
fn check(name: &str, text: String, line: usize, column: &str, expected: Expected) {
    let query = format!("select(columns=[{column}])");
    let read = read_with(name, &query, Bytes::from(text), Limits::default());
    match (read, expected) {
        (Ok(table), Ok(value)) => assert_eq!(display(&table, 0).last().unwrap(), value),
        (Ok(table), Err(_)) => panic!("found {:?}, expected an error", display(&table, 0).last()),
        (Err(error), expected) => {
            assert_eq!(error.kind(), ErrorKind::Undecodable, "{error}");
            let error = error.to_string();
            let message = expected.expect_err(&error);
            assert!(error.contains(&format!(" in line {line}: ")), "{line}: {error}");
            assert!(error.contains(message), "{message}: {error}");
        }
    }
}

/// The error of a value has the first line of its row.
#[test]
fn errors_have_the_first_line_of_the_row() {
    let pretty = "{\n  \"a\": 1,\n  \"b\": [\n    1\n  ]\n}\n\n";
    let text = format!("{pretty}{pretty}{{\n  \"a\": true\n}}");
    let found = error("a.jsonl", "select", text);
    assert!(
        found.contains("in line 15: expected a number as in the rows before, found true or false"),
        "{found}"
    );
    let rows = pretty.repeat(40_000);
    let late = format!("{rows}\n \n{{\n  \"a\": 1.5}}\n{pretty}");
    check("a.jsonl", late, 280_003, "a", Err("found `1.5`"));
    let quoted = "\"two\nlines\",1\n".repeat(100_000);
    check(
        "a.csv",
        format!("k,v\n{quoted}\n\n\"x\ny\",1.5\n"),
        200_004,
        "v",
        Err("found `1.5`"),
    );
}
