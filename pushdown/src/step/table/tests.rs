mod each;
mod formats;
mod hostile;

use std::{ops::Range, sync::Arc};

use ::parquet::{
    arrow::ArrowWriter,
    file::properties::{EnabledStatistics, WriterProperties},
};
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray, StringViewArray,
    cast::AsArray as _,
    types::{Float64Type, Int8Type, Int64Type},
};
use arrow_schema::DataType;
use bytes::Bytes;
use futures::{
    StreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use parking_lot::Mutex;

use crate::{
    Context, ErrorKind, Estimate, Limits, Pipeline, Result, Sample, Source, Suffix, Table, TableLimits,
};

/// A source that keeps count.
#[derive(Debug, Clone)]
struct Counted {
    object: Bytes,
    ranges: Arc<Mutex<Vec<Range<u64>>>>,
    suffixes: Arc<Mutex<usize>>,
}

impl Counted {
    fn new(object: Bytes) -> Self {
        Self {
            object,
            ranges: Arc::default(),
            suffixes: Arc::default(),
        }
    }

    fn read(&self) -> u64 {
        self.ranges
            .lock()
            .iter()
            .map(|range| range.end - range.start)
            .sum()
    }
}

impl Source for Counted {
    fn suffix(&self, length: u64) -> BoxFuture<'static, Result<Suffix>> {
        *self.suffixes.lock() += 1;
        self.object.suffix(length)
    }

    fn ranges(&self, ranges: Vec<Range<u64>>) -> BoxFuture<'static, Result<Vec<Bytes>>> {
        self.ranges.lock().extend(ranges.iter().cloned());
        self.object.ranges(ranges)
    }

    fn stream(&self) -> BoxStream<'static, Result<Bytes>> {
        stream::empty().boxed()
    }
}

fn column(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

/// A Parquet file of row groups of `rows` rows each.
fn parquet_of(batch: &RecordBatch, rows: usize) -> Bytes {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(rows))
        .set_data_page_row_count_limit(rows.div_ceil(4))
        .set_write_batch_size(rows.div_ceil(8))
        .set_statistics_enabled(EnabledStatistics::Page)
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap().into()
}

