//! What is refused, and where it ends.

use super::*;

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
    let unions = vec!["select 1 as n"; 400].join(" union all ");
    assert_eq!(run(&format!("sql(\"{unions}\")"), &object).unwrap().rows(), 400);
}

/// What one object of this size must not turn into.
#[test]
fn what_outgrows_the_object_is_refused() {
    let object = parquet_of(&numbers(10), 10);
    let bound = "no bound by the size of the object";
    for (query, says) in [
        ("select a.n from object a, object b", "a join"),
        ("select a.n from object a join object b on a.n = b.n", "a join"),
        ("select n from object intersect select m from object", "a join"),
        ("select n from object except select m from object", "a join"),
        (
            "select n from object where n in (select m from object)",
            "IN, EXISTS",
        ),
        (
            "select n from object a where exists (select 1 from object b where b.n > a.n)",
            "IN, EXISTS",
        ),
        (
            "select n from object where n > all (select m from object)",
            "IN, EXISTS",
        ),
        (
            "select (select max(b.n) from object b where b.n < a.n) from object a",
            "takes columns of it",
        ),
        (
            "select (select max(text) from object), n from object",
            "gives a text",
        ),
        ("select unnest(make_array(n, m)) from object", "unnest"),
        (
            "select n, m, count(*) from object group by cube(n, m)",
            "several sets",
        ),
        ("select repeat(text, 1000000000) from object", "function `repeat`"),
        (
            "select lpad(text, 1000000000, 'x') from object",
            "function `lpad`",
        ),
        (
            "select rpad(text, 1000000000, 'x') from object",
            "function `rpad`",
        ),
        (
            "select array_repeat(n, 1000000000) from object",
            "function `array_repeat`",
        ),
        (
            "select array_resize(make_array(n), 1000000000) from object",
            "function `array_resize`",
        ),
        ("select range(1000000000) from object", "function `range`"),
        (
            "select generate_series(1000000000) from object",
            "function `generate_series`",
        ),
        (
            "select array_to_string(make_array(n), text) from object",
            "function `array_to_string`",
        ),
        ("select cast(make_array(n) as varchar) from object", "as text"),
        (
            "select array_agg(n) over (order by n) from object",
            "found `array_agg` over windows",
        ),
        (
            "select median(n) over (order by n) from object",
            "found `median` over windows",
        ),
        ("select count(distinct n) over () from object", "DISTINCT"),
        (
            "select first_value(text) over (order by n) from object",
            "gives a text",
        ),
        (
            "select lag(n) ignore nulls over (order by n) from object",
            "IGNORE NULLS",
        ),
        (
            "select levenshtein(text, text) from object",
            "function `levenshtein`",
        ),
        (
            "select array_has_any(make_array(n), make_array(m)) from object",
            "`array_has_any`",
        ),
        (
            "select n from object where regexp_like(text, text)",
            "expected a literal",
        ),
        ("select n from object where text ~ text", "expected a literal"),
        ("select arrow_cast(make_array(n), 'Utf8') from object", "as text"),
        ("select text || text from object", "write concat(a, b)"),
    ] {
        let error = run(&format!("sql(\"{query}\")"), &object).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidPipeline, "{query}: {error}");
        let text = error.to_string();
        assert!(text.contains(says), "{query}: {error}");
        let reasons = [
            bound,
            "literal",
            "over windows",
            "concat(a, b)",
            "time has no bound",
        ];
        assert!(
            reasons.iter().any(|reason| text.contains(reason)),
            "{query}: {error}"
        );
    }
    let windows: Vec<_> = (0..17)
        .map(|place| format!("sum(n + {place}) over (order by n) as c{place}"))
        .collect();
    let error = run(
        &format!("sql(\"select {} from object\")", windows.join(", ")),
        &object,
    )
    .unwrap_err();
    assert!(
        error.to_string().contains("more than 16 window functions"),
        "{error}"
    );
}

/// Texts that double from query to query, windows over all rows, and groups of all texts end at the memory of a query.
#[test]
fn what_a_query_makes_and_holds_is_bounded() {
    let object = parquet_of(&numbers(100_000), 10_000);
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

/// Each function that DataFusion offers was looked at: does its result grow beyond its arguments?
#[test]
fn every_function_is_known() {
    let mut names: Vec<_> = datafusion::execution::SessionStateDefaults::default_scalar_functions()
        .iter()
        .map(|function| function.name().to_owned())
        .collect();
    names.sort_unstable();
    insta::assert_snapshot!(names.join("\n"));
}
