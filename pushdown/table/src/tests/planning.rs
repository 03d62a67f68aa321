//! The CPU time of planning: the heaviest queries that are accepted, and those that are refused because it has no bound.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::*;

/// Maximum CPU time of an accepted query, as a multiple of a plain one's.
const MAX_RATIO: f64 = 1000.0;

/// CPU time of this thread.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap()
}

/// Parses a query and plans it over `object`. Returns the CPU time, too.
fn plan(query: &str, object: &Bytes) -> (Result<()>, Duration) {
    let before = cpu_time();
    let planned =
        Pipeline::parse(&format!("sql({})", serde_json::to_string(query).unwrap())).and_then(|pipeline| {
            let context = Context::new(b"object.parquet");
            let scan = pipeline.scan(0..1, Arc::new(object.clone()), &context);
            block_on(scan).map(drop)
        });
    (planned, cpu_time().saturating_sub(before))
}

fn list(count: usize, separator: &str, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(separator)
}

/// A chain of queries of WITH, each of which is `next` with the name of the one before it as `{}`.
fn chain(next: &str, length: usize, last: &str) -> String {
    let query = |index: usize| match index.checked_sub(1) {
        None => "t0 as (select * from object)".to_owned(),
        Some(before) => format!("t{index} as ({})", next.replace("{}", &format!("t{before}"))),
    };
    format!(
        "with {} {}",
        list(length + 1, ", ", query),
        last.replace("{}", &format!("t{length}"))
    )
}

/// The largest of their kind that the limits accept.
fn heaviest_queries() -> Vec<String> {
    vec![
        chain(
            "select * from {} union all select * from {}",
            3,
            "select * from {}",
        ),
        chain("select n + n as n from {}", 7, "select n from {} where n > 5"),
        chain("select n + n as n from {}", 20, "select n from {}"),
        chain(
            "select *, n + 1 as x{} from {} order by n",
            30,
            "select * from {}",
        ),
        chain(
            "select n, max(m) as m from {} group by n",
            30,
            "select * from {} where n > 1",
        ),
        list(255, " union all ", |_| "select 1 as n".to_owned()),
        format!("select n{} as c from object", "+1".repeat(499)),
        format!("select n{} as c from object", "::bigint::text".repeat(50)),
        format!(
            "select * from object where {}",
            list(249, " or ", |n| format!("n = {n}"))
        ),
        format!(
            "select * from object where {}",
            list(120, " and ", |n| format!("(n > {n} or m < {n})"))
        ),
        format!(
            "select * from object where {}",
            list(120, " or ", |n| format!("n between {n} and {}", n + 1))
        ),
        format!(
            "select * from object where n in ({})",
            list(7900, ",", |n| (n % 10).to_string())
        ),
        format!("select {} from object", list(1900, ",", |n| format!("n a{n}"))),
        format!(
            "select case {} end as c from object",
            list(240, " ", |n| format!("when n = {n} then {n}"))
        ),
        format!(
            "select {} from object",
            list(16, ", ", |n| format!(
                "sum(n + {n}) over (partition by m, n order by text, n rows between {n} preceding and current row) as c{n}"
            ))
        ),
        format!(
            "select * from object order by {}",
            list(100, ", ", |n| format!("n + {n}"))
        ),
        format!(
            "select count(*) from object group by {}",
            list(400, ", ", |n| format!("n + {n}"))
        ),
        format!(
            "select * from (values {}) t",
            list(1400, ",", |n| format!("({n}, 'a')"))
        ),
        format!("select * from object where text like '{}'", "%a".repeat(8000)),
        format!("select * from object where text ilike '{}'", "%a".repeat(8000)),
        format!(
            "select * from object where {}",
            list(8, " or ", |n| format!("text ~ '\\w{{{}}}'", 90 + n))
        ),
        format!("select {}n{} as c from object", "abs(".repeat(40), ")".repeat(40)),
        format!(
            "select distinct on ({0}) * from object order by {0}",
            list(60, ", ", |n| format!("n + {n}"))
        ),
    ]
}

#[test]
fn planning_takes_a_bounded_multiple_of_a_plain_query() {
    check_planning(heaviest_queries().into_iter().step_by(3));
}

#[test]
#[ignore = "the heaviest queries: make test-full"]
fn planning_of_every_query_takes_a_bounded_multiple_of_a_plain_one() {
    check_planning(heaviest_queries());
}