/// `rows` rows: `n` counts, `m` is `n` modulo 7, `text` says it.
fn numbers(rows: i64) -> RecordBatch {
    let text = StringArray::from_iter_values((0..rows).map(|n| format!("row number {n}")));
    let columns: [(&str, ArrayRef); 3] = [
        ("n", column(0..rows)),
        ("m", column((0..rows).map(|n| n % 7))),
        ("text", Arc::new(text)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn pipeline(text: &str) -> Pipeline {
    Pipeline::parse(text).expect(text)
}

fn on_runtime<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(future)
}

/// The rows of a scan and what it was estimated to take.
fn scan_with(text: &str, source: impl Source, limits: Limits) -> Result<(Table, Estimate)> {
    let context = Context {
        limits,
        ..Context::new(b"object.parquet")
    };
    on_runtime(async {
        let mut scan = pipeline(text).scan(0..1, Arc::new(source), &context).await?;
        let (schema, estimate) = (Arc::clone(scan.schema()), *scan.estimate());
        let mut batches = Vec::new();
        while let Some(batch) = scan.next().await.transpose()? {
            batches.push(batch);
        }
        Ok((Table::new(schema, batches)?, estimate))
    })
}

fn scan(text: &str, source: impl Source) -> Result<(Table, Estimate)> {
    scan_with(text, source, Limits::default())
}

fn run(text: &str, object: &Bytes) -> Result<Table> {
    let pipeline = pipeline(text);
    let sample = Sample::Bytes(object.clone());
    match pipeline.run(0..pipeline.len(), sample, &Context::new(b"object.parquet"))? {
        Sample::Table(table) => Ok(table),
        other => panic!("found {other:?}"),
    }
}

fn int64s(table: &Table, column: usize) -> Vec<i64> {
    let batches = table.batches().iter();
    batches
        .flat_map(|batch| batch.column(column).as_primitive::<Int64Type>().values().to_vec())
        .collect()
}

#[test]
fn select_takes_columns_in_order_and_rows_that_fulfil_the_condition() {
    let object = parquet_of(&numbers(100), 30);
    let table = run(
        "select(columns=[m, n], where=\"n >= 25 and m = 3\", limit=3)",
        &object,
    )
    .unwrap();
    let names: Vec<_> = table
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    assert_eq!(names, ["m", "n"]);
    assert_eq!(int64s(&table, 1), [31, 38, 45]);
    assert_eq!(run("select", &object).unwrap().rows(), 100);
}

#[test]
fn sql_groups_sorts_and_counts() {
    let object = parquet_of(&numbers(100), 30);
    let sql = "sql(\"select m, count(*) as c, sum(n) as s from object where n > 9 group by m order by m desc limit 2\")";
    let table = run(sql, &object).unwrap();
    assert_eq!(int64s(&table, 0), [6, 5]);
    assert_eq!(int64s(&table, 1), [13, 13]);
    let expected = |m: i64| (10..100).filter(|n| n % 7 == m).sum::<i64>();
    assert_eq!(int64s(&table, 2), [expected(6), expected(5)]);
    // Without an order, groups come as the file has them.
    let table = run("sql(\"select m from object where n > 9 group by m\")", &object).unwrap();
    assert_eq!(int64s(&table, 0), [3, 4, 5, 6, 0, 1, 2]);
}

#[test]
fn a_scan_by_ranges_gives_the_rows_of_the_whole_object() {
    let object = parquet_of(&numbers(1000), 100);
    for text in [
        "select",
        "select(columns=[text], where=\"n between 333 and 444\")",
        "select(where=\"text like '%77%'\", limit=5)",
        "sql(\"select m, avg(n) as a, min(text) as t from object group by m\")",
        "sql(\"select * from object order by m, n desc limit 20\")",
    ] {
        let (table, _) = scan(text, Counted::new(object.clone())).unwrap();
        assert_eq!(table, run(text, &object).unwrap(), "{text}");
    }
}

#[test]
fn only_what_the_condition_leaves_is_read() {
    let object = parquet_of(&numbers(100_000), 10_000);
    let source = Counted::new(object.clone());
    let text = "select(columns=[n], where=\"n >= 52000 and n < 54000\")";
    let (table, estimate) = scan(text, source.clone()).unwrap();
    assert_eq!(int64s(&table, 0), (52_000..54_000).collect::<Vec<_>>());
    assert_eq!(
        *source.suffixes.lock(),
        1,
        "the footer is read by one suffix read"
    );
    assert_eq!(estimate.stored, object.len() as u64);
    // Half of one row group in ten, by its pages.
    assert!(estimate.rows.unwrap() <= 5_000, "{estimate:?}");
    assert!(estimate.read.unwrap() <= object.len() as u64 / 20, "{estimate:?}");
    let index = source.read() - estimate.read.unwrap();
    assert!(index < 64 * 1024, "{index} bytes of page index");
    assert!(table.bytes() <= estimate.answer.unwrap(), "{estimate:?}");
}

#[test]
fn what_is_read_is_what_was_estimated() {
    let object = parquet_of(&numbers(100_000), 10_000);
    for text in ["select", "select(columns=[m])", "select(columns=[n, text])"] {
        let source = Counted::new(object.clone());
        let (table, estimate) = scan(text, source.clone()).unwrap();
        assert_eq!(source.read(), estimate.read.unwrap(), "{text}");
        assert_eq!(estimate.rows, Some(100_000));
        let (bytes, answer) = (table.bytes(), estimate.answer.unwrap());
        assert!(
            answer.abs_diff(bytes) < bytes / 4,
            "{text}: {bytes} bytes, estimated {answer}"
        );
    }
}

/// Each row group has its minimum and maximum around every number, and every tenth of them.
#[test]
fn bloom_filters_leave_row_groups_out() {
    let scattered = |n: i64| (n % 10_000) * 10 + n / 10_000;
    let batch = RecordBatch::try_from_iter([
        ("n", column((0..100_000).map(scattered))),
        ("m", column(0..100_000)),
    ])
    .unwrap();
    let written = |filters: bool| {
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(10_000));
        let properties = if filters {
            properties.set_column_bloom_filter_max_ndv("n".into(), 10_000)
        } else {
            properties
        };
        let properties = properties.build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        Counted::new(writer.into_inner().unwrap().into())
    };
    let text = "select(columns=[m], where=\"n = 45677\")";
    let (with, without) = (written(true), written(false));
    let (table, estimate) = scan(text, with.clone()).unwrap();
    assert_eq!(int64s(&table, 0), [74_567]);
    assert!(estimate.rows.unwrap() <= 20_000, "{estimate:?}");
    assert_eq!(scan(text, without.clone()).unwrap().0, table);
    assert!(
        with.read() < without.read() * 3 / 4,
        "{} and {}",
        with.read(),
        without.read()
    );
}

#[test]
fn the_next_row_group_is_read_ahead() {
    let object = parquet_of(&numbers(100_000), 10_000);
    let source = Counted::new(object);
    on_runtime(async {
        let context = Context::new(b"object.parquet");
        let shared = Arc::new(source.clone());
        let mut scan = pipeline("select").scan(0..1, shared, &context).await.unwrap();
        scan.next().await.unwrap().unwrap();
        let reads = source.ranges.lock().len();
        assert_eq!(reads, 2, "one row group is read, and the next");
    });
}

#[test]
fn a_limit_stops_reading() {
    let object = parquet_of(&numbers(100_000), 10_000);
    let source = Counted::new(object.clone());
    let (table, _) = scan("select(limit=10)", source.clone()).unwrap();
    assert_eq!(table.rows(), 10);
    assert!(source.read() < object.len() as u64 / 5, "{}", source.read());
}

#[test]
fn rows_flow_before_the_last_row_group_is_read_and_dropping_stops() {
    let object = parquet_of(&numbers(100_000), 10_000);
    let source = Counted::new(object.clone());
    on_runtime(async {
        let context = Context::new(b"object.parquet");
        let shared = Arc::new(source.clone());
        let mut scan = pipeline("select").scan(0..1, shared, &context).await.unwrap();
        let first = scan.next().await.unwrap().unwrap();
        assert_eq!(first.num_rows(), 8192);
    });
    assert!(source.read() < object.len() as u64 / 5, "{}", source.read());
}

/// Row groups that a condition holds for throughout are not preferred to earlier ones.
#[test]
fn a_limit_takes_the_first_rows_of_the_file() {
    let n = (0..100).chain(std::iter::repeat_n(50, 100));
    let batch = RecordBatch::try_from_iter([("n", column(n)), ("row", column(0..200))]).unwrap();
    let object = parquet_of(&batch, 100);
    let table = run("select(columns=[row], where=\"n >= 50\", limit=3)", &object).unwrap();
    assert_eq!(int64s(&table, 0), [50, 51, 52]);
}

/// Statistics leave NaN out.
#[test]
fn nan_is_greater_than_any_number_wherever_it_stands() {
    let values = Float64Array::from(vec![1.0, f64::NAN, 2.0, 3.0, 7.0, f64::NAN]);
    let batch = RecordBatch::try_from_iter([("x", Arc::new(values) as ArrayRef)]).unwrap();
    for rows in [2, 6] {
        let object = parquet_of(&batch, rows);
        for (condition, count) in [
            ("x > 5", 3),
            ("x >= 100", 2),
            ("x <> 1", 5),
            ("x < 2.5", 2),
            ("5 > x", 3),
        ] {
            let table = run(&format!("select(where=\"{condition}\")"), &object).unwrap();
            assert_eq!(table.rows(), count, "{condition} in row groups of {rows}");
        }
    }
}

#[test]
fn sums_of_floats_are_those_of_the_order_of_the_file() {
    let values = Float64Array::from_iter_values((0..20_000).map(|n| 1.0 / f64::from(n + 1)));
    let batch = RecordBatch::try_from_iter([("x", Arc::new(values) as ArrayRef)]).unwrap();
    let object = parquet_of(&batch, 3_000);
    let sum = || {
        let table = run("sql(\"select sum(x) as s from object\")", &object).unwrap();
        table.batches()[0]
            .column(0)
            .as_primitive::<Float64Type>()
            .value(0)
            .to_bits()
    };
    let once = sum();
    assert!((0..5).all(|_| sum() == once));
}

#[test]
fn types_go_out_as_arrow_clients_read_them() {
    let words: DictionaryArray<Int8Type> = vec!["a", "b", "a"].into_iter().collect();
    let views = StringViewArray::from(vec!["a string longer than twelve", "b", "c"]);
    let columns: [(&str, ArrayRef); 2] = [("word", Arc::new(words)), ("view", Arc::new(views))];
    let object = parquet_of(&RecordBatch::try_from_iter(columns).unwrap(), 10);
    let table = run("select", &object).unwrap();
    let types: Vec<_> = table
        .schema()
        .fields()
        .iter()
        .map(|field| field.data_type().clone())
        .collect();
    let dictionary = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    assert_eq!(types, [dictionary, DataType::Utf8]);
    let table = run("sql(\"select upper(view) as u, 'x' as x from object\")", &object).unwrap();
    assert!(
        table
            .schema()
            .fields()
            .iter()
            .all(|field| *field.data_type() == DataType::Utf8)
    );
}

#[test]
fn what_a_query_may_not_do_is_refused() {
    let object = parquet_of(&numbers(10), 10);
    for (text, kind, says) in [
        (
            "select(columns=[N])",
            ErrorKind::Unsuitable,
            "no column `N`; did you mean `n`",
        ),
        (
            "select(columns=[price])",
            ErrorKind::Unsuitable,
            "it has `n`, `m`, `text`",
        ),
        (
            "select(where=\"tekst = 'a'\")",
            ErrorKind::Unsuitable,
            "did you mean `text`?",
        ),
        (
            "sql(\"select txt from object\")",
            ErrorKind::Unsuitable,
            "did you mean `text`?",
        ),
        (
            "sql(\"select now() from object\")",
            ErrorKind::InvalidPipeline,
            "function `now`",
        ),
        (
            "sql(\"select * from object where random() < 0.5\")",
            ErrorKind::InvalidPipeline,
            "function `random`",
        ),
        (
            "select(where=\"n > random()\")",
            ErrorKind::InvalidPipeline,
            "function `random`",
        ),
        (
            "sql(\"select uuid() from object\")",
            ErrorKind::InvalidPipeline,
            "function `uuid`",
        ),
        (
            "sql(\"select * from other\")",
            ErrorKind::InvalidPipeline,
            "other",
        ),
        (
            "sql(\"select * from '/etc/passwd'\")",
            ErrorKind::InvalidPipeline,
            "passwd",
        ),
        (
            "sql(\"select * from read_csv('x')\")",
            ErrorKind::InvalidPipeline,
            "read_csv",
        ),
        (
            "sql(\"select * into t from object\")",
            ErrorKind::InvalidPipeline,
            "expected a query",
        ),
        (
            "sql(\"select frobnicate(n) from object\")",
            ErrorKind::InvalidPipeline,
            "frobnicate",
        ),
        ("select(where=\"n + 1\")", ErrorKind::InvalidPipeline, "at 1: "),
        (
            "select(where=\"date_trunc(n, m) = 3\")",
            ErrorKind::InvalidPipeline,
            "date_trunc",
        ),
        (
            "sql(\"with recursive t as (select 1 as a union all select a + 1 from t) select * from t\")",
            ErrorKind::InvalidPipeline,
            "ecursive",
        ),
    ] {
        let error = run(text, &object).unwrap_err();
        assert_eq!(error.kind(), kind, "{text}: {error}");
        assert!(error.to_string().contains(says), "{text}: {error}");
        assert_eq!(scan(text, object.clone()).unwrap_err(), error, "{text}");
    }
}

#[test]
fn faults_of_sql_have_their_place_in_the_pipeline() {
    for (text, place) in [
        ("sql(\"select a form object\")", "object"),
        ("sql(query='select * from object where')", "')"),
        ("select(columns=[a], where=\"a = = 1\")", "= 1"),
        ("sql(\"drop table object\")", "drop"),
    ] {
        let error = Pipeline::parse(text).unwrap_err();
        assert_eq!(
            error.position().map(|place| place as usize),
            text.find(place),
            "{text}: {error}"
        );
    }
}

#[test]
fn an_object_that_is_no_table_is_undecodable() {
    let object = parquet_of(&numbers(1000), 100);
    let half = object.slice(object.len() / 2..);
    let mut lying = object.to_vec();
    let length = lying.len();
    lying[length - 8..length - 4].copy_from_slice(&u32::MAX.to_le_bytes());
    for bytes in [
        Bytes::new(),
        Bytes::from_static(b"PAR1"),
        half,
        lying.into(),
        object.slice(..900),
    ] {
        for text in ["select", "select(format=parquet)"] {
            let error = run(text, &bytes).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Undecodable, "{error}");
        }
    }
}

