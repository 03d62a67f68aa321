//! Parses SQL. Works without an object, so that errors are found when a pipeline is parsed.

mod dialect;
mod grammar;
mod size;
mod tokens;

use datafusion::sql::sqlparser::{
    ast::{Expr, Query, Statement},
    parser::{Parser, ParserError},
    tokenizer::{Token, TokenWithSpan, Tokenizer},
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

/// Parses one query: `SELECT`, `WITH` or `VALUES`.
pub(crate) fn query(sql: &str) -> Result<Box<Query>, SyntaxError> {
    let whole_text = |message: &str| SyntaxError {
        offset: Some(0),
        message: message.to_owned(),
    };
    let statements = parser(sql)?
        .parse_statements()
        .map_err(|error| parser_error(&error, sql))?;
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
    let mut parser = parser(sql)?;
    let expression = parser.parse_expr().map_err(|error| parser_error(&error, sql))?;
    let next = parser.next_token();
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
    let tokens = Tokenizer::new(&DuckDb, sql)
        .tokenize_with_location()
        .map_err(|error| parser_error(&error.into(), sql))?;
    let is_space = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    Ok(tokens.into_iter().filter(|token| !is_space(token)).collect())
}

fn parser(sql: &str) -> Result<Parser<'_>, SyntaxError> {
    let tokens = tokens(sql)?;
    let error_at = |token: &TokenWithSpan, message: String| SyntaxError {
        offset: offset(sql, token.span.start.line, token.span.start.column),
        message,
    };
    if let Some(token) = size::operators(&tokens).nth(MAX_QUERY_OPERATORS) {
        return Err(error_at(
            token,
            format!("the text has more than {MAX_QUERY_OPERATORS} operators"),
        ));
    }
    if let Some((token, message)) = size::excess_subquery(&tokens).or_else(|| size::excess_name(&tokens)) {
        return Err(error_at(token, message));
    }
    Ok(Parser::new(&DuckDb)
        .with_recursion_limit(MAX_NESTING)
        .with_tokens_with_locations(tokens::rewrite_for_duckdb(tokens)))
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
        let named: Vec<_> = (0..33).map(|index| format!("t{index} as (select 1)")).collect();
        let found = query(&format!("with {} select 1", named.join(", "))).unwrap_err();
        assert_eq!(found.message, "the query has more than 32 subqueries");
        let list = format!("a in ({}-1)", "-1, ".repeat(3_000));
        assert!(expression(&list).is_ok());
    }
}
