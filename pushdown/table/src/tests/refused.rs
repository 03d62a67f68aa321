//! Queries that are rejected.

use super::*;

#[test]
fn forbidden_queries_are_rejected() {
    let object = parquet_file(&numbers(10), 10);
    for (text, kind, message) in [
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
            "did you mean `text`? (line 1, column 8 of the query)",
        ),
        (
            "sql(\"select n from object\n  where m = 1 and o.m = 2\")",
            ErrorKind::Unsuitable,
            "(line 2, column 19 of the query)",
        ),
        (
            "sql(\"select n, sum(m) from object\")",
            ErrorKind::InvalidPipeline,
            "(line 1, column 8 of the query)",
        ),
        (
            "sql(\"select -text from object\")",
            ErrorKind::InvalidPipeline,
            "(line 1, column ",
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
    ] {
        let error = run(text, &object).unwrap_err();
        assert_eq!(error.kind(), kind, "{text}: {error}");
        assert!(error.to_string().contains(message), "{text}: {error}");
        assert_eq!(scan(text, object.clone()).unwrap_err(), error, "{text}");
    }
}

#[test]
fn sql_errors_have_their_position_in_the_pipeline() {
    for (text, fragment) in [
        ("sql(\"select a form object\")", "object"),
        ("sql(query='select * from object where')", "')"),
        ("select(columns=[a], where=\"a = = 1\")", "= 1"),
        ("sql(\"drop table object\")", "drop"),
    ] {
        let error = Pipeline::parse(text).unwrap_err();
        assert_eq!(
            error.position().map(|position| position as usize),
            text.find(fragment),
            "{text}: {error}"
        );
    }
}

/// Queries whose output or memory could exceed the object without a limit.
#[test]
fn queries_without_a_bound_are_rejected() {
    let object = parquet_file(&numbers(10), 10);
    let bound = "no bound by the size of the object";
    for (query, message) in [
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
            "columns of the outer query",
        ),
        (
            "select (select max(text) from object), n from object",
            "returns a text",
        ),
        ("select unnest(make_array(n, m)) from object", "unnest"),
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
            "returns a text",
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
        let text = format!("sql(\"{query}\")");
        // Some are found in the text alone.
        let parsed = Pipeline::parse(&text);
        let error = parsed.map_or_else(|error| error, |_| run(&text, &object).unwrap_err());
        assert_eq!(error.kind(), ErrorKind::InvalidPipeline, "{query}: {error}");
        let text = error.to_string();
        assert!(text.contains(message), "{query}: {error}");
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
        .map(|index| format!("sum(n + {index}) over (order by n) as c{index}"))
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

/// The planner compares an unknown name with all columns.
#[test]
fn the_length_of_names_in_queries_is_limited() {
    let object = parquet_file(&numbers(10), 10);
    let long = "x".repeat(257);
    for text in [
        format!("sql(\"select {long} from object\")"),
        format!("sql('select \"{long}\" from object')"),
        format!("select(where=\"{long} > 1\")"),
    ] {
        let error = Pipeline::parse(&text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidPipeline, "{error}");
        let message = "expected at most 256 bytes, found 257";
        assert!(error.to_string().contains(message), "{error}");
    }
    let near = run(&format!("select(where=\"{} > 1\")", &long[1..]), &object).unwrap_err();
    assert_eq!(near.kind(), ErrorKind::Unsuitable, "{near}");
    let value = run(&format!("select(where=\"text <> '{long}'\")"), &object).unwrap();
    assert_eq!(value.rows(), 10);
}

/// Each function of DataFusion has been reviewed: can its result be larger than its arguments?
#[test]
fn every_function_is_reviewed() {
    let mut names: Vec<_> = datafusion::execution::SessionStateDefaults::default_scalar_functions()
        .iter()
        .map(|function| function.name().to_owned())
        .collect();
    names.sort_unstable();
    insta::assert_snapshot!(names.join("\n"));
}
