//! Parses SQL. Works without an object, so that errors are found when a pipeline is parsed.

mod dialect;
mod grammar;
mod size;
mod tokens;

use datafusion::sql::sqlparser::{
    ast::{Expr, Query, Statement},
    parser::{Parser, ParserError},
    tokenizer::{Location, Token, TokenWithSpan, Tokenizer},
};

use self::{dialect::DuckDb, grammar::UnsupportedSyntax};
use pushdown_core::limits::MAX_QUERY_OPERATORS;

/// An error in an SQL text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    /// Byte offset, if the parser reports one.
    pub(crate) offset: Option<usize>,
    pub(crate) message: String,
}

/// Maximum depth of the parser's recursion.
const MAX_NESTING: usize = 50;
/// How often the parser may begin an expression at a token, on average.
const MAX_ATTEMPTS: usize = 4;
/// How many expressions it may begin beyond that: a few calls in each other are enough to double and double the number.
const FREE_EXPRESSIONS: usize = 1000;

/// Parses one query: `SELECT`, `WITH` or `VALUES`.
pub(crate) fn query(sql: &str) -> Result<Box<Query>, SyntaxError> {
    let whole_text = |message: &str| SyntaxError {
        offset: Some(0),
        message: message.to_owned(),
    };
    #[expect(
        clippy::redundant_closure_for_method_calls,
        reason = "the method itself is for parsers of one lifetime only"
    )]
    let statements = parse(sql, |parser| parser.parse_statements())?;
    let mut statements = statements.into_iter();
    match (statements.next(), statements.next()) {
        (Some(Statement::Query(query)), None) => {
            grammar::check_query(&query).map_err(|error| unsupported(error, sql))?;
            Ok(query)
        }
        (Some(_), None) => Err(whole_text(
            "expected a query: SELECT ... FROM object, found another statement",
        )),
        (Some(_), Some(_)) => Err(whole_text("expected one query, found several statements")),
        (None, _) => Err(whole_text(
            "expected a query: SELECT ... FROM object, found nothing",
        )),
    }
}

/// Parses one expression.
pub(crate) fn expression(sql: &str) -> Result<Expr, SyntaxError> {
    let (expression, next) = parse(sql, |parser| Ok((parser.parse_expr()?, parser.next_token())))?;
    if next.token == Token::EOF {
        grammar::check_expression(&expression).map_err(|error| unsupported(error, sql))?;
        return Ok(expression);
    }
    let (line, column) = (next.span.start.line, next.span.start.column);
    Err(SyntaxError {
        offset: offset(sql, line, column),
        message: format!("expected the end of the expression, found `{}`", next.token),
    })
}

/// The number of `*` that select all columns of the object.
pub(crate) fn count_wildcards(sql: &str) -> Result<usize, SyntaxError> {
    tokens(sql).map(|tokens| size::count_wildcards(&tokens))
}

fn tokens(sql: &str) -> Result<Vec<TokenWithSpan>, SyntaxError> {
    let tokens = Tokenizer::new(&DuckDb::new(0), sql)
        .tokenize_with_location()
        .map_err(|error| parser_error(&error.into(), sql))?;
    let is_space = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    Ok(tokens.into_iter().filter(|token| !is_space(token)).collect())
}