fn check_planning(queries: impl IntoIterator<Item = String>) {
    let object = parquet_file(&numbers(10), 10);
    let plain = "select * from object";
    plan(plain, &object).0.unwrap();
    let (times, runs): (Duration, u32) = ((0..20).map(|_| plan(plain, &object).1).sum(), 20);
    for query in queries {
        let (planned, time) = plan(&query, &object);
        let ratio = time.div_duration_f64(times / runs);
        assert!(ratio < MAX_RATIO, "{ratio} times a plain query: {query:.100}");
        planned.unwrap_or_else(|error| panic!("{query:.100}: {error}"));
    }
}

/// Each of these would take minutes and more.
#[test]
fn queries_whose_plan_grows_exponentially_are_rejected() {
    let object = parquet_file(&numbers(10), 10);
    let (all, filter) = ("select * from {}", "select n from {} where n > 5");
    let cube = list(30, ", ", |n| format!("cube(n + {n}, m + {n})"));
    for (query, message) in [
        (
            chain("select * from {} union all select * from {}", 30, all),
            "tables in FROM",
        ),
        (
            chain("select * from {} union all select * from {}", 30, "select 1"),
            "tables in FROM",
        ),
        (chain("select n + n as n from {}", 8, filter), "found 510"),
        (
            chain("select n + n as n from {}", 30, filter),
            "a condition of the query is too large",
        ),
        (
            chain(
                "select case when n > 1 then n else n + 1 end as n from {}",
                30,
                filter,
            ),
            "a condition of the query is too large",
        ),
        (
            chain("select n + n as n from {} group by n + n", 30, filter),
            "a condition of the query is too large",
        ),
        (
            chain("select distinct on (n) n + n as n from {}", 30, filter),
            "a condition of the query is too large",
        ),
        (
            format!(
                "select ({})",
                chain(
                    "select n + n as n from {}",
                    30,
                    "select max(n) from {} where n > 5"
                )
            ),
            "too large",
        ),
        (
            format!("select count(*) from object group by {cube}"),
            "several sets of columns",
        ),
        (
            format!("select {}1{}", "position(".repeat(40), ", 1)".repeat(40)),
            "ambiguous",
        ),
    ] {
        let (planned, _) = plan(&query, &object);
        let error = planned.expect_err(&query);
        assert_eq!(error.kind(), ErrorKind::InvalidPipeline, "{query:.100}: {error}");
        assert!(error.to_string().contains(message), "{query:.100}: {error}");
    }
}

/// The stack of a thread of the gateway has 2 MiB.
#[test]
fn an_expression_with_all_operators_does_not_overflow_the_stack() {
    let object = parquet_file(&numbers(10), 10);
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let planned = thread.spawn(move || {
        let sql = format!("select n{} as c from object", "+1".repeat(499));
        int64s(&run(&format!("sql(\"{sql}\")"), &object).unwrap(), 0)
    });
    assert_eq!(planned.unwrap().join().unwrap()[..2], [499, 500]);
}

/// Functions whose result the engine, the session or the clock determines.
#[test]
fn functions_of_the_engine_are_rejected_by_name() {
    let object = parquet_file(&numbers(10), 10);
    for call in [
        "version()",
        "now()",
        "today()",
        "current_date",
        "current_time",
        "current_timestamp",
        "localtimestamp",
        "current_user",
        "session_user",
        "current_catalog",
        "current_schema()",
        "current_database()",
        "current_setting('TimeZone')",
        "pg_backend_pid()",
        "random()",
        "uuid()",
        "input_file_name()",
        "file_row_index()",
    ] {
        let (planned, _) = plan(&format!("select {call} as x from object"), &object);
        let error = planned.expect_err(call);
        // A word that is no function is a column.
        let kinds = [ErrorKind::InvalidPipeline, ErrorKind::Unsuitable];
        assert!(kinds.contains(&error.kind()), "{call}: {error}");
        let name = call.split('(').next().unwrap();
        // Some names are aliases.
        let name = match name {
            "today" => "current_date",
            "current_timestamp" => "now",
            name => name,
        };
        assert!(error.to_string().contains(name), "{call}: {error}");
    }
    plan("select arrow_typeof(n) as x from object", &object)
        .0
        .unwrap();
}