#[test]
fn limits_hold() {
    let object = parquet_of(&numbers(200_000), 100_000);
    let limited = |text: &str, tables: TableLimits| {
        let limits = Limits {
            tables,
            ..Limits::default()
        };
        let error = scan_with(text, object.clone(), limits).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
        error.to_string()
    };
    let tables = TableLimits::default();
    let columns = TableLimits {
        max_columns: 2,
        ..tables
    };
    assert!(limited("select", columns).contains("3 columns"));
    let group = TableLimits {
        max_row_group_bytes: 1000,
        ..tables
    };
    assert!(limited("select", group).contains("row group"));
    let memory = TableLimits {
        max_query_bytes: 100_000,
        ..tables
    };
    assert!(limited("sql(\"select text from object order by text\")", memory).contains("memory"));
    let limits = Limits {
        max_value_bytes: 1000,
        ..Limits::default()
    };
    let context = Context {
        limits,
        ..Context::new(b"object.parquet")
    };
    let error = pipeline("select")
        .run(0..1, Sample::Bytes(object.clone()), &context)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}

#[test]
fn plans_are_bounded() {
    let object = parquet_of(&numbers(10), 10);
    let unions = ["select n from object"; 9].join(" union all ");
    let error = run(&format!("sql(\"{unions}\")"), &object).unwrap_err();
    assert!(error.to_string().contains("more than 8 times"), "{error}");
    let values = vec!["1"; 5_000].join(",");
    assert_eq!(
        run(&format!("select(where=\"n in ({values})\")"), &object)
            .unwrap()
            .rows(),
        1
    );
}