/// Parses a text within the limits on its size.
fn parse<T>(
    sql: &str,
    parse: impl FnOnce(&mut Parser<'_>) -> Result<T, ParserError>,
) -> Result<T, SyntaxError> {
    let tokens = tokens(sql)?;
    let error_at = |start: Location, message: String| SyntaxError {
        offset: offset(sql, start.line, start.column),
        message,
    };
    if let Some(token) = size::operators(&tokens).nth(MAX_QUERY_OPERATORS) {
        return Err(error_at(
            token.span.start,
            format!("the text has more than {MAX_QUERY_OPERATORS} operators"),
        ));
    }
    if let Some((token, message)) = size::excess_subquery(&tokens).or_else(|| size::excess_name(&tokens)) {
        return Err(error_at(token.span.start, message));
    }
    let dialect = DuckDb::new(tokens.len() * MAX_ATTEMPTS + FREE_EXPRESSIONS);
    let mut parser = Parser::new(&dialect)
        .with_recursion_limit(MAX_NESTING)
        .with_tokens_with_locations(tokens::rewrite_for_duckdb(tokens));
    parse(&mut parser).map_err(|error| match dialect.excess() {
        Some(start) => error_at(
            start,
            "the text is ambiguous in too many ways: nest fewer CASE, POSITION, TRIM and the like in each other".to_owned(),
        ),
        None => parser_error(&error, sql),
    })
}

fn unsupported(error: UnsupportedSyntax, sql: &str) -> SyntaxError {
    let start = error.span.start;
    SyntaxError {
        offset: offset(sql, start.line, start.column),
        message: error.message,
    }
}

fn parser_error(error: &ParserError, sql: &str) -> SyntaxError {
    let text = match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text.as_str(),
        ParserError::RecursionLimitExceeded => {
            return SyntaxError {
                offset: None,
                message: format!("the text has more than {MAX_NESTING} nested expressions"),
            };
        }
    };
    // The parser's message ends with the position, `at Line: 1, Column: 9`.
    let Some((message, position)) = text.rsplit_once(" at Line: ") else {
        return SyntaxError {
            // Without a position at the end of the text.
            offset: text.ends_with("found: EOF").then_some(sql.len()),
            message: text.to_owned(),
        };
    };
    let line_and_column = position.split_once(", Column: ");
    let line_and_column =
        line_and_column.and_then(|(line, column)| Some((line.parse().ok()?, column.parse().ok()?)));
    SyntaxError {
        offset: line_and_column.and_then(|(line, column)| offset(sql, line, column)),
        message: message.to_owned(),
    }
}

