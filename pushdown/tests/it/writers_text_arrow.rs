//! Text and Arrow IPC files of many writers with many options (`scripts/writers_text_arrow.py`), compared with what the writer
//! itself reads. Errors name unsupported features.

use std::{fs, path::Path};

use arrow_array::{Array as _, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use bytes::Bytes;
use pushdown::{Context, Pipeline, Sample, Table};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    file: String,
    pipeline: String,
    #[serde(flatten)]
    expected: Expected,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Expected {
    /// The file with the rows.
    Answer(String),
    /// A part of the error message.
    Error(String),
}

#[test]
fn every_file_is_read_as_its_writer_reads_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/writers_text_arrow");
    let cases = fs::read(folder.join("cases.json")).expect("the cases exist");
    let cases: Vec<Case> = serde_json::from_slice(&cases).expect("valid cases");
    assert!(cases.len() >= 200, "only {} cases", cases.len());
    let faults: Vec<_> = cases
        .iter()
        .filter_map(|case| {
            let fault = check(case, &folder).err()?;
            Some(format!("{}, {}: {fault}", case.file, case.pipeline))
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

fn check(case: &Case, folder: &Path) -> Result<(), String> {
    let object = Bytes::from(fs::read(folder.join(&case.file)).expect("the file exists"));
    let pipeline = Pipeline::parse(&case.pipeline).map_err(|error| error.to_string())?;
    let found = pipeline.run(0..1, Sample::Bytes(object), &Context::new(case.file.as_bytes()));
    match (found, &case.expected) {
        (Ok(Sample::Table(found)), Expected::Answer(file)) => compare(&found, &answer(&folder.join(file))),
        (Err(error), Expected::Error(text)) if error.to_string().contains(text) => Ok(()),
        (Err(error), Expected::Error(text)) => Err(format!("{error}, expected {text}")),
        (Err(error), Expected::Answer(_)) => Err(error.to_string()),
        (Ok(_), _) => Err("found rows, expected an error".to_owned()),
    }
}

fn answer(path: &Path) -> Table {
    let file = fs::File::open(path).expect("the answer exists");
    let reader = arrow_ipc::reader::FileReader::try_new(file, None).expect("an Arrow file");
    let schema = reader.schema();
    let batches: Vec<RecordBatch> = reader.collect::<Result<_, _>>().expect("a complete file");
    Table::new(schema, batches).expect("a table")
}

fn compare(found: &Table, expected: &Table) -> Result<(), String> {
    let (ours, theirs) = (columns(found), columns(expected));
    let names = |columns: &[(String, Vec<String>)]| -> Vec<String> {
        columns.iter().map(|(name, _)| name.clone()).collect()
    };
    if names(&ours) != names(&theirs) {
        return Err(format!(
            "columns {:?}, expected {:?}",
            names(&ours),
            names(&theirs)
        ));
    }
    for (index, ((name, ours), (_, theirs))) in ours.iter().zip(&theirs).enumerate() {
        if ours != theirs {
            let pairs = ours.iter().zip(theirs).enumerate();
            let first = pairs.into_iter().find(|(_, (ours, theirs))| ours != theirs);
            return Err(format!(
                "`{name}` of type {}, {} and {} rows, differs first in {first:?}",
                found.schema().field(index).data_type(),
                ours.len(),
                theirs.len()
            ));
        }
    }
    Ok(())
}

/// The names of columns, and their values as texts. These do not depend on the width and unit of the values.
fn columns(table: &Table) -> Vec<(String, Vec<String>)> {
    let fields = table.schema().fields().iter().enumerate();
    fields
        .map(|(index, field)| {
            let values = table.batches().iter().flat_map(|batch| texts(batch, index));
            (field.name().clone(), values.collect())
        })
        .collect()
}

fn texts(batch: &RecordBatch, column: usize) -> Vec<String> {
    let options = FormatOptions::new().with_null("null");
    let column = batch.column(column);
    let formatter = ArrayFormatter::try_new(column, &options).expect("a type with a text form");
    (0..column.len())
        .map(|row| formatter.value(row).to_string())
        .collect()
}
