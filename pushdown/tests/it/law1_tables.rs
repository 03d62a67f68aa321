//! Law 1 for tables: a step has the same result for a whole object and for parts of it, on any number of threads.

mod objects;

use std::{ops::Range, sync::Arc};

use arrow_array::{RecordBatch, cast::AsArray as _};
use arrow_schema::SchemaRef;
use arrow_select::take::take;
use bytes::Bytes;
use futures::{
    FutureExt as _, StreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use proptest::prelude::*;
use pushdown::{
    Context, Pipeline, Result, Sample, Source, Suffix, Table,
    wire::{Compression, TableEncoder, TableForm},
};
use tokio::runtime::Builder;

use objects::{GeneratedRows, object, pipeline, rows};

/// An object on another host: its ranges are not ready on the first poll, and its stream has pieces of `piece_bytes`.
#[derive(Debug)]
struct RemoteObject {
    bytes: Bytes,
    piece_bytes: usize,
}

impl Source for RemoteObject {
    fn suffix(&self, length: u64) -> BoxFuture<'static, Result<Suffix>> {
        let suffix = self.bytes.suffix(length.min(self.bytes.len() as u64 * 2 / 3));
        not_immediately().then(|()| suffix).boxed()
    }

    fn ranges(&self, ranges: Vec<Range<u64>>) -> BoxFuture<'static, Result<Vec<Bytes>>> {
        let parts = self.bytes.ranges(ranges);
        not_immediately().then(|()| parts).boxed()
    }

    fn stream(&self) -> BoxStream<'static, Result<Bytes>> {
        let pieces: Vec<_> = self
            .bytes
            .chunks(self.piece_bytes)
            .map(|piece| Ok(Bytes::copy_from_slice(piece)))
            .collect();
        stream::iter(pieces).boxed()
    }
}

/// Is not ready on the first poll.
async fn not_immediately() {
    tokio::task::yield_now().await;
}

fn encode(form: TableForm, table: &Table) -> Vec<u8> {
    let mut encoder = TableEncoder::new(form, table.schema()).unwrap();
    let mut parts = Vec::new();
    for batch in table.batches() {
        parts.extend(encoder.write(batch).unwrap());
    }
    parts.extend(encoder.finish().unwrap());
    parts.concat()
}

/// The schema of the table and the bytes of its rows, or the error.
type Outcome = std::result::Result<(SchemaRef, Vec<u8>), pushdown::Error>;

fn outcome(table: Result<Table>) -> Outcome {
    table.map(|table| {
        let rows = encode(TableForm::ArrowStream(Compression::None), &single_batch(&table));
        (Arc::clone(table.schema()), rows)
    })
}

/// The table with its rows in one record batch. Columns with a dictionary have their values in its place: how a dictionary numbers them
/// depends on where the batches of a table end.
fn single_batch(table: &Table) -> Table {
    let batch = arrow_select::concat::concat_batches(table.schema(), table.batches()).unwrap();
    let columns = batch.schema_ref().fields().iter().zip(batch.columns());
    let columns = columns.map(|(field, column)| {
        let column = match column.as_any_dictionary_opt() {
            Some(dictionary) => take(dictionary.values(), dictionary.keys(), None).unwrap(),
            None => Arc::clone(column),
        };
        (field.name(), column, true)
    });
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    Table::new(batch.schema(), vec![batch]).unwrap()
}

fn run(pipeline: &Pipeline, object: &Bytes, context: &Context<'_>, stretches: &[Range<usize>]) -> Outcome {
    let mut sample = Sample::Bytes(object.clone());
    for stretch in stretches {
        sample = pipeline.run(stretch.clone(), sample, context)?;
    }
    let Sample::Table(table) = sample else {
        panic!("expected a table")
    };
    outcome(Ok(table))
}

async fn scan(pipeline: &Pipeline, source: RemoteObject, context: &Context<'_>) -> Result<Table> {
    let mut scan = pipeline
        .scan(0..pipeline.len(), Arc::new(source), context)
        .await?;
    let schema = Arc::clone(scan.schema());
    let mut batches = Vec::new();
    while let Some(batch) = scan.next().await.transpose()? {
        batches.push(batch);
    }
    Table::new(schema, batches)
}

/// Runs `threads` scans concurrently on as many threads, between which they may move.
fn scan_on(
    threads: usize,
    pipeline: &Pipeline,
    object: &Bytes,
    name: &'static str,
    piece_bytes: usize,
) -> Vec<Outcome> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(threads)
        .build()
        .unwrap();
    let running: Vec<_> = (0..threads)
        .map(|_| {
            let pipeline = pipeline.clone();
            let remote = RemoteObject {
                bytes: object.clone(),
                piece_bytes,
            };
            let context = Context {
                seed: Some(7),
                epoch: Some(0),
                ..Context::new(name.as_bytes())
            };
            runtime.spawn(async move { outcome(scan(&pipeline, remote, &context).await) })
        })
        .collect();
    let found = running.into_iter().map(|scan| runtime.block_on(scan).unwrap());
    found.collect()
}

proptest! {
    // Each case takes half a second: 8 in `make test`, 96 in `make test-full`.
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 8))]

    #[test]
    fn tables_are_the_same_whole_and_in_parts(
        rows in rows(),
        text in pipeline(),
        format in 0..6_usize,
        group_rows in 1..80_usize,
        piece_bytes in 1..3000_usize,
        times in prop_oneof![15 => Just(1_usize), 1 => 100..200_usize],
    ) {
        // Some tables have several record batches.
        let rows = GeneratedRows(std::iter::repeat_n(rows.0, times).flatten().collect());
        let piece_bytes = piece_bytes * times;
        let pipeline = Pipeline::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let name = ["a.parquet", "b.parquet", "c", "d.csv", "e.json", "f"][format];
        let object = object(&rows, format, group_rows * times);
        let context = Context { seed: Some(7), epoch: Some(0), ..Context::new(name.as_bytes()) };
        let whole = run(&pipeline, &object, &context, std::slice::from_ref(&(0..pipeline.len())));
        // Between all steps, and inside of `each`.
        for stage in pipeline.row_stages() {
            let (cut, split) = pipeline.cut_rows(stage).unwrap();
            let parts = run(&cut, &object, &context, &[0..split, split..cut.len()]);
            prop_assert!(parts == whole, "{text} at {stage:?}");
        }
        for threads in [1, 2, 16] {
            for found in scan_on(threads, &pipeline, &object, name, piece_bytes) {
                prop_assert!(found == whole, "{text} on {threads} threads");
            }
        }
    }
}
