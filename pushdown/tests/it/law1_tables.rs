//! Law 1 for tables: a step computes the same of a whole object and of parts of it, on any number of threads.

use std::{ops::Range, sync::Arc};

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
};
use bytes::Bytes;
use futures::{
    FutureExt as _, StreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use parquet::{arrow::ArrowWriter, file::properties::WriterProperties};
use proptest::{collection::vec, option, prelude::*};
use pushdown::{
    Context, Pipeline, Result, Sample, Source, Suffix, Table,
    wire::{Compression, TableEncoder, TableForm},
};
use tokio::runtime::Builder;

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

#[derive(Debug, Clone)]
struct Rows(Vec<Row>);

/// Values of the columns `n`, `f`, `s`, `b` and `t`.
type Row = (
    Option<i64>,
    Option<f64>,
    Option<String>,
    Option<bool>,
    Option<i64>,
);

impl Rows {
    fn batch(&self) -> RecordBatch {
        let rows = &self.0;
        let columns: [(&str, ArrayRef); 6] = [
            (
                "row",
                Arc::new(Int64Array::from_iter_values(
                    0..i64::try_from(rows.len()).unwrap(),
                )),
            ),
            (
                "n",
                Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>()),
            ),
            (
                "f",
                Arc::new(rows.iter().map(|row| row.1).collect::<Float64Array>()),
            ),
            (
                "s",
                Arc::new(rows.iter().map(|row| row.2.clone()).collect::<StringArray>()),
            ),
            (
                "b",
                Arc::new(rows.iter().map(|row| row.3).collect::<BooleanArray>()),
            ),
            (
                "t",
                Arc::new(
                    rows.iter()
                        .map(|row| row.4)
                        .collect::<TimestampMicrosecondArray>(),
                ),
            ),
        ];
        let nullable = columns.map(|(name, column)| (name, column, true));
        RecordBatch::try_from_iter_with_nullable(nullable).unwrap()
    }
}

fn rows() -> impl Strategy<Value = Rows> {
    let number = prop_oneof![4 => -5..20_i64, 1 => any::<i64>()];
    let float = prop_oneof![
        4 => (-100..100_i32).prop_map(|n| f64::from(n) / 7.0),
        1 => prop_oneof![Just(f64::NAN), Just(-0.0), Just(0.0), Just(f64::INFINITY), Just(1e300), Just(5e-324)],
    ];
    let text = "[a-c]{0,3}|größe|x'y\"z";
    let row = (
        option::weighted(0.9, number),
        option::weighted(0.9, float),
        option::weighted(0.9, text),
        option::of(any::<bool>()),
        option::of(0..4_000_000_000_000_000_i64),
    );
    vec(row, 1..200).prop_map(Rows)
}

/// Conditions over those columns.
fn condition() -> impl Strategy<Value = String> {
    let number = -6..21_i64;
    let leaf = prop_oneof![
        (
            number.clone(),
            prop_oneof![
                Just("<"),
                Just("<="),
                Just("="),
                Just("<>"),
                Just(">"),
                Just(">=")
            ]
        )
            .prop_map(|(n, operator)| format!("n {operator} {n}")),
        (number.clone(), prop_oneof![Just("<"), Just(">="), Just("=")])
            .prop_map(|(n, operator)| format!("f {operator} {n}.5")),
        prop_oneof![Just("f = 0"), Just("f = -0.0"), Just("f < 0"), Just("f >= 0")].prop_map(str::to_owned),
        (0..200_u32).prop_map(|row| format!("row between {row} and {}", row + 20)),
        "[a-c]{0,2}".prop_map(|text| format!("s like '{text}%'")),
        "[a-c]{1,2}".prop_map(|text| format!("s in ('{text}', 'größe')")),
        Just("b".to_owned()),
        Just("s is null".to_owned()),
        Just("f is not null and n is not null".to_owned()),
        Just("sin(f) > 0.25".to_owned()),
        Just("t > '1990-01-01'".to_owned()),
        number.prop_map(|n| format!("n % 5 = {n}")),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("({one}) and ({other})")),
            (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("({one}) or ({other})")),
            inner.prop_map(|one| format!("not ({one})")),
        ]
    })
}

