//! Comparison with answers of `DuckDB` and pyarrow to queries over small files (`scripts/golden_tables.py`).

use std::{fs, path::Path, sync::Arc};

use arrow_array::{Array as _, ArrayRef, RecordBatch, cast::AsArray as _, types::Float64Type};
use arrow_schema::DataType;
use bytes::Bytes;
use pushdown::{Context, Pipeline, Sample, Table};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    file: String,
    pipeline: String,
    answer: String,
    /// Whether the types have to be equal, too.
    types: bool,
}

/// Maximum relative difference of sums and other floating-point results. These depend on the order of additions.
const TOLERANCE: f64 = 1e-12;

#[test]
fn every_query_agrees_with_duckdb_and_pyarrow() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let answers = root.join("tests/golden/tables");
    let cases = fs::read(answers.join("cases.json")).expect("the cases exist");
    let cases: Vec<Case> = serde_json::from_slice(&cases).expect("valid cases");
    assert!(cases.len() >= 60, "only {} cases", cases.len());
    let faults: Vec<_> = cases
        .iter()
        .filter_map(|case| {
            let object =
                fs::read(root.join("../testkit/fixtures/tables").join(&case.file)).expect("the file exists");
            let fault = check(case, object.into(), &expected(&answers.join(&case.answer))).err()?;
            Some(format!("{}: {}\n    {fault}", case.file, case.pipeline))
        })
        .collect();
    assert!(
        faults.is_empty(),
        "{} of {} cases differ:\n{}",
        faults.len(),
        cases.len(),
        faults.join("\n")
    );
}

/// The rows of an Arrow file.
fn expected(path: &Path) -> RecordBatch {
    let file = fs::File::open(path).expect("the answer exists");
    let reader = arrow_ipc::reader::FileReader::try_new(file, None).expect("an Arrow file");
    let schema = reader.schema();
    let batches: Vec<_> = reader.collect::<Result<_, _>>().expect("a complete file");
    arrow_select::concat::concat_batches(&schema, &batches).expect("one schema")
}

fn check(case: &Case, object: Bytes, expected: &RecordBatch) -> Result<(), String> {
    let pipeline = Pipeline::parse(&case.pipeline).map_err(|error| error.to_string())?;
    let context = Context::new(case.file.as_bytes());
    let found = pipeline
        .run(0..1, Sample::Bytes(object), &context)
        .map_err(|error| error.to_string())?;
    let Sample::Table(found) = found else {
        return Err("expected a table".to_owned());
    };
    let found = single_batch(&found);
    if (found.num_rows(), found.num_columns()) != (expected.num_rows(), expected.num_columns()) {
        let sizes = (
            found.num_rows(),
            found.num_columns(),
            expected.num_rows(),
            expected.num_columns(),
        );
        return Err(format!("rows and columns {sizes:?}"));
    }
    for (index, field) in expected.schema().fields().iter().enumerate() {
        let (ours, theirs) = (found.column(index), expected.column(index));
        let name = field.name();
        if found.schema().field(index).name() != name {
            return Err(format!(
                "column {}, expected {name}",
                found.schema().field(index).name()
            ));
        }
        if case.types && ours.data_type() != &plain(theirs.data_type()) {
            return Err(format!(
                "{name} is {}, expected {}",
                ours.data_type(),
                theirs.data_type()
            ));
        }
        if let DataType::Decimal128(_, scale) = ours.data_type()
            && ours.data_type() != theirs.data_type()
        {
            let float = |column| {
                arrow_cast::cast(column, &DataType::Float64).map_err(|error| format!("{name}: {error}"))
            };
            // The scale of computed decimals may differ.
            if !is_near(&float(ours)?, &float(theirs)?, 10_f64.powi(-i32::from(*scale))) {
                return Err(format!("{name} is\n{ours:?}\nexpected\n{theirs:?}"));
            }
            continue;
        }
        let theirs =
            arrow_cast::cast(theirs, ours.data_type()).map_err(|error| format!("{name}: {error}"))?;
        if !is_same(ours, &theirs) {
            return Err(format!("{name} is\n{ours:?}\nexpected\n{theirs:?}"));
        }
    }
    Ok(())
}

fn single_batch(table: &Table) -> RecordBatch {
    arrow_select::concat::concat_batches(table.schema(), table.batches()).expect("batches of one schema")
}

/// The type with Parquet's name for the entries of maps. That name is not part of the type.
fn plain(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Map(entries, sorted) => {
            let entries = entries.as_ref().clone().with_name("key_value");
            DataType::Map(Arc::new(entries), *sorted)
        }
        other => other.clone(),
    }
}

fn is_same(ours: &ArrayRef, theirs: &ArrayRef) -> bool {
    match ours.data_type() {
        DataType::Float64 => is_near(ours, theirs, 0.0),
        _ => ours == theirs,
    }
}

/// Whether numbers differ by at most the relative tolerance, or by at most `max_abs`.
fn is_near(ours: &ArrayRef, theirs: &ArrayRef, max_abs: f64) -> bool {
    let (ours, theirs) = (
        ours.as_primitive::<Float64Type>(),
        theirs.as_primitive::<Float64Type>(),
    );
    ours.iter().zip(theirs).all(|pair| match pair {
        (Some(one), Some(other)) => {
            one.to_bits() == other.to_bits() || (one - other).abs() <= (TOLERANCE * other.abs()).max(max_abs)
        }
        (one, other) => one.is_none() && other.is_none(),
    })
}
