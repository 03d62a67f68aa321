//! Law 1 for tables: a step computes the same of a whole object and of parts of it, on any number of threads.

mod made;

use std::{ops::Range, sync::Arc};

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

use made::{Rows, object, pipeline, rows};

/// An object that is read over a link: its parts come late and in pieces.
#[derive(Debug)]
struct Remote(Bytes, usize);

impl Source for Remote {
    fn suffix(&self, length: u64) -> BoxFuture<'static, Result<Suffix>> {
        let suffix = self.0.suffix(length.min(self.0.len() as u64 * 2 / 3));
        later().then(|()| suffix).boxed()
    }

    fn ranges(&self, ranges: Vec<Range<u64>>) -> BoxFuture<'static, Result<Vec<Bytes>>> {
        let parts = self.0.ranges(ranges);
        later().then(|()| parts).boxed()
    }

    fn stream(&self) -> BoxStream<'static, Result<Bytes>> {
        let pieces: Vec<_> = self
            .0
            .chunks(self.1)
            .map(|piece| Ok(Bytes::copy_from_slice(piece)))
            .collect();
        stream::iter(pieces).boxed()
    }
}

/// Not at the first poll.
async fn later() {
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

/// The bytes of the table, or the error.
type Outcome = std::result::Result<Vec<u8>, pushdown::Error>;

fn outcome(table: Result<Table>) -> Outcome {
    table.map(|table| encode(TableForm::ArrowStream(Compression::None), &whole(&table)))
}

/// The rows as one record batch.
fn whole(table: &Table) -> Table {
    let batch = arrow_select::concat::concat_batches(table.schema(), table.batches()).unwrap();
    Table::new(Arc::clone(table.schema()), vec![batch]).unwrap()
}

fn run(pipeline: &Pipeline, object: &Bytes, context: &Context<'_>, stretches: &[Range<usize>]) -> Outcome {
    let mut sample = Sample::Bytes(object.clone());
    for stretch in stretches {
        sample = pipeline.run(stretch.clone(), sample, context)?;
    }
    let Sample::Table(table) = sample else {
        panic!("no table")
    };
    outcome(Ok(table))
}

async fn scan(pipeline: &Pipeline, source: Remote, context: &Context<'_>) -> Result<Table> {
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

/// As many scans at once on so many threads, which take them from each other.
fn scan_on(
    threads: usize,
    pipeline: &Pipeline,
    object: &Bytes,
    name: &'static str,
    piece: usize,
) -> Vec<Outcome> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(threads)
        .build()
        .unwrap();
    let running: Vec<_> = (0..threads)
        .map(|_| {
            let (pipeline, remote) = (pipeline.clone(), Remote(object.clone(), piece));
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
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn tables_are_the_same_whole_and_in_parts(
        rows in rows(),
        text in pipeline(),
        format in 0..6_usize,
        group in 1..80_usize,
        piece in 1..3000_usize,
        times in prop_oneof![15 => Just(1_usize), 1 => 100..200_usize],
    ) {
        // Some are of several record batches.
        let rows = Rows(std::iter::repeat_n(rows.0, times).flatten().collect());
        let piece = piece * times;
        let pipeline = Pipeline::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let name = ["a.parquet", "b.parquet", "c", "d.csv", "e.json", "f"][format];
        let object = object(&rows, format, group * times);
        let context = Context { seed: Some(7), epoch: Some(0), ..Context::new(name.as_bytes()) };
        let whole = run(&pipeline, &object, &context, std::slice::from_ref(&(0..pipeline.len())));
        for split in 0..=pipeline.len() {
            let parts = run(&pipeline, &object, &context, &[0..split, split..pipeline.len()]);
            prop_assert!(parts == whole, "{text} at {split}");
        }
        for threads in [1, 2, 16] {
            for found in scan_on(threads, &pipeline, &object, name, piece) {
                prop_assert!(found == whole, "{text} on {threads} threads");
            }
        }
    }
}
