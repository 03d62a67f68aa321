//! Reads of Parquet by range: which bytes are read, and when.

use ::parquet::file::statistics::Statistics;
use futures::TryStreamExt as _;

use super::*;

#[test]
fn a_scan_by_ranges_returns_the_rows_of_the_whole_object() {
    let object = parquet_file(&numbers(1000), 100);
    for text in [
        "select",
        "select(columns=[text], where=\"n between 333 and 444\")",
        "select(where=\"text like '%77%'\", limit=5)",
        "sql(\"select m, avg(n) as a, min(text) as t from object group by m\")",
        "sql(\"select * from object order by m, n desc limit 20\")",
    ] {
        let (table, _) = scan(text, CountingSource::new(object.clone())).unwrap();
        assert_eq!(table, run(text, &object).unwrap(), "{text}");
    }
}

#[test]
fn only_matching_pages_are_read() {
    let object = parquet_file(&numbers(100_000), 10_000);
    let source = CountingSource::new(object.clone());
    let text = "select(columns=[n], where=\"n >= 52000 and n < 54000\")";
    let (table, estimate) = scan(text, source.clone()).unwrap();
    assert_eq!(int64s(&table, 0), (52_000..54_000).collect::<Vec<_>>());
    assert_eq!(
        *source.suffixes.lock(),
        1,
        "the footer is read by one suffix read"
    );
    assert_eq!(estimate.object_bytes, object.len() as u64);
    // The page index selects half of one row group in ten.
    assert!(estimate.max_rows.unwrap() <= 5_000, "{estimate:?}");
    assert!(
        estimate.scan_bytes.unwrap() <= object.len() as u64 / 20,
        "{estimate:?}"
    );
    let index_bytes = source.bytes_read() - estimate.scan_bytes.unwrap();
    assert!(index_bytes < 64 * 1024, "{index_bytes} bytes of page index");
    assert!(table.bytes() <= estimate.output_bytes.unwrap(), "{estimate:?}");
}

#[test]
fn the_estimate_matches_the_bytes_read() {
    let object = parquet_file(&numbers(100_000), 10_000);
    for text in ["select", "select(columns=[m])", "select(columns=[n, text])"] {
        let source = CountingSource::new(object.clone());
        let (table, estimate) = scan(text, source.clone()).unwrap();
        assert_eq!(source.bytes_read(), estimate.scan_bytes.unwrap(), "{text}");
        assert_eq!(estimate.max_rows, Some(100_000));
        let (bytes, answer) = (table.bytes(), estimate.output_bytes.unwrap());
        assert!(
            answer.abs_diff(bytes) < bytes / 4,
            "{text}: {bytes} bytes, estimated {answer}"
        );
    }
}

/// The estimate assumes an even distribution over the range of a column: a tenth of the range of `n` is a tenth of the rows.
#[test]
fn the_selectivity_of_a_condition_is_estimated() {
    let object = parquet_file(&numbers(40_000), 40_000);
    let expected_and_max_bytes = |text: &str| {
        let estimate = scan(text, object.clone()).unwrap().1;
        (
            estimate.expected_output_bytes.unwrap(),
            estimate.output_bytes.unwrap(),
        )
    };
    let (all, answer) = expected_and_max_bytes("select(columns=[n])");
    assert_eq!((all, answer), (320_000, 320_000));
    let (tenth, answer) = expected_and_max_bytes("select(columns=[n], where='n >= 8000 and n < 12000')");
    assert!(
        (31_000..33_000).contains(&tenth) && answer >= tenth,
        "{tenth} of {answer}"
    );
    let (some, answer) = expected_and_max_bytes("select(columns=[n], where='n >= 8000', limit=100)");
    assert_eq!((some, answer), (800, 800));
    for unknown in ["text = 'a' or n = 3", "n % 7 = 1", "text like '%1%'"] {
        let (expected, answer) = expected_and_max_bytes(&format!("select(columns=[n], where=\"{unknown}\")"));
        assert!(expected <= answer, "{unknown}");
    }
}