/// As deep as a query may be, on a thread's usual stack.
#[test]
fn a_deep_query_runs() {
    let object = parquet_of(&numbers(10), 10);
    for (deep, count, rows) in [(" + n", 490, 9), ("::bigint", 490, 8), (" > m or n", 240, 8)] {
        let condition = format!("n{} > 1", deep.repeat(count));
        let table = run(&format!("select(where=\"{condition}\")"), &object).unwrap();
        assert_eq!(table.rows(), rows, "{deep}");
    }
    let unions = vec!["select 1 as n"; 400].join(" union all ");
    assert_eq!(run(&format!("sql(\"{unions}\")"), &object).unwrap().rows(), 400);
}

#[test]
fn text_and_json_say_the_same() {
    let text = "select(columns=[\"a b\", n], where=\"n > 'x'\", limit=5, format=parquet)";
    let select = pipeline(text);
    assert_eq!(select.to_string(), text);
    let json = serde_json::to_string(&select).unwrap();
    assert_eq!(pipeline(&json), select);
    let sql = pipeline("sql('select \"a\" from object')");
    assert_eq!(pipeline(&sql.to_string()), sql);
    assert_eq!(pipeline("select(columns=n)"), pipeline("select([n])"));
    for text in [
        "select(columns=[])",
        "select(columns=[a, a])",
        "select(limit=-1)",
        "sql()",
        "sql(\"\")",
    ] {
        assert!(Pipeline::parse(text).is_err(), "{text}");
    }
}

#[test]
fn what_is_held_is_a_row_group_of_the_columns_that_are_read() {
    let object = parquet_of(&numbers(40_000), 10_000);
    let held = |text: &str| {
        let scanned = scan_with(text, object.clone(), Limits::default()).expect(text);
        (scanned.1.held.unwrap(), scanned.1.read.unwrap())
    };
    let (one, of_one) = held("select(columns=[n])");
    let (all, of_all) = held("select()");
    // A quarter of what is read, and pages of as many bytes.
    assert!(one > of_one / 4 && one <= of_one, "{one} of {of_one}");
    assert!(all > one && all <= of_all * 2, "{all} of {of_all}");
    let (twice, _) = held("sql('select a.n from object a join object b on a.n = b.n')");
    assert_eq!(twice, 2 * one, "two scans may be on their way");
}
