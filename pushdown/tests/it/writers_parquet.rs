//! Parquet files of many writers with many options (`scripts/writers_parquet.py`), compared with what the writer itself reads.

use std::{fs, path::Path};

use arrow_array::{Array, RecordBatch, cast::AsArray as _, types::Int64Type};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;
use bytes::Bytes;
use pushdown::{Context, Pipeline, Sample, Table};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    file: String,
    answer: String,
}

#[test]
fn every_file_is_read_as_its_writer_reads_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/writers_parquet");
    let cases = fs::read(folder.join("cases.json")).expect("the cases exist");
    let cases: Vec<Case> = serde_json::from_slice(&cases).expect("valid cases");
    assert!(cases.len() >= 50, "only {} cases", cases.len());
    let faults: Vec<_> = cases
        .iter()
        .filter_map(|case| {
            let fault = check(case, &folder).err()?;
            Some(format!("{}: {fault}", case.file))
        })
        .collect();
    assert!(
        faults.is_empty(),
        "{} of {} files differ:\n{}",
        faults.len(),
        cases.len(),
        faults.join("\n")
    );
}

#[derive(Deserialize)]
struct Comparison {
    condition: String,
    rows: Vec<i64>,
}

#[test]
fn some_comparisons_find_the_rows_that_duckdb_finds() {
    check_comparisons(7);
}

#[test]
#[ignore = "a thousand queries: make test-full"]
fn every_comparison_finds_the_rows_that_duckdb_finds() {
    check_comparisons(1);
}

/// Compares every `step`th condition. Each row is a separate row group with statistics and a page index, so the test detects a row
/// group that is pruned by mistake.
fn check_comparisons(step: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/writers_parquet");
    let cases = fs::read(folder.join("comparisons.json")).expect("the conditions exist");
    let cases: Vec<Comparison> = serde_json::from_slice(&cases).expect("valid conditions");
    assert!(cases.len() >= 1_000, "only {} conditions", cases.len());
    let object = Bytes::from(fs::read(folder.join("comparisons.parquet")).expect("the file exists"));
    let mut faults = Vec::new();
    for (index, case) in cases.iter().enumerate().step_by(step) {
        let text = if index % 4 == 0 {
            format!(
                "sql({:?})",
                format!("select n from object where {}", case.condition)
            )
        } else {
            format!("select(columns=[n], where={:?})", case.condition)
        };
        let found = rows(&text, &object);
        if found != Ok(case.rows.clone()) {
            faults.push(format!("{}: {found:?}, expected {:?}", case.condition, case.rows));
        }
    }
    assert!(
        faults.is_empty(),
        "{} of {} conditions differ:\n{}",
        faults.len(),
        cases.len(),
        faults.join("\n")
    );
}

/// The numbers in the only column.
fn rows(pipeline: &str, object: &Bytes) -> Result<Vec<i64>, String> {
    let pipeline = Pipeline::parse(pipeline).map_err(|error| error.to_string())?;
    let sample = Sample::Bytes(object.clone());
    let found = pipeline.run(0..1, sample, &Context::new(b"comparisons.parquet"));
    match found.map_err(|error| error.to_string())? {
        Sample::Table(table) => Ok(table
            .batches()
            .iter()
            .flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec())
            .collect()),
        _ => Err("expected a table".to_owned()),
    }
}

fn check(case: &Case, folder: &Path) -> Result<(), String> {
    let answer = fs::File::open(folder.join(&case.answer)).expect("the answer exists");
    let reader = arrow_ipc::reader::FileReader::try_new(answer, None).expect("an Arrow file");
    let schema = reader.schema();
    let batches: Vec<RecordBatch> = reader.collect::<Result<_, _>>().expect("a complete file");
    let expected = Table::new(schema, batches).expect("a table");
    let object = fs::read(folder.join(&case.file)).expect("the file exists");
    let context = Context::new(case.file.as_bytes());
    let pipeline = Pipeline::parse("select").expect("a pipeline");
    let found = pipeline
        .run(0..1, Sample::Bytes(object.into()), &context)
        .map_err(|error| error.to_string())?;
    let Sample::Table(found) = found else {
        return Err("expected a table".to_owned());
    };
    let names = |table: &Table| -> Vec<String> {
        let fields = table.schema().fields().iter();
        fields.map(|field| field.name().clone()).collect()
    };
    if names(&found) != names(&expected) {
        return Err(format!(
            "columns {:?}, expected {:?}",
            names(&found),
            names(&expected)
        ));
    }
    for (index, name) in names(&found).iter().enumerate() {
        let (ours, theirs) = (texts(&found, index), texts(&expected, index));
        if ours != theirs {
            let pairs = ours.iter().zip(&theirs).enumerate();
            let first = pairs.into_iter().find(|(_, (ours, theirs))| ours != theirs);
            let data_type = found.schema().field(index).data_type().clone();
            return Err(format!(
                "`{name}` of type {data_type}, {} and {} rows, differs first in {first:?}",
                ours.len(),
                theirs.len()
            ));
        }
    }
    Ok(())
}

/// The values of a column as texts. These do not depend on the width and unit of the values.
fn texts(table: &Table, column: usize) -> Vec<String> {
    let batches = table.batches().iter();
    batches
        .flat_map(|batch| {
            let column = batch.column(column);
            (0..column.len())
                .map(|row| text(column.as_ref(), row))
                .collect::<Vec<_>>()
        })
        .collect()
}

fn text(array: &dyn Array, row: usize) -> String {
    if array.is_null(row) {
        return "null".to_owned();
    }
    let all = |array: &dyn Array| {
        let values: Vec<_> = (0..array.len()).map(|row| text(array, row)).collect();
        format!("[{}]", values.join(", "))
    };
    match array.data_type() {
        DataType::List(_) => all(array.as_list::<i32>().value(row).as_ref()),
        DataType::LargeList(_) => all(array.as_list::<i64>().value(row).as_ref()),
        DataType::FixedSizeList(..) => all(array.as_fixed_size_list().value(row).as_ref()),
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            format!(
                "{}: {}",
                all(entries.column(0).as_ref()),
                all(entries.column(1).as_ref())
            )
        }
        DataType::Struct(fields) => {
            let columns = fields.iter().zip(array.as_struct().columns());
            let values: Vec<_> = columns
                .map(|(field, column)| format!("{}: {}", field.name(), text(column.as_ref(), row)))
                .collect();
            format!("{{{}}}", values.join(", "))
        }
        DataType::Dictionary(..) => {
            let one = array.slice(row, 1);
            let dictionary = one.as_any_dictionary();
            text(dictionary.values().as_ref(), dictionary.normalized_keys()[0])
        }
        // The text of a span depends on its unit.
        DataType::Duration(_) | DataType::Interval(_) => {
            let whole = DataType::Interval(arrow_schema::IntervalUnit::MonthDayNano);
            let span = arrow_cast::cast(array, &whole).expect("spans are intervals");
            display(span.as_ref(), row)
        }
        _ => display(array, row),
    }
}

fn display(array: &dyn Array, row: usize) -> String {
    let options = FormatOptions::new();
    let formatter = ArrayFormatter::try_new(array, &options).expect("a type with a text form");
    formatter.value(row).to_string()
}