/// Half of all floating-point numbers are between -1 and 1, so the estimate uses the width of a range and not the number of
/// values in it.
#[test]
fn the_selectivity_of_floats_follows_the_width_of_the_range() {
    let steps = 0..32_000_i16;
    let columns: [(&str, ArrayRef); 2] = [
        (
            "x",
            Arc::new(Float64Array::from_iter_values(
                steps.clone().map(|n| f64::from(n) / 32_000.0),
            )),
        ),
        (
            "y",
            Arc::new(Float32Array::from_iter_values(
                steps.map(|n| f32::from(n) / 32_000.0),
            )),
        ),
    ];
    let object = parquet_file(&RecordBatch::try_from_iter(columns).unwrap(), 32_000);
    for (condition, rows) in [
        ("x < 0.8", 25_600),
        ("y >= 0.9", 3_200),
        ("x < 0.5 and y < 0.5", 8_000),
        ("x < 2", 32_000),
    ] {
        let text = format!("select(columns=[x], where='{condition}')");
        let likely = scan(&text, object.clone())
            .unwrap()
            .1
            .expected_output_bytes
            .unwrap();
        assert!(likely.abs_diff(8 * rows) <= 8 * 100, "{condition}: {likely}");
    }
}

/// Before `min_value` and `max_value`, writers compared bytes as signed numbers: "é" was less than "b".
#[test]
fn text_statistics_of_old_writers_are_ignored() {
    let text: ArrayRef = Arc::new(StringArray::from(vec!["é", "b"]));
    let object = parquet_file(&RecordBatch::try_from_iter([("text", text)]).unwrap(), 2);
    let old = Statistics::byte_array(Some("é".into()), Some("b".into()), None, Some(0), true);
    let file = with_chunks(&object, |chunk| {
        // Old writers have no page index.
        chunk
            .set_statistics(old.clone())
            .set_column_index_offset(None)
            .set_column_index_length(None)
    });
    for word in ["b", "é"] {
        let (table, _) = scan(&format!("select(where=\"text = '{word}'\")"), file.clone()).unwrap();
        assert_eq!(table.rows(), 1, "{word}");
    }
}

#[test]
fn bloom_filters_skip_row_groups() {
    let scattered = |n: i64| (n % 10_000) * 10 + n / 10_000;
    let batch = RecordBatch::try_from_iter([
        ("n", column((0..100_000).map(scattered))),
        ("m", column(0..100_000)),
    ])
    .unwrap();
    let source = |has_filters: bool| {
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(10_000));
        let properties = if has_filters {
            properties.set_column_bloom_filter_max_ndv("n".into(), 10_000)
        } else {
            properties
        };
        let properties = properties.build();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        CountingSource::new(writer.into_inner().unwrap().into())
    };
    let text = "select(columns=[m], where=\"n = 45677\")";
    let (with, without) = (source(true), source(false));
    let (table, estimate) = scan(text, with.clone()).unwrap();
    assert_eq!(int64s(&table, 0), [74_567]);
    assert!(estimate.max_rows.unwrap() <= 20_000, "{estimate:?}");
    assert_eq!(scan(text, without.clone()).unwrap().0, table);
    assert!(
        with.bytes_read() < without.bytes_read() * 3 / 4,
        "{} and {}",
        with.bytes_read(),
        without.bytes_read()
    );
}

#[test]
fn the_next_row_groups_are_prefetched() {
    let object = parquet_file(&numbers(100_000), 10_000);
    let source = CountingSource::new(object);
    block_on(async {
        let context = Context::new(b"object.parquet");
        let shared = Arc::new(source.clone());
        let mut scan = pipeline("select").scan(0..1, shared, &context).await.unwrap();
        scan.next().await.unwrap().unwrap();
        let reads = source.ranges.lock().len();
        assert_eq!(reads, 9, "one row group, and eight small ones ahead of it");
    });
}

#[test]
fn read_batches_can_be_put_back() {
    let object = parquet_file(&numbers(20_000), 5_000);
    block_on(async {
        let context = Context::new(b"object.parquet");
        let source = Arc::new(object.clone());
        let mut scan = pipeline("select").scan(0..1, source, &context).await.unwrap();
        let taken = vec![
            scan.next().await.unwrap().unwrap(),
            scan.next().await.unwrap().unwrap(),
        ];
        let batches: Vec<_> = scan.with_leading_batches(taken).try_collect().await.unwrap();
        let rows = |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
        let found: Vec<_> = batches.iter().flat_map(rows).collect();
        assert_eq!(found, (0..20_000).collect::<Vec<i64>>());
    });
}

/// Small batches are not merged beyond the limit.
#[test]
fn a_limit_after_a_condition_stops_reading() {
    let object = parquet_file(&numbers(100_000), 1000);
    let source = CountingSource::new(object.clone());
    let (table, _) = scan("select(where='n % 100 = 0', limit=15)", source.clone()).unwrap();
    assert_eq!(table.rows(), 15);
    let read = source.bytes_read();
    assert!(read < object.len() as u64 / 4, "{read} of {} bytes", object.len());
}

