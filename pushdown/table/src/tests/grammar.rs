//! Unsupported clauses are rejected by name, before the object is read.

use super::*;

#[test]
fn unsupported_clauses_are_rejected_by_name() {
    let mut failures = Vec::new();
    for (query, message) in [
        (
            "select n from object tablesample (10 percent)",
            "append the step `sample(fraction, seed)`",
        ),
        (
            "select n from object tablesample bernoulli (10) repeatable (7)",
            "TABLESAMPLE",
        ),
        ("select n from object sample 0.1", "TABLESAMPLE"),
        (
            "select * from (select n from object) tablesample (5 rows)",
            "TABLESAMPLE",
        ),
        (
            "select n from object as o tablesample (10 percent)",
            "TABLESAMPLE",
        ),
        (
            "with t as (select n from object tablesample (1 rows)) select * from t",
            "TABLESAMPLE",
        ),
        (
            "select n from object where n > (select max(n) from object tablesample (1 rows))",
            "TABLESAMPLE",
        ),
        (
            "select n from object union all select n from object tablesample (1 rows)",
            "TABLESAMPLE",
        ),
        (
            "select n from object fetch first 2 rows only",
            "FETCH (write LIMIT)",
        ),
        (
            "select n from object order by n fetch first 2 rows with ties",
            "FETCH",
        ),
        ("select top 2 n from object", "TOP (write LIMIT)"),
        ("select distinct top 2 n from object", "TOP"),
        ("select n from object for update", "FOR UPDATE"),
        ("select n from object for share", "FOR UPDATE"),
        ("select n from object settings x = 1", "SETTINGS"),
        ("select n from object format JSON", "FORMAT"),
        ("select n from object |> where n = 1", "`|>`"),
        ("select n from object prewhere n = 1", "PREWHERE"),
        ("select n from object cluster by n", "CLUSTER BY"),
        ("select n from object distribute by n", "DISTRIBUTE BY"),
        ("select n from object sort by n", "SORT BY"),
        (
            "select n from object lateral view explode(n) t as x",
            "LATERAL VIEW",
        ),
        ("select n from object with (nolock)", "a hint for a table"),
        ("select n from object with ordinality", "WITH ORDINALITY"),
        ("select n from object partition (p0)", "PARTITION"),
        ("select n into t from object", "SELECT INTO"),
        ("from object", "FROM without SELECT"),
        (
            "select n from object group by n with rollup",
            "GROUP BY WITH ROLLUP",
        ),
        (
            "select n from object group by cube(n, m)",
            "several sets of columns",
        ),
        (
            "select n from object group by rollup(n, m)",
            "several sets of columns",
        ),
        (
            "select n from object group by grouping sets ((n), (m))",
            "several sets of columns",
        ),
        (
            "select n from object group by all with totals",
            "GROUP BY ALL WITH",
        ),
        ("select n from object order by n with fill", "WITH FILL"),
        (
            "select n from object order by n with fill interpolate (n)",
            "INTERPOLATE",
        ),
        ("select n from object limit 2 by m", "LIMIT BY"),
        ("select n from object limit 1, 2", "LIMIT with two numbers"),
        (
            "select n from object start with n = 1 connect by prior n = m",
            "CONNECT BY",
        ),
        ("select * from object pivot (sum(n) for m in (1, 2))", "PIVOT"),
        ("select * from object unpivot (x for y in (n, m))", "UNPIVOT"),
        ("select * ilike '%n%' from object", "`* ILIKE`"),
        ("select * rename (n as o) from object", "`* RENAME`"),
        ("select * from read_csv('x')", "the table function `read_csv`"),
        ("select * from range(3)", "the table function `range`"),
        ("select * from table(x)", "a table function"),
        ("select * from lateral (select 1) t", "LATERAL"),
        ("select * from unnest([1, 2])", "UNNEST"),
        (
            "with recursive t as (select 1) select * from t",
            "a recursive query",
        ),
        (
            "select n from object union all by name select n from object intersect by name select 1",
            "INTERSECT BY NAME",
        ),
        ("select n from object minus select m from object", "MINUS"),
        ("select abs(distinct n) from object", "DISTINCT for `abs`"),
        ("select abs(n order by m) from object", "ORDER BY for `abs`"),
        (
            "select abs(n) filter (where n > 0) from object",
            "FILTER for `abs`",
        ),
        ("select abs(n) over () from object", "OVER for `abs`"),
        (
            "select upper(text) within group (order by n) from object",
            "WITHIN GROUP for `upper`",
        ),
        (
            "select abs(n) ignore nulls from object",
            "IGNORE NULLS or RESPECT NULLS for `abs`",
        ),
        (
            "select string_agg(text, ',' limit 1) from object",
            "LIMIT inside a function",
        ),
        (
            "select array_agg(n having max m) from object",
            "HAVING inside a function",
        ),
        ("select string_agg(text separator ';') from object", "SEPARATOR"),
        (
            "select listagg(text, ',' on overflow error) from object",
            "ON OVERFLOW",
        ),
        ("select sum(*) from object", "`*` as an argument of `sum`"),
        ("select count(object.*) from object", "`.*` as an argument"),
        (
            "select sum(n) over (w rows 1 preceding) from object window w as (order by n)",
            "a window that extends another one",
        ),
        (
            "select cast(n as varchar format 'YYYY') from object",
            "CAST with FORMAT",
        ),
        ("select safe_cast(text as int) from object", "SAFE_CAST"),
        ("select convert(int, text) from object", "CONVERT"),
        ("select try_convert(int, text) from object", "CONVERT"),
        (
            "select n at time zone 'Europe/Berlin' from object",
            "AT TIME ZONE",
        ),
        ("select text collate nocase from object", "COLLATE"),
        ("select n from object order by text collate nocase", "COLLATE"),
        ("select text is normalized from object", "IS NORMALIZED"),
        ("select text rlike 'l' from object", "RLIKE or REGEXP"),
        ("select text regexp 'l' from object", "RLIKE or REGEXP"),
        ("select text like any ('h%', 'w%') from object", "LIKE ANY"),
        ("select (n, m) = (1, 2) from object", "a row of several values"),
        ("select struct(1 as a) from object", "STRUCT"),
        ("select match (text) against ('x') from object", "MATCH AGAINST"),
        ("select text -> 'a' from object", "a lambda function"),
        ("select text ->> 'a' from object", "the operator `->>`"),
        ("select n div 2 from object", "DIV"),
        ("select n xor 2 from object", "the operator `XOR`"),
        ("select n <=> 2 from object", "the operator `<=>`"),
        ("select ceil(n to day) from object", "CEIL or FLOOR to a unit"),
        ("select extract(year, n) from object", "EXTRACT with a comma"),
        (
            "select trim(text, 'h', 'o') from object",
            "TRIM of several arguments",
        ),
        ("select interval '1-2' year to month", "INTERVAL with TO"),
        ("select interval '1' day(2)", "INTERVAL with a precision"),
        ("select x'41' from object", "the literal `X'41'`"),
        ("select N'abc' from object", "the literal `N'abc'`"),
        ("select ? from object", "the placeholder `?`"),
        ("select {fn abs(n)} from object", "in braces"),
        ("select list_transform([1, 2], x -> x + 1)", "a lambda function"),
        (
            "select text similar to 'a!%' escape '!' from object",
            "ESCAPE after SIMILAR TO",
        ),
        (
            "select n is distinct from 1 and m = 2 from object",
            "put the comparison in parentheses",
        ),
        ("values row (1, 2)", "VALUES ROW"),
        ("table object", "found: table"),
    ] {
        let text = format!("sql({})", serde_json::to_string(query).unwrap());
        let found = Pipeline::parse(&text);
        let is_expected = found.as_ref().is_err_and(|error| {
            let is_named = error.to_string().contains(message);
            error.kind() == ErrorKind::InvalidPipeline && is_named && error.position().is_some()
        });
        if !is_expected {
            failures.push(format!("{query}: {found:?}, expected {message}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    for (condition, message) in [
        ("abs(distinct n) = 1", "DISTINCT for `abs`"),
        ("n in (select n from object tablesample (1 rows))", "TABLESAMPLE"),
        ("text collate nocase = 'x'", "COLLATE"),
        ("n xor 2 = 1", "the operator `XOR`"),
    ] {
        let error = Pipeline::parse(&format!("select(where=\"{condition}\")")).unwrap_err();
        assert!(error.to_string().contains(message), "{condition}: {error}");
    }
}

/// Rows of a query over 10 rows: `n` is the row number, `m` is `n` modulo 7.
#[test]
fn supported_clauses_return_their_rows() {
    let object = parquet_file(&numbers(10), 3);
    for (query, expected) in [
        (
            "select n from object where n < 3 qualify row_number() over (order by n desc) = 1",
            &[2][..],
        ),
        (
            "select sum(n) over w as s from object window w as (order by n) order by n limit 4",
            &[0, 1, 3, 6],
        ),
        (
            "select distinct on (m) n from object order by m, n desc",
            &[7, 8, 9, 3, 4, 5, 6],
        ),
        (
            "select distinct on (m, m) n from object order by m, m, n desc",
            &[7, 8, 9, 3, 4, 5, 6],
        ),
        (
            "select distinct on (m, object.m, (m), m) n from object order by m, m, m, m, n desc",
            &[7, 8, 9, 3, 4, 5, 6],
        ),
        (
            "select n + 10 as n from object where n > 8 union all select distinct on (m, m) m from object where m < 1",
            &[19, 0],
        ),
        ("select n from object order by all desc limit 2", &[9, 8]),
        (
            "select m, count(*) as c from object group by all order by m limit 2",
            &[0, 1],
        ),
        ("select * exclude (m, text) from object limit 2", &[0, 1]),
        ("select * replace (n + 1 as n) from object limit 2", &[1, 2]),
        ("from object select n limit 2", &[0, 1]),
        ("select count(*) filter (where n > 4) as c from object", &[5]),
        ("select n from object where n = any([1, 2])", &[1, 2]),
        (
            "select n from (select n from object order by n desc) limit 2",
            &[9, 8],
        ),
        (
            "select n from object where n < 2 union all by name select n from object where n > 8",
            &[0, 1, 9],
        ),
        (
            "select try_cast('x' as bigint) is null and true from object limit 0",
            &[],
        ),
        ("select n from object order by n offset 8", &[8, 9]),
        (
            "select n -- a comment\nfrom /* and another */ object limit 1",
            &[0],
        ),
    ] {
        let text = format!("sql(\"{query}\")");
        let table = run(&text, &object).expect(query);
        let values = if table.rows() == 0 {
            Vec::new()
        } else {
            int64s(&table, 0)
        };
        assert_eq!(values, expected, "{query}");
    }
}
