//! Results of `select` and `sql`.

use super::*;

#[test]
fn select_returns_the_columns_in_order_and_the_matching_rows() {
    let object = parquet_file(&numbers(100), 30);
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
    let object = parquet_file(&numbers(100), 30);
    let sql = "sql(\"select m, count(*) as c, sum(n) as s from object where n > 9 group by m order by m desc limit 2\")";
    let table = run(sql, &object).unwrap();
    assert_eq!(int64s(&table, 0), [6, 5]);
    assert_eq!(int64s(&table, 1), [13, 13]);
    let expected = |m: i64| (10..100).filter(|n| n % 7 == m).sum::<i64>();
    assert_eq!(int64s(&table, 2), [expected(6), expected(5)]);
    // Without ORDER BY, groups are in the order of the file.
    let table = run("sql(\"select m from object where n > 9 group by m\")", &object).unwrap();
    assert_eq!(int64s(&table, 0), [3, 4, 5, 6, 0, 1, 2]);
}

/// Row groups in which all rows match have no precedence over earlier ones.
#[test]
fn a_limit_returns_the_first_rows_of_the_file() {
    let n = (0..100).chain(std::iter::repeat_n(50, 100));
    let batch = RecordBatch::try_from_iter([("n", column(n)), ("row", column(0..200))]).unwrap();
    let object = parquet_file(&batch, 100);
    let table = run("select(columns=[row], where=\"n >= 50\", limit=3)", &object).unwrap();
    assert_eq!(int64s(&table, 0), [50, 51, 52]);
}

/// Statistics do not include NaN.
#[test]
fn nan_is_greater_than_any_number_in_any_row_group() {
    let values = Float64Array::from(vec![1.0, f64::NAN, 2.0, 3.0, 7.0, f64::NAN]);
    let batch = RecordBatch::try_from_iter([("x", Arc::new(values) as ArrayRef)]).unwrap();
    for rows in [2, 6] {
        let object = parquet_file(&batch, rows);
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

/// Bloom filters and statistics compare bytes, and the two zeros have different bytes.
#[test]
fn minus_zero_equals_zero_with_bloom_filters() {
    let value = |row: i64| match row / 1000 {
        0 => -0.0,
        1 => 0.0,
        _ => 1.0,
    };
    let batch = RecordBatch::try_from_iter([
        (
            "f",
            Arc::new(Float64Array::from_iter_values((0..3000).map(value))) as ArrayRef,
        ),
        ("row", column(0..3000)),
    ])
    .unwrap();
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(1000))
        .set_column_bloom_filter_max_ndv("f".into(), 10)
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    let object = Bytes::from(writer.into_inner().unwrap());
    for condition in ["f = 0.0", "f = -0.0", "f = 0", "0.0 = f", "f <= -0.0"] {
        let table = run(&format!("select(columns=[row], where=\"{condition}\")"), &object).unwrap();
        assert_eq!(int64s(&table, 0), (0..2000).collect::<Vec<_>>(), "{condition}");
    }
    for condition in ["f < 0.0", "f < 0.0 or f > 1.0"] {
        let table = run(&format!("select(where=\"{condition}\")"), &object).unwrap();
        assert_eq!(table.rows(), 0, "{condition}");
    }
}

#[test]
fn floats_are_summed_in_the_order_of_the_file() {
    let values = Float64Array::from_iter_values((0..20_000).map(|n| 1.0 / f64::from(n + 1)));
    let batch = RecordBatch::try_from_iter([("x", Arc::new(values) as ArrayRef)]).unwrap();
    let object = parquet_file(&batch, 3_000);
    let sum = || {
        let table = run("sql(\"select sum(x) as s from object\")", &object).unwrap();
        table.batches()[0]
            .column(0)
            .as_primitive::<Float64Type>()
            .value(0)
            .to_bits()
    };
    let first = sum();
    assert!((0..5).all(|_| sum() == first));
}

#[test]
fn output_types_are_readable_by_arrow_clients() {
    let words: DictionaryArray<Int8Type> = vec!["a", "b", "a"].into_iter().collect();
    let views = StringViewArray::from(vec!["a string longer than twelve", "b", "c"]);
    let columns: [(&str, ArrayRef); 2] = [("word", Arc::new(words)), ("view", Arc::new(views))];
    let object = parquet_file(&RecordBatch::try_from_iter(columns).unwrap(), 10);
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
fn text_and_json_are_equivalent() {
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

/// A number that wraps around would be a wrong value, or make a condition skip its row.
#[test]
fn integer_overflow_is_an_error() {
    let max = i64::MAX;
    let small: ArrayRef = Arc::new(Int8Array::from(vec![100, 27, 1, -128]));
    let columns = [("n", column([1, 2, 0, -1].into_iter())), ("i", small)];
    let object = parquet_file(&RecordBatch::try_from_iter(columns).unwrap(), 4);
    for text in [
        format!("sql('select n + {max} as v from object')"),
        format!("sql('select n - {max} - 2 as v from object')"),
        format!("sql('select n * {max} as v from object')"),
        "sql('select i + i as v from object')".to_owned(),
        "sql('select -i as v from object')".to_owned(),
        format!("sql('select sum(n + {}) as v from object')", max - 2),
        format!(
            "sql('select i, sum(n + {}) as v from object group by i % 1, i order by sum(n + {max} - 1 - n)')",
            max - 2
        ),
        format!(
            "sql('select sum(n + {}) over (order by i) as v from object')",
            max - 2
        ),
        format!("select(where='n + {max} > 0')"),
    ] {
        let error = run(&text, &object).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsuitable, "{text}: {error}");
        assert!(error.to_string().contains("verflow"), "{text}: {error}");
    }
    let wide =
        "sql('select i + n as a, i * 2 as b, -n as c, n - 5, sum(i) over () as s from object limit 1')";
    let table = run(wide, &object).unwrap();
    let names = table.schema().fields().iter().map(|field| field.name().as_str());
    assert_eq!(
        names.collect::<Vec<_>>(),
        ["a", "b", "c", "object.n - Int64(5)", "s"]
    );
    assert_eq!(
        [0, 2, 3].map(|column| int64s(&table, column)),
        [[101], [-1], [-4]]
    );
    assert_eq!(int64s(&table, 4), [0]);
    // Sums have 128 bits, so an intermediate sum may exceed 64.
    let intermediate_overflow = format!(
        "sql('select sum(case when n < 0 then -{max} else {max} // 2 end) as s, count(*) as c from object')"
    );
    let table = run(&intermediate_overflow, &object).unwrap();
    assert_eq!(int64s(&table, 0), [max / 2 - 1]);
}

/// The time of planning is quadratic in the number of columns.
#[test]
fn stars_over_many_columns_are_rejected_before_planning() {
    let columns = (0..3000).map(|index| (format!("c{index}"), column([index].into_iter())));
    let object = parquet_file(&RecordBatch::try_from_iter(columns).unwrap(), 1);
    assert_eq!(run("select", &object).unwrap().rows(), 1);
    let error = run("sql('select *, object.* from object')", &object).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    assert!(
        error.to_string().contains("3000 columns of the object, 2 times"),
        "{error}"
    );
}

#[test]
fn a_query_without_a_table_has_no_columns() {
    let object = parquet_file(&numbers(1), 1);
    let error = run("sql('select n + from object')", &object).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidPipeline, "{error}");
    assert!(error.to_string().contains("is `FROM object` missing?"), "{error}");
}