#[test]
fn a_limit_stops_reading() {
    let object = parquet_file(&numbers(100_000), 10_000);
    let source = CountingSource::new(object.clone());
    let (table, _) = scan("select(limit=10)", source.clone()).unwrap();
    assert_eq!(table.rows(), 10);
    assert!(
        source.bytes_read() < object.len() as u64 / 5,
        "{}",
        source.bytes_read()
    );
}

#[test]
fn rows_arrive_before_the_last_row_group_is_read_and_dropping_stops_reading() {
    let object = parquet_file(&numbers(100_000), 1_000);
    let source = CountingSource::new(object.clone());
    block_on(async {
        let context = Context::new(b"object.parquet");
        let shared = Arc::new(source.clone());
        let mut scan = pipeline("select").scan(0..1, shared, &context).await.unwrap();
        let first = scan.next().await.unwrap().unwrap();
        assert_eq!(first.num_rows(), 1000);
    });
    assert!(
        source.bytes_read() < object.len() as u64 / 5,
        "{}",
        source.bytes_read()
    );
}

#[test]
fn peak_memory_is_the_selected_columns_of_the_row_groups_in_memory() {
    // A row group has 1.6 MB per column, so two are prefetched.
    let object = parquet_file(&numbers(2_000_000), 200_000);
    let held_and_read = |text: &str| {
        let (_, estimate) = scan_with(text, object.clone(), Limits::default()).expect(text);
        (estimate.peak_memory_bytes.unwrap(), estimate.scan_bytes.unwrap())
    };
    let (one_held, one_read) = held_and_read("select(columns=[n])");
    let (all_held, all_read) = held_and_read("select()");
    // Three row groups of ten, and the pages of one.
    assert!(
        one_held > one_read * 3 / 10 && one_held <= one_read / 2,
        "{one_held} of {one_read}"
    );
    assert!(
        all_held > one_held && all_held <= all_read / 2,
        "{all_held} of {all_read}"
    );
    let (two_held, _) = held_and_read("sql('select n from object union all select n from object')");
    assert_eq!(two_held, 2 * one_held, "two scans may run at the same time");
}

#[test]
fn a_range_of_rows_is_read() {
    let object = parquet_file(&numbers(40_000), 10_000);
    let lines: Vec<_> = (0..40_000).map(|n| n.to_string()).collect();
    let lines = lines.join("\n");
    let all = scan("select(columns=[n])", object.clone()).unwrap().1;
    for (from, to) in [
        (0, 40_000),
        (10_000, 20_000),
        (9_999, 30_001),
        (5, 5),
        (39_999, 90_000),
        (50_000, 60_000),
    ] {
        let text = format!("select(columns=[n], rows=[{from}, {to}], row_number=place)");
        let (table, estimate) = scan(&text, object.clone()).unwrap();
        let expected: Vec<_> = (from..to.min(40_000)).collect();
        assert_eq!(int64s(&table, 0), expected, "{text}");
        assert_eq!(int64s(&table, 1), expected, "{text}");
        assert_eq!(estimate.max_rows, Some(expected.len() as u64), "{text}");
        assert_eq!(run(&text, &object).unwrap(), table, "{text}");
        let text = format!("sql('select n, place from object', rows=[{from}, {to}], row_number=place)");
        assert_eq!(scan(&text, object.clone()).unwrap().0, table, "{text}");
        let text = format!(
            "select(columns=[column_1], rows=[{from}, {to}], row_number=place, header=false, format=csv)"
        );
        let table = run(&text, &Bytes::from(lines.clone())).unwrap();
        assert_eq!(
            (int64s(&table, 0), int64s(&table, 1)),
            (expected.clone(), expected),
            "{text}"
        );
    }
    let one = scan("select(columns=[n], rows=[10000, 20000])", object.clone())
        .unwrap()
        .1;
    assert_eq!(one.scan_bytes.unwrap(), all.scan_bytes.unwrap() / 4);
    let few = scan(
        "select(columns=[n], where='n % 1000 = 0', rows=[10000, 20000], limit=3)",
        object,
    );
    assert_eq!(int64s(&few.unwrap().0, 0), [10_000, 11_000, 12_000]);
    for wrong in [
        "rows=3",
        "rows=[1]",
        "rows=[2, 1]",
        "rows=[-1, 1]",
        "rows=[0, 1, 2]",
    ] {
        let error = Pipeline::parse(&format!("select({wrong})")).unwrap_err();
        assert!(error.to_string().contains("two row numbers"), "{wrong}: {error}");
    }
}