/// The byte offset of a line and a column, both from 1.
pub(crate) fn offset(sql: &str, line: u64, column: u64) -> Option<usize> {
    let line = usize::try_from(line).ok()?.checked_sub(1)?;
    let column = usize::try_from(column).ok()?.checked_sub(1)?;
    let start: usize = sql.split_inclusive('\n').take(line).map(str::len).sum();
    let rest = sql.get(start..)?;
    Some(
        start
            + rest
                .char_indices()
                .nth(column)
                .map_or(rest.len(), |(offset, _)| offset),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_their_position() {
        for (sql, position) in [
            ("SELECT a FORM object", "object"),
            ("SELECT a\nFROM object\nWHERE )", ")"),
            ("SELECT 'ä', a b c FROM object", "c FROM"),
        ] {
            let error = query(sql).unwrap_err();
            assert_eq!(error.offset, sql.find(position), "{sql}: {error:?}");
            assert!(error.message.starts_with("Expected"), "{error:?}");
        }
        assert_eq!(expression("a = 1 b").unwrap_err().offset, Some(6));
        assert!(expression("a = ").unwrap_err().message.contains("EOF"));
    }

    #[test]
    fn wildcards_are_counted_without_products_and_counts() {
        for (sql, count) in [
            ("select * from object", 1),
            ("select count(*), n * 2, 3 * n from object", 0),
            ("select distinct object.*, * from (select *, n from object)", 3),
            ("select distinct on (n) * from object", 1),
            ("select top 5 * from object", 1),
            ("select * exclude (n) from object", 1),
        ] {
            assert_eq!(count_wildcards(sql).unwrap(), count, "{sql}");
        }
    }

    #[test]
    fn only_one_query_is_accepted() {
        assert!(
            query("select 1; select 2")
                .unwrap_err()
                .message
                .contains("several")
        );
        assert!(
            query("drop table object")
                .unwrap_err()
                .message
                .contains("another statement")
        );
        assert!(
            query("copy object to 'x.csv'")
                .unwrap_err()
                .message
                .contains("another statement")
        );
        assert!(query("  ").unwrap_err().message.contains("nothing"));
        assert!(query("with a as (select * from object) select * from a;").is_ok());
    }

    #[test]
    fn nesting_is_limited() {
        let sql = format!("select {}1{}", "(".repeat(2000), ")".repeat(2000));
        assert!(query(&sql).unwrap_err().message.contains("nested expressions"));
        for deep in [" + a", " and a", "::int", "[1]", ".a", " is null", " || a"] {
            let found = expression(&format!("a{}", deep.repeat(5_000))).unwrap_err();
            assert!(
                found.message.contains("more than 500 operators"),
                "{deep}: {found:?}"
            );
        }
        let deep = format!("{}select 1{}", "select * from (".repeat(9), ")".repeat(9));
        let found = query(&deep).unwrap_err();
        assert_eq!(found.message, "the query has more than 8 nested subqueries");
        assert_eq!(found.offset, deep.rfind('('));
        let from_first = format!(
            "select * from {}object{}",
            "(from ".repeat(9),
            " select *)".repeat(9)
        );
        let found = query(&from_first).unwrap_err();
        assert_eq!(found.message, "the query has more than 8 nested subqueries");
        let named: Vec<_> = (0..33).map(|index| format!("t{index} as (select 1)")).collect();
        let found = query(&format!("with {} select 1", named.join(", "))).unwrap_err();
        assert_eq!(found.message, "the query has more than 32 subqueries");
        let list = format!("a in ({}-1)", "-1, ".repeat(3_000));
        assert!(expression(&list).is_ok());
    }

    /// A chain of queries of WITH, each of which is `next` with the name of the one before it as `{}`.
    fn chain(first: &str, next: &str, length: usize) -> String {
        let mut queries = vec![format!("t0 as ({first})")];
        for index in 1..=length {
            let next = next.replace("{}", &format!("t{}", index - 1));
            queries.push(format!("t{index} as ({next})"));
        }
        format!("with {} select * from t{length}", queries.join(", "))
    }

    #[test]
    fn a_query_that_is_named_twice_counts_twice() {
        let twice = "select * from {} union all select * from {}";
        let (object, constant) = ("select * from object", "select 1 as n");
        let reads = "32 tables in FROM";
        let message = |limit| {
            format!(
                "the query has more than {limit}, with each name of WITH replaced by its query: name them less often"
            )
        };
        for (next, length, limit) in [
            (twice, 5, reads),
            (
                "select (select max(n) from {}), (select min(n) from {})",
                5,
                reads,
            ),
            ("select n from {} where n in (select n from {})", 5, reads),
            (
                "with x as (select * from {}) select * from x union select * from x",
                5,
                "256 SELECTs",
            ),
            (
                "select sum(n) over w, min(n) over w from object window w as (order by (select max(n) from {}))",
                4,
                reads,
            ),
            (
                "select * from {} union all select * from {} union all select * from {}",
                3,
                reads,
            ),
        ] {
            assert!(query(&chain(object, next, length)).is_ok(), "{next}");
            let sql = chain(object, next, length + 1);
            let found = query(&sql).unwrap_err();
            assert_eq!(found.message, message(limit), "{next}");
            // At a name of the query before.
            assert!(
                found
                    .offset
                    .is_some_and(|offset| sql[offset..].starts_with(['t', 'x', 'w'])),
                "{next}: {found:?}"
            );
        }
        // Tables without an object to read are cheaper.
        assert!(query(&chain(constant, twice, 6)).is_ok());
        let found = query(&chain(constant, twice, 7)).unwrap_err();
        assert!(found.message.contains("more than 256 SELECTs"), "{found:?}");
        // Thirty levels overflow nothing, and neither does a chain that is not used.
        let bomb = chain(object, twice, 30);
        assert_eq!(query(&bomb).unwrap_err().message, message(reads));
        let unused = format!("{} from object", bomb.rsplit_once(" from ").unwrap().0);
        assert_eq!(query(&unused).unwrap_err().message, message(reads));
        assert!(query(&chain(object, "select * from {}", 30)).is_ok());
        let flat = vec!["select 1"; 255].join(" union all ");
        assert!(query(&flat).is_ok());
    }

    #[test]
    fn stars_count_the_columns_of_inner_queries() {
        let items = |count: usize| {
            let items: Vec<_> = (0..count).map(|index| format!("n a{index}")).collect();
            format!("select {} from object", items.join(", "))
        };
        let all = "select * from {}";
        assert!(query(&chain(&items(1000), all, 3)).is_ok());
        let found = query(&chain(&items(1000), all, 4)).unwrap_err();
        assert!(
            found.message.contains("more than 4096 columns of inner queries"),
            "{found:?}"
        );
        // Of a union once.
        let union = "select * from {} union all select * from {}";
        assert!(query(&chain(&items(200), union, 3)).is_ok());
    }

    #[test]
    fn names_of_queries_are_case_sensitive_and_visible_after_their_definition() {
        let nine = |query: &str| vec![format!("select * from {query}"); 9].join(" union all ");
        for (sql, is_accepted) in [
            // Eighty-one reads if `A` was `a`, the query itself, or a column of the outer query.
            (format!("with a as ({}) {}", nine("object"), nine("A")), true),
            (format!("with a as ({}) {}", nine("a"), nine("object")), true),
            (
                format!("with object as ({}) select * from object", nine("object")),
                true,
            ),
            (
                format!("with object as ({}) {}", nine("object"), nine("object")),
                false,
            ),
            (
                format!("with \"a b\" as ({}) {}", nine("object"), nine("\"a b\"")),
                false,
            ),
            (
                format!(
                    "select * from (with a as ({}) select 1) t union all select * from a",
                    nine("object")
                ),
                true,
            ),
            (
                format!(
                    "with a as ({}), b as (with a as (select 1) {}) select * from b",
                    nine("object"),
                    nine("a")
                ),
                true,
            ),
        ] {
            assert_eq!(query(&sql).is_ok(), is_accepted, "{sql}");
        }
    }

    /// `position(a in b)` and `position(a, b)` begin in the same way, and the parser tries one after the other.
    #[test]
    fn texts_that_the_parser_tries_in_many_ways_are_rejected() {
        for (open, inner, close) in [
            ("position(", "n", ", 1)"),
            ("floor(", "1 2", ")"),
            ("substring(", "1 2", ")"),
            ("overlay(", "1 2", ")"),
            ("cast(", "1 2", ")"),
            ("convert(", "1 2", ")"),
        ] {
            let nested = |depth: usize| format!("{}{inner}{}", open.repeat(depth), close.repeat(depth));
            let few = expression(&nested(3));
            assert!(
                few.is_ok() || !few.unwrap_err().message.contains("ambiguous"),
                "{open}"
            );
            let found = expression(&nested(20)).unwrap_err();
            assert!(found.message.contains("ambiguous"), "{open}: {found:?}");
            assert!(found.offset.is_some_and(|offset| offset > 0), "{open}: {found:?}");
        }
    }

    #[test]
    fn the_length_of_casts_of_casts_is_limited() {
        let casts = |count: usize| format!("n{}", "::bigint::text".repeat(count / 2));
        assert!(expression(&casts(100)).is_ok());
        assert!(expression(&format!("n{}", "::bigint".repeat(490))).is_ok());
        let found = expression(&casts(102)).unwrap_err();
        assert_eq!(
            found.message,
            "the text has more than 100 casts to other types in each other"
        );
    }

    #[test]
    fn the_length_of_order_by_is_limited() {
        let keys = |count: usize| {
            (0..count)
                .map(|key| format!("nvl(n, {key})"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        for sql in [
            "select * from object order by {}",
            "select sum(n) over (order by {}) from object",
        ] {
            assert!(query(&sql.replace("{}", &keys(100))).is_ok());
            let found = query(&sql.replace("{}", &keys(101))).unwrap_err();
            assert_eq!(found.message, "ORDER BY has more than 100 expressions");
            assert_eq!(found.offset, sql.replace("{}", &keys(101)).find("nvl(n, 100)"));
        }
    }
}
