//! Properties of any bytes that are read as a table: the result is a table or an error, and the same table however it is read
//! (law 1). The same for images. The first byte of an input selects the query, the rest is the object. Also shards, whose members
//! do not depend on how they are read, SQL, whose planning is bounded, and heads of requests and bodies of uploads, which the
//! gateway verifies.
#![expect(clippy::panic, reason = "a fuzz target reports a defect by a panic")]

mod auth;
mod chunked;
mod crop;
mod image;
mod remote;
mod shard;
mod sql;

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use futures::StreamExt as _;
use pushdown::{
    Context, ErrorKind, Limits, Pipeline, Result, Sample, Scan, Table, TableBuilder, TableLimits,
    wire::{Compression, TableEncoder, TableForm},
};
use tokio::runtime::{Builder, Runtime};

pub use auth::auth;
pub use chunked::chunked;
pub use crop::crop;
pub use image::image;
use remote::RemoteObject;
pub use shard::shard;
pub use sql::sql;

/// Queries for Parquet objects. Column names are those of the files in `testkit/fixtures/tables`.
const PARQUET_QUERIES: [&str; 8] = [
    "select(format=parquet)",
    "select(format=parquet, limit=3)",
    "select(columns=[o_orderkey, o_totalprice], where='o_orderkey > 100 and o_totalprice < 150000', format=parquet)",
    "select(columns=[c_name, c_acctbal], where=\"c_mktsegment = 'BUILDING'\", format=parquet)",
    "select(where='p_size between 10 and 20', row_number=at, format=parquet)",
    "select(rows=[5, 500], format=parquet)",
    "sql('select count(*) as n from object', format=parquet)",
    "sql('select o_orderstatus, sum(o_totalprice) as s from object group by o_orderstatus order by s', format=parquet)",
];

/// Queries for texts.
const TEXT_QUERIES: [&str; 8] = [
    "select(format=csv)",
    "select(format=csv, header=false)",
    "select(format=csv, limit=3)",
    "select(columns=[o_orderkey], where='o_totalprice < 150000', format=csv)",
    "sql('select count(*) as n from object', format=csv)",
    "select(format=json)",
    "select(format=json, limit=2)",
    "sql('select count(*) as n from object', format=json)",
];

/// Queries for Arrow files and streams.
const ARROW_QUERIES: [&str; 4] = [
    "select(format=arrow)",
    "select(limit=3, format=arrow)",
    "select(rows=[1, 3], row_number=at, format=arrow)",
    "sql('select count(*) as n from object', format=arrow)",
];

/// Small enough for inputs to reach them.
const LIMITS: TableLimits = TableLimits {
    max_columns: 500,
    max_footer_bytes: 1 << 20,
    max_row_group_bytes: 8 << 20,
    max_batch_bytes: 8 << 20,
    max_inflated_bytes: 16 << 20,
    max_query_bytes: 8 << 20,
};

/// Errors that an object may cause. Any other error is a defect.
const EXPECTED_ERRORS: [ErrorKind; 4] = [
    ErrorKind::Undecodable,
    ErrorKind::Unsuitable,
    ErrorKind::TooLarge,
    ErrorKind::InvalidWire,
];

static RUNTIME: LazyLock<Option<Runtime>> =
    LazyLock::new(|| Builder::new_multi_thread().worker_threads(2).build().ok());

/// Checks a Parquet object.
pub fn parquet(input: &[u8]) {
    check_table(&PARQUET_QUERIES, input);
}

/// Checks a text, compressed or not.
pub fn text(input: &[u8]) {
    check_table(&TEXT_QUERIES, input);
}

/// Checks an Arrow file or stream.
pub fn arrow(input: &[u8]) {
    check_table(&ARROW_QUERIES, input);
}

/// Reads the object as a whole on this thread and in parts on other threads, and compares the results.
fn check_table(queries: &[&str], input: &[u8]) {
    let Some((choice, object)) = input.split_first() else {
        return;
    };
    let query = queries[usize::from(*choice) % queries.len()];
    let pipeline: Pipeline = match query.parse() {
        Ok(pipeline) => pipeline,
        Err(error) => panic!("{query}: {error}"),
    };
    let object = Bytes::copy_from_slice(object);
    let whole = pipeline.run(0..1, Sample::Bytes(object.clone()), &context());
    let whole = whole.and_then(|sample| match sample {
        Sample::Table(table) => encode(&table),
        other => panic!("{query}: {other:?}"),
    });
    let parts = read_in_parts(&pipeline, RemoteObject(object)).and_then(|table| encode(&table));
    match (whole, parts) {
        (Ok(whole), Ok(parts)) => assert!(whole == parts, "{query}: parts and whole have different rows"),
        (Err(whole), Err(parts)) => {
            for error in [whole, parts] {
                assert!(EXPECTED_ERRORS.contains(&error.kind()), "{query}: {error:?}");
            }
        }
        (whole, parts) => panic!(
            "{query}: whole {:?}, parts {:?}",
            whole.map(|bytes| bytes.len()),
            parts.map(|bytes| bytes.len())
        ),
    }
}

fn read_in_parts(pipeline: &Pipeline, object: RemoteObject) -> Result<Table> {
    let reading = async {
        let mut scan: Scan = pipeline.scan(0..1, Arc::new(object), &context()).await?;
        let max_bytes = context().limits.max_value_bytes;
        let mut table = TableBuilder::new(Arc::clone(scan.schema()), max_bytes);
        while let Some(batch) = scan.next().await {
            table.push(batch?)?;
        }
        Ok(table.build())
    };
    match &*RUNTIME {
        Some(runtime) => runtime.block_on(reading),
        None => panic!("cannot start threads"),
    }
}

/// The table as bytes. They can be compared although NaN is not equal to itself.
fn encode(table: &Table) -> Result<Vec<u8>> {
    let mut encoder = TableEncoder::new(TableForm::ArrowStream(Compression::None), table.schema())?;
    let mut bytes = Vec::new();
    for batch in table.batches() {
        encoder
            .write(batch)?
            .iter()
            .for_each(|piece| bytes.extend_from_slice(piece));
    }
    encoder
        .finish()?
        .iter()
        .for_each(|piece| bytes.extend_from_slice(piece));
    Ok(bytes)
}

fn context() -> Context<'static> {
    Context {
        limits: Limits {
            max_value_bytes: 32 << 20,
            tables: LIMITS,
            ..Limits::default()
        },
        ..Context::new(b"object")
    }
}

#[cfg(test)]
mod tests;
