//! Limits on the input, the memory and the output of queries.

use super::*;

#[test]
fn an_object_that_is_not_a_table_is_undecodable() {
    let object = parquet_file(&numbers(1000), 100);
    let half = object.slice(object.len() / 2..);
    let mut false_length = object.to_vec();
    let length = false_length.len();
    false_length[length - 8..length - 4].copy_from_slice(&u32::MAX.to_le_bytes());
    for bytes in [
        Bytes::new(),
        Bytes::from_static(b"PAR1"),
        half,
        false_length.into(),
        object.slice(..900),
    ] {
        for text in ["select", "select(format=parquet)"] {
            let error = run(text, &bytes).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Undecodable, "{error}");
        }
    }
}

#[test]
fn limits_are_enforced() {
    let object = parquet_file(&numbers(200_000), 100_000);
    let error_within = |text: &str, tables: TableLimits| {
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
    assert!(error_within("select", columns).contains("found 3"));
    let group = TableLimits {
        max_row_group_bytes: 1000,
        ..tables
    };
    assert!(error_within("select", group).contains("row group"));
    let memory = TableLimits {
        max_query_bytes: 100_000,
        ..tables
    };
    assert!(error_within("sql(\"select text from object order by text\")", memory).contains("memory"));
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
fn the_estimate_of_a_sort_is_the_memory_of_a_whole_query() {
    let object = parquet_file(&numbers(1000), 1000);
    let held = |query: &str| {
        let estimate = scan(&format!("sql('{query}')"), object.clone()).unwrap().1;
        estimate.peak_memory_bytes.unwrap()
    };
    let query = TableLimits::default().max_query_bytes;
    assert!(held("select n, text from object") < 1 << 20);
    for sorted in [
        "select n from object order by text",
        "select n, sum(n) over (order by m, n) as s from object",
    ] {
        let held = held(sorted);
        assert!((query..query + (1 << 20)).contains(&held), "{sorted}: {held}");
    }
}

/// A page has a thousand values of any size.
#[test]
fn pages_of_large_values_are_estimated_as_large() {
    let texts = StringArray::from_iter_values((10..74).map(|n| format!("{n}").repeat(50_000)));
    let batch = RecordBatch::try_from_iter([("text", Arc::new(texts) as ArrayRef)]).unwrap();
    let object = parquet_file(&batch, 64);
    let held = scan("select", object.clone())
        .unwrap()
        .1
        .peak_memory_bytes
        .unwrap();
    let bytes = object.len() as u64;
    assert!(held >= 2 * bytes - bytes / 10, "{held} of {bytes}");
}

/// Filters and sorts return as many rows per batch as they read. 8,192 photos would exceed the limit of a record batch.
#[test]
fn every_operator_returns_large_values_in_small_batches() {
    let texts = StringArray::from_iter_values((10..90).map(|n| format!("{n}").repeat(1 << 19)));
    let columns: [(&str, ArrayRef); 2] = [("n", column(0..80)), ("text", Arc::new(texts))];
    let object = parquet_file(&RecordBatch::try_from_iter(columns).unwrap(), 40);
    for text in [
        "select(where='n >= 0')",
        "sql('select n, text from object where n <> 100 order by n desc')",
    ] {
        let (table, _) = scan(text, object.clone()).unwrap();
        assert_eq!(table.rows(), 80);
        let max_rows = table.batches().iter().map(RecordBatch::num_rows).max();
        assert!(
            max_rows.is_some_and(|rows| rows < 64),
            "{text}: {max_rows:?} rows of a megabyte"
        );
    }
}

/// A few bytes of a file can refer to a long dictionary value any number of times, and the footer does not count this.
#[test]
fn long_dictionary_values_are_returned_in_small_batches() {
    const LENGTH: usize = 1 << 20;
    let values: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(LENGTH), "y".repeat(LENGTH)]));
    let keys = Int8Array::from_iter_values((0..1_000).map(|row| i8::from(row % 200 == 199)));
    let texts = DictionaryArray::new(keys, values);
    let columns: [(&str, ArrayRef); 2] = [("n", column(0..1_000)), ("text", Arc::new(texts))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder()
        .set_dictionary_page_size_limit(4 << 20)
        .build();
    let options = ArrowWriterOptions::new()
        .with_properties(properties)
        // With the Arrow schema, the column would be read as a dictionary.
        .with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(Vec::new(), batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    let object = Bytes::from(writer.into_inner().unwrap());
    assert!(object.len() < 3 * LENGTH, "{} bytes", object.len());
    for (text, rows, max_rows) in [
        ("select(columns=[text], limit=100)", 100, 63),
        ("select(columns=[n, text], where='n % 200 = 199')", 5, 63),
        (
            "sql('select n, text from object where n > 200 limit 100')",
            100,
            63,
        ),
        // Other columns are not affected.
        ("select(columns=[n])", 1_000, 1_000),
        (
            "sql('select count(*) as c, max(octet_length(text)) as l from object')",
            1,
            1,
        ),
    ] {
        let (table, _) = scan(text, object.clone()).unwrap();
        assert_eq!(table.rows(), rows, "{text}");
        let found = table.batches().iter().map(RecordBatch::num_rows).max();
        assert!(
            found.is_some_and(|rows| rows <= max_rows),
            "{text}: {found:?} rows"
        );
    }
}

#[test]
fn the_size_of_plans_is_limited() {
    let object = parquet_file(&numbers(10), 10);
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

/// The deepest valid queries fit in the default stack of a thread.
#[test]
fn the_deepest_queries_run() {
    let object = parquet_file(&numbers(10), 10);
    for (deep, count, rows) in [(" + n", 490, 9), ("::bigint", 490, 8), (" > m or n", 240, 8)] {
        let condition = format!("n{} > 1", deep.repeat(count));
        let table = run(&format!("select(where=\"{condition}\")"), &object).unwrap();
        assert_eq!(table.rows(), rows, "{deep}");
    }
    let named: Vec<_> = (1..32)
        .map(|place| {
            format!(
                "t{place} as (select n + 1 as n, n / 2 as m from t{} where n > m)",
                place - 1
            )
        })
        .collect();
    let named = named.join(", ");
    for sql in [
        format!("with t0 as (select * from object), {named} select n from t31"),
        format!(
            "{}select n from object{}",
            "select n from (".repeat(8),
            ")".repeat(8)
        ),
        format!(
            "select n from object where n < {}9{}",
            "(select max(n) from object where n < ".repeat(7),
            ")".repeat(7)
        ),
    ] {
        run(&format!("sql(\"{sql}\")"), &object).expect(&sql);
    }
    let unions = vec!["select 1 as n"; 250].join(" union all ");
    assert_eq!(run(&format!("sql(\"{unions}\")"), &object).unwrap().rows(), 250);
}

/// Texts that double in nested queries, windows over all rows, and groups of all texts are limited by the memory of a query.
#[test]
fn the_memory_of_a_query_is_limited() {
    let object = parquet_file(&numbers(100_000), 10_000);
    let limits = Limits {
        tables: TableLimits {
            max_query_bytes: 1 << 20,
            ..TableLimits::default()
        },
        ..Limits::default()
    };
    let nested = |what: &str, times: usize| {
        let named: Vec<_> = (1..=times)
            .map(|place| format!("t{place} as (select {what} as text from t{})", place - 1))
            .collect();
        format!(
            "with t0 as (select text from object), {} select text from t{times}",
            named.join(", ")
        )
    };
    let few = "select concat(text, text) as t, replace(text, 'x', 'yyy') as r, make_array(n, m) as l from object limit 10";
    let window = "select sum(n) over (order by m rows between 3 preceding and current row) as s from object";
    assert!(scan_with(&format!("sql(\"{few}\")"), object.clone(), limits).is_ok());
    for query in [
        nested("concat(text, text)", 30),
        nested("concat_ws(text, text, text)", 30),
        nested("replace(text, '', text)", 30),
        nested("encode(text, 'hex')", 30),
        nested("regexp_replace(text, '.', 'aaaaaaaaaaaaaaaaaaaa', 'g')", 30),
        "select replace(replace(replace('aaaaaaaaaaaaaaaa', 'a', 'bbbbbbbbbbbbbbbb'), 'b', 'cccccccccccccccc'), 'c', 'dddddddd') as t, n from object".to_owned(),
        "select array_agg(text) as l from object".to_owned(),
        "select n, count(*) from object group by n".to_owned(),
        "select text from object order by text, n".to_owned(),
        window.to_owned(),
        "select count(*) over () as c, n, m from object".to_owned(),
    ] {
        let error = scan_with(&format!("sql(\"{query}\")"), object.clone(), limits).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{query}: {error}");
        assert!(error.to_string().contains("memory"), "{query}: {error}");
    }
    assert!(scan(&format!("sql(\"{window}\")"), object).is_ok());
}
