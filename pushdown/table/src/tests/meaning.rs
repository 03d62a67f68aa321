//! Expressions have the meaning of `DuckDB`, in `sql` and in `where`, with and without pruning by statistics. The golden tables
//! have further expressions (`scripts/golden_tables_cases/meaning.py`).

use super::*;

/// Rows for conditions: `n` is the row number, `h` is `n` / 2, `d` is `h` as a decimal, `s` is a text.
fn rows() -> RecordBatch {
    let halves = (0..12).map(|n| f64::from(n) / 2.0);
    let texts = ["hello", "World", "größe", "a%b", "", "a\\b"];
    let decimals = Decimal128Array::from_iter_values((0..12).map(|n| n * 5));
    let stamps = (0..12).map(|n| 1_704_067_200_000_000 + n * 500_000);
    let columns: [(&str, ArrayRef); 5] = [
        ("n", column(0..12)),
        ("h", Arc::new(Float64Array::from_iter_values(halves))),
        ("d", Arc::new(decimals.with_precision_and_scale(10, 1).unwrap())),
        (
            "s",
            Arc::new(StringArray::from_iter_values(texts.iter().cycle().take(12))),
        ),
        (
            "ts",
            Arc::new(TimestampMicrosecondArray::from_iter_values(stamps)),
        ),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Row numbers by `DuckDB` 2.0.0.
#[test]
fn conditions_match_duckdb_with_and_without_statistics() {
    let batch = rows();
    let mut arrow = arrow_ipc::writer::FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    arrow.write(&batch).unwrap();
    arrow.finish().unwrap();
    let objects = [
        parquet_file(&batch, 2),
        parquet_file(&batch, 12),
        Bytes::from(arrow.into_inner().unwrap()),
    ];
    for (condition, expected) in [
        ("n / 2 > 5", &[11][..]),
        ("n / 2 = 3.5", &[7]),
        ("n / 2 = 3", &[6]),
        ("n // 2 = 3", &[6, 7]),
        ("7 / 2 > 3 and n = 1", &[1]),
        ("n / 4 >= 2.5", &[10, 11]),
        ("d / 3 > 1.5", &[10, 11]),
        ("1 / n > 0.5 and n < 2", &[0, 1]),
        ("n ^ 2 > 100", &[11]),
        ("n ** 2 = 49", &[7]),
        ("2 * 3 ^ 2 = 18 and n = 0", &[0]),
        ("-n ^ 2 = 4", &[2]),
        ("cast(h as int) = 2", &[3, 4, 5]),
        ("cast(h as int) > 4", &[10, 11]),
        ("cast(d as int) = 2", &[3, 4]),
        ("cast(2.5 as int) = n", &[3]),
        ("cast(2.5::double as int) = n", &[2]),
        ("cast('1.5' as int) = n", &[2]),
        ("h = 2.5", &[5]),
        ("h > 5.4", &[11]),
        ("h in (0.5, 1)", &[1, 2]),
        ("h between 0.5 and 1.0", &[1, 2]),
        ("n > 10.5", &[11]),
        ("0.1 + 0.2 = 0.3 and n = 4", &[4]),
        ("substr(s, -2) = 'lo'", &[0, 6]),
        ("substr(s, -2, 1) = 'ß'", &[2, 8]),
        ("substring(s from 2 for 2) = 'el'", &[0, 6]),
        ("s like 'a%b'", &[3, 5, 9, 11]),
        ("s like 'a\\\\%b'", &[5, 11]),
        ("s like 'a!%b' escape '!'", &[3, 9]),
        ("s like 'a\\\\b'", &[5, 11]),
        ("s similar to 'ell'", &[]),
        ("s similar to 'h.*|World'", &[0, 1, 6, 7]),
        ("s ~ 'ell'", &[0, 6]),
        ("cast(ts as varchar) = '2024-01-01 00:00:00.5'", &[1]),
        ("cast(ts as varchar) = '2024-01-01 00:00:01'", &[2]),
        ("cast(h as varchar) = '1.0'", &[2]),
        ("concat(h, s) = '0.0hello'", &[0]),
        ("ts > timestamp '2024-01-01 00:00:05'", &[11]),
        ("ts < timestamp '9999-12-31 00:00:00' and n = 2", &[2]),
    ] {
        for (index, object) in objects.iter().enumerate() {
            for text in [
                format!("select(columns=[n], where=\"{condition}\")"),
                format!("sql(\"select n from object where {condition}\")"),
                format!("sql(\"select n from (select n, {condition} as c from object) where c\")"),
            ] {
                let table = run(&text, object).expect(&text);
                let found = if table.rows() == 0 {
                    Vec::new()
                } else {
                    int64s(&table, 0)
                };
                assert_eq!(found, expected, "{text} of object {index}");
            }
        }
    }
}

#[test]
fn nulls_are_last_in_both_orders() {
    let values = Int64Array::from(vec![Some(2), None, Some(3), Some(1), None]);
    let columns = [("v", Arc::new(values) as ArrayRef), ("n", column(0..5))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    for rows in [1, 2, 5] {
        let object = parquet_file(&batch, rows);
        for (order, expected) in [
            ("v", [3, 0, 2, 1, 4]),
            ("v desc", [2, 0, 3, 1, 4]),
            ("v asc nulls first", [1, 4, 3, 0, 2]),
            ("v desc nulls first", [1, 4, 2, 0, 3]),
            ("v desc nulls last", [2, 0, 3, 1, 4]),
            ("-v", [2, 0, 3, 1, 4]),
            ("v / 2 desc", [2, 0, 3, 1, 4]),
        ] {
            let table = run(
                &format!("sql('select n from object order by {order}, n')"),
                &object,
            )
            .unwrap();
            assert_eq!(int64s(&table, 0), expected, "{order}");
            let query = format!("sql('select n from object order by {order}, n limit 4')");
            assert_eq!(
                int64s(&run(&query, &object).unwrap(), 0),
                expected[..4],
                "{order}"
            );
            let rank = format!(
                "sql('select n from (select n, row_number() over (order by {order}, n) as r from object) order by r')"
            );
            assert_eq!(int64s(&run(&rank, &object).unwrap(), 0), expected, "{order}");
        }
    }
}

#[test]
fn the_min_and_max_of_floats_may_be_infinite_or_nan() {
    let values = Float64Array::from(vec![f64::NAN, 2.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN]);
    let columns = [
        ("g", column([0, 0, 1, 2, 3].into_iter())),
        ("x", Arc::new(values) as ArrayRef),
    ];
    let object = parquet_file(&RecordBatch::try_from_iter(columns).unwrap(), 2);
    let query = "sql('select g, min(x) as low, max(x) as high from object group by g order by g')";
    let table = run(query, &object).unwrap();
    let floats = |column: usize| -> Vec<f64> {
        let batches = table.batches().iter();
        batches
            .flat_map(|batch| {
                batch
                    .column(column)
                    .as_primitive::<Float64Type>()
                    .values()
                    .to_vec()
            })
            .collect()
    };
    let (low, high) = (floats(1), floats(2));
    assert_eq!(low[..3], [2.5, f64::INFINITY, f64::NEG_INFINITY]);
    assert!(low[3].is_nan() && high[0].is_nan() && high[3].is_nan());
    assert_eq!(high[1..3], [f64::INFINITY, f64::NEG_INFINITY]);
}

#[test]
fn values_outside_of_a_type_are_errors_of_the_object_or_null() {
    let object = parquet_file(&rows(), 5);
    for (expression, message) in [
        ("cast(s as int)", "to Int32"),
        ("cast(h * 100 as tinyint)", "to Int8"),
        ("cast(1e20 as bigint)", "to Int64"),
        ("cast('nan'::double as int)", "to Int32"),
        ("cast(300.0 as utinyint)", "to UInt8"),
        ("cast(s as boolean)", "to Boolean"),
        ("cast('off' as boolean)", "to Boolean"),
        ("cast(s as decimal(5, 2))", "to Decimal128(5, 2)"),
        ("cast('1000' as decimal(5, 2))", "to Decimal128(5, 2)"),
        ("n // 0", "ivide by zero"),
        ("n % 0", "ivide by zero"),
    ] {
        let text = format!("sql(\"select {expression} as v from object\")");
        let error = run(&text, &object).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsuitable, "{text}: {error}");
        assert!(error.to_string().contains(message), "{text}: {error}");
        if let Some(cast) = expression.strip_prefix("cast") {
            let text = format!("sql(\"select n from object where try_cast{cast} is null\")");
            assert!(run(&text, &object).unwrap().rows() > 0, "{text}");
        }
    }
    let error = run("sql('select h // 2 as v from object')", &object).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidPipeline, "{error}");
    assert!(error.to_string().contains("expected integers"), "{error}");
}

/// The differences from `DuckDB` 2.0.0 in `docs/SEMANTICS.md`.
#[test]
fn documented_differences_from_duckdb() {
    let object = parquet_file(&rows(), 5);
    let first_value = |query: &str| {
        let table = run(&format!("sql(\"{query}\")"), &object).expect(query);
        let batch = &table.batches()[0];
        let value = arrow_cast::display::array_value_to_string(batch.column(0), 0).unwrap();
        (value, batch.schema().field(0).data_type().clone())
    };
    let text = |query: &str| first_value(query).0;
    assert_eq!(text("select upper('größe') as v"), "GRÖSSE");
    assert_eq!(text("select split_part('abc', '', 1) as v"), "abc");
    assert_eq!(text("select string_to_array('', ',') as v"), "[]");
    assert_eq!(
        text("select corr(h, n) is null as v from object where n = 1"),
        "true"
    );
    assert_eq!(
        first_value("select 2147483647 + 1 as v"),
        ("2147483648".to_owned(), DataType::Int64)
    );
    let (_, difference) = first_value("select ts - timestamp '2024-01-01 00:00:00' as v from object");
    assert!(matches!(difference, DataType::Duration(_)), "{difference}");
    let (_, stamp) = first_value("select to_timestamp(1) as v");
    assert!(matches!(stamp, DataType::Timestamp(_, None)), "{stamp}");
}