/// Pipelines that make tables of such objects.
fn pipeline() -> impl Strategy<Value = String> {
    let quoted = |sql: String| format!("sql({})", serde_json::to_string(&sql).unwrap());
    let sql = prop_oneof![
        condition().prop_map(|c| format!("select n, sum(f) as s, avg(f) as a, count(*) as c from object where {c} group by n")),
        condition().prop_map(|c| format!("select * from object where {c} order by f desc, row limit 7")),
        condition().prop_map(|c| format!("select stddev(f) as d, sum(f * 3) as p, corr(f, n) as r, median(f) as m from object where {c}")),
        condition().prop_map(|c| format!("select exp(f) as e, ln(abs(f) + 1) as l, power(f, 1.5) as p, atan2(f, n) as t from object where {c}")),
        condition().prop_map(|c| format!("select distinct s, b from object where {c}")),
        (-5..20_i64).prop_map(|n| format!(
            "select row, n - (select min(n) from object) as above from object where f < (select avg(f) from object where n <> {n})"
        )),
        condition().prop_map(|c| format!("select row, sum(f) over (order by row rows between 3 preceding and current row) as w from object where {c}")),
        condition().prop_map(|c| format!("select row, count(*) over (partition by n) as c, rank() over (order by f) as r from object where {c}")),
        condition().prop_map(|c| format!("select concat(s, '-', row) as t, replace(s, 'a', 'bcd') as r, make_array(n, row) as l from object where {c}")),
        condition().prop_map(|c| format!("select count(distinct s) as c, sum(distinct n % 100) as n, array_agg(s order by row) as l from object where {c}")),
        condition().prop_map(|c| format!("select array_agg(distinct s) as l, sum(distinct f) as d, avg(distinct f) as a from object where {c}")),
        condition().prop_map(|c| format!("select approx_distinct(s) as d, approx_percentile_cont(f, 0.3) as p, mode as m from (select s, f, b as mode from object where {c}) t group by mode")),
        Just("select s, count(*) as c from object group by s union all select 'all', count(*) from object".to_owned()),
    ];
    let select = (condition(), option::of(0..30_u32), any::<bool>()).prop_map(|(c, limit, few)| {
        let columns = if few { "columns=[f, row], " } else { "" };
        let limit = limit.map(|limit| format!(", limit={limit}")).unwrap_or_default();
        format!(
            "select({columns}where={}{limit}, row_number=place)",
            serde_json::to_string(&c).unwrap()
        )
    });
    let sample = (0..11_u32, any::<u16>())
        .prop_map(|(tenths, seed)| format!(" | sample({}, {seed})", f64::from(tenths) / 10.0));
    let first = prop_oneof![1 => Just("select".to_owned()), 4 => select, 5 => sql.prop_map(quoted)];
    (first, option::weighted(0.3, sample)).prop_map(|(first, sample)| first + &sample.unwrap_or_default())
}

fn object(rows: &Rows, format: usize, group: usize) -> Bytes {
    let batch = rows.batch();
    match format {
        0 | 1 => {
            let properties = WriterProperties::builder()
                .set_max_row_group_row_count(Some(group))
                .set_data_page_row_count_limit(group.div_ceil(3))
                .set_write_batch_size(4)
                .set_bloom_filter_enabled(format == 1)
                .build();
            let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
            writer.write(&batch).unwrap();
            writer.into_inner().unwrap().into()
        }
        other => {
            let form = [
                TableForm::ArrowStream(Compression::Lz4),
                TableForm::Csv,
                TableForm::Ndjson,
                TableForm::Parquet,
            ][other - 2];
            encode(form, &Table::new(batch.schema(), vec![batch]).unwrap()).into()
        }
    }
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
            let context = Context::new(name.as_bytes());
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
        let context = Context::new(name.as_bytes());
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
