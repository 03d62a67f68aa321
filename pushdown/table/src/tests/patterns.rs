//! Patterns in queries.

use super::*;

/// A pattern is part of the pipeline, so an invalid one is an error of the pipeline, even if the object has no rows.
#[test]
fn invalid_patterns_are_errors_of_the_pipeline() {
    let too_large = r"(\w{100}){100}";
    let underscores = "_".repeat(12_000);
    let objects = [0, 10].map(|rows| parquet_file(&numbers(rows), 10));
    let cases = [
        (
            format!("regexp_replace(text, '{too_large}', '') = ''"),
            "compiles to more than 10485760 bytes",
        ),
        (
            format!("regexp_like(text, '{too_large}')"),
            "compiles to more than",
        ),
        (
            format!("regexp_like(text, '{too_large}', 'i')"),
            "compiles to more than",
        ),
        (
            format!("regexp_match(text, '{too_large}') is null"),
            "compiles to more than",
        ),
        (
            format!("regexp_count(text, '{too_large}') = 1"),
            "compiles to more than",
        ),
        (
            format!("regexp_instr(text, '{too_large}') = 1"),
            "compiles to more than",
        ),
        (format!("text ~ '{too_large}'"), "compiles to more than"),
        (format!("text !~* '{too_large}'"), "compiles to more than"),
        (format!("text similar to '{too_large}'"), "compiles to more than"),
        (format!("text like '{underscores}'"), "compiles to more than"),
        (format!("text ilike 'a{underscores}'"), "compiles to more than"),
        (
            "regexp_replace(text, 'a(b', '') = ''".to_owned(),
            "invalid pattern: unclosed group",
        ),
        (
            "text ~ '[z-a]'".to_owned(),
            "invalid pattern: invalid character class range",
        ),
        (
            "regexp_like(text, 'a', 'y')".to_owned(),
            "invalid pattern: unrecognized flag",
        ),
        (
            "regexp_replace(text, 'a', 'b', text) = ''".to_owned(),
            "expected a literal",
        ),
        ("text ~ concat(text, 'a')".to_owned(), "expected a literal"),
    ];
    for (index, (condition, message)) in cases.iter().enumerate() {
        let texts = [
            format!("select(where=\"{condition}\")"),
            format!("sql(\"select n from object where {condition}\")"),
            format!("sql(\"select {condition} as c from object\")"),
        ];
        // A backslash in a quoted string of a pipeline is escaped by another.
        let text = texts[index % texts.len()].replace('\\', r"\\");
        let error = run(&text, &objects[index % objects.len()]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidPipeline, "{text}: {error}");
        assert!(error.to_string().contains(message), "{text}: {error}");
    }
}

#[test]
fn patterns_match() {
    let object = parquet_file(&numbers(20), 7);
    for (condition, count) in [
        ("text ~ 'r 1.$'", 10),
        ("text ~* 'R 1.$'", 10),
        ("text !~ 'r 1.$'", 10),
        ("regexp_like(text, 'NUMBER 7', 'i')", 1),
        ("regexp_replace(text, '[a-z ]', '', 'g') = '7'", 1),
        ("text like 'row number _'", 10),
        ("text ilike 'ROW%9'", 2),
        ("text ~ null", 0),
    ] {
        let table = run(&format!("select(where=\"{condition}\")"), &object).unwrap();
        assert_eq!(table.rows(), count, "{condition}");
    }
}

/// Each may take 10 MiB.
#[test]
fn the_number_of_counted_patterns_is_limited() {
    let object = parquet_file(&numbers(10), 10);
    let query = |count: usize| {
        let conditions: Vec<_> = (1..=count).map(|n| format!("text ~ 'r{{{n}}}'")).collect();
        format!(
            "select n from object where {} or text ~ 'x'",
            conditions.join(" or ")
        )
    };
    run(&format!("sql(\"{}\")", query(8)), &object).unwrap();
    let error = run(&format!("sql(\"{}\")", query(9)), &object).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidPipeline, "{error}");
    assert!(
        error.to_string().contains("more than 8 regular expressions"),
        "{error}"
    );
}
