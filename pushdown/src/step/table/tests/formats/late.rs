//! Values after the first MiB, whose columns have their types from the values before: they fit without loss, or are errors
//! with their line. What disagrees within the first MiB is text in CSV.

mod any;
mod csv;
mod json;

use arrow_cast::display::{ArrayFormatter, FormatOptions};

use super::*;

/// What a late value of a column is: as Arrow displays it, or an error that says this of it.
type Late = Result<&'static str, &'static str>;

/// More than a MiB, in few rows.
const ROWS: usize = 150;

fn padding() -> String {
    "x".repeat(8000)
}

fn csv_with(values: impl IntoIterator<Item = &'static str>) -> String {
    let padding = padding();
    let rows = values.into_iter().map(|value| format!("{padding},{value}\n"));
    format!("k,v\n{}", rows.collect::<String>())
}

fn shown(table: &Table, column: usize) -> Vec<String> {
    let options = FormatOptions::new().with_null("null");
    let of = |batch: &RecordBatch| {
        let column = Arc::clone(batch.column(column));
        let formatter = ArrayFormatter::try_new(&column, &options).unwrap();
        (0..column.len())
            .map(|row| formatter.value(row).to_string())
            .collect::<Vec<_>>()
    };
    table.batches().iter().flat_map(of).collect()
}

/// Reads the object, and holds the value of its last row, or the error, against what is expected.
fn check(name: &str, text: String, line: usize, column: &str, late: Late) {
    let query = format!("select(columns=[{column}])");
    let read = read_with(name, &query, Bytes::from(text), Limits::default());
    match (read, late) {
        (Ok(table), Ok(value)) => assert_eq!(shown(&table, 0).last().unwrap(), value),
        (Ok(table), Err(_)) => panic!("found {:?}, expected an error", shown(&table, 0).last()),
        (Err(error), late) => {
            assert_eq!(error.kind(), ErrorKind::Undecodable, "{error}");
            let error = error.to_string();
            let says = late.expect_err(&error);
            assert!(error.contains(&format!(" in line {line}: ")), "{line}: {error}");
            assert!(error.contains(says), "{says}: {error}");
        }
    }
}

/// What is seen of a value of more than a line is where its row starts.
#[test]
fn lines_are_those_that_rows_start_in() {
    let pretty = "{\n  \"a\": 1,\n  \"b\": [\n    1\n  ]\n}\n\n";
    let text = format!("{pretty}{pretty}{{\n  \"a\": true\n}}");
    let found = error("a.jsonl", "select", text);
    assert!(found.contains("in line 15: found true or false"), "{found}");
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
