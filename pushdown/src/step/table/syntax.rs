//! The syntax of SQL: what stands in a pipeline is read before there is an object.

mod dialect;
mod grammar;
mod size;
mod tokens;

use datafusion::sql::sqlparser::{
    ast::{Expr, Query, Statement},
    parser::{Parser, ParserError},
    tokenizer::{Token, TokenWithSpan, Tokenizer},
};

use self::{dialect::DuckDb, grammar::Refused};
use crate::limits::MAX_QUERY_OPERATORS;

/// What is wrong with a text, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// Byte offset, where the parser tells.
    pub(super) offset: Option<usize>,
    pub(super) message: String,
}

/// Parentheses and the like inside each other.
const MAX_NESTING: usize = 50;

/// Reads one query: `SELECT`, `WITH` or `VALUES`.
pub(super) fn query(sql: &str) -> Result<Box<Query>, Fault> {
    let whole = |message: &str| Fault {
        offset: Some(0),
        message: message.to_owned(),
    };
    let statements = parser(sql)?
        .parse_statements()
        .map_err(|error| fault(&error, sql))?;
    let mut statements = statements.into_iter();
    match (statements.next(), statements.next()) {
        (Some(Statement::Query(query)), None) => {
            grammar::check_query(&query).map_err(|found| refused(found, sql))?;
            Ok(query)
        }
        (Some(_), None) => Err(whole(
            "found another statement, expected a query: SELECT ... FROM object",
        )),
        (Some(_), Some(_)) => Err(whole("found several statements, expected one query")),
        (None, _) => Err(whole("found nothing, expected a query: SELECT ... FROM object")),
    }
}

/// Reads one expression.
pub(super) fn expression(sql: &str) -> Result<Expr, Fault> {
    let mut parser = parser(sql)?;
    let expression = parser.parse_expr().map_err(|error| fault(&error, sql))?;
    let next = parser.next_token();
    if next.token == Token::EOF {
        grammar::check_expression(&expression).map_err(|found| refused(found, sql))?;
        return Ok(expression);
    }
    let (line, column) = (next.span.start.line, next.span.start.column);
    Err(Fault {
        offset: offset(sql, line, column),
        message: format!("found `{}`, expected the end of the expression", next.token),
    })
}

/// How many times `*` stands for all columns of the object.
pub(super) fn wildcards(sql: &str) -> Result<usize, Fault> {
    tokens(sql).map(|tokens| size::wildcards(&tokens))
}

fn tokens(sql: &str) -> Result<Vec<TokenWithSpan>, Fault> {
    let tokens = Tokenizer::new(&DuckDb, sql)
        .tokenize_with_location()
        .map_err(|error| fault(&error.into(), sql))?;
    let is_space = |token: &TokenWithSpan| matches!(token.token, Token::Whitespace(_));
    Ok(tokens.into_iter().filter(|token| !is_space(token)).collect())
}

fn parser(sql: &str) -> Result<Parser<'_>, Fault> {
    let tokens = tokens(sql)?;
    let at = |token: &TokenWithSpan, message: String| Fault {
        offset: offset(sql, token.span.start.line, token.span.start.column),
        message,
    };
    if let Some(token) = size::operators(&tokens).nth(MAX_QUERY_OPERATORS) {
        return Err(at(
            token,
            format!("found more than {MAX_QUERY_OPERATORS} operators"),
        ));
    }
    if let Some((token, message)) = size::too_many_queries(&tokens).or_else(|| size::too_long_name(&tokens)) {
        return Err(at(token, message));
    }
    Ok(Parser::new(&DuckDb)
        .with_recursion_limit(MAX_NESTING)
        .with_tokens_with_locations(tokens::as_in_duckdb(tokens)))
}

fn refused(found: Refused, sql: &str) -> Fault {
    let start = found.span.start;
    Fault {
        offset: offset(sql, start.line, start.column),
        message: found.message,
    }
}

fn fault(error: &ParserError, sql: &str) -> Fault {
    let text = match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => text.as_str(),
        ParserError::RecursionLimitExceeded => {
            return Fault {
                offset: None,
                message: format!("found more than {MAX_NESTING} expressions inside each other"),
            };
        }
    };
    // The parser tells a place as `at Line: 1, Column: 9`.
    let Some((message, place)) = text.rsplit_once(" at Line: ") else {
        return Fault {
            // The end has no place.
            offset: text.ends_with("found: EOF").then_some(sql.len()),
            message: text.to_owned(),
        };
    };
    let place = place.split_once(", Column: ");
    let place = place.and_then(|(line, column)| Some((line.parse().ok()?, column.parse().ok()?)));
    Fault {
        offset: place.and_then(|(line, column)| offset(sql, line, column)),
        message: message.to_owned(),
    }
}

/// The byte offset of a line and a column, both from 1.
pub(super) fn offset(sql: &str, line: u64, column: u64) -> Option<usize> {
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
    fn faults_have_their_place() {
        for (sql, place) in [
            ("SELECT a FORM object", "object"),
            ("SELECT a\nFROM object\nWHERE )", ")"),
            ("SELECT 'ä', a b c FROM object", "c FROM"),
        ] {
            let fault = query(sql).unwrap_err();
            assert_eq!(fault.offset, sql.find(place), "{sql}: {fault:?}");
            assert!(fault.message.starts_with("Expected"), "{fault:?}");
        }
        assert_eq!(expression("a = 1 b").unwrap_err().offset, Some(6));
        assert!(expression("a = ").unwrap_err().message.contains("EOF"));
    }

    #[test]
    fn stars_that_stand_for_columns_are_told_from_others() {
        for (sql, count) in [
            ("select * from object", 1),
            ("select count(*), n * 2, 3 * n from object", 0),
            ("select distinct object.*, * from (select *, n from object)", 3),
            ("select distinct on (n) * from object", 1),
            ("select top 5 * from object", 1),
            ("select * exclude (n) from object", 1),
        ] {
            assert_eq!(wildcards(sql).unwrap(), count, "{sql}");
        }
    }

    #[test]
    fn one_query_and_nothing_else() {
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
    fn nesting_is_bounded() {
        let sql = format!("select {}1{}", "(".repeat(2000), ")".repeat(2000));
        assert!(query(&sql).unwrap_err().message.contains("inside each other"));
        for deep in [" + a", " and a", "::int", "[1]", ".a", " is null", " || a"] {
            let found = expression(&format!("a{}", deep.repeat(5_000))).unwrap_err();
            assert!(
                found.message.contains("more than 500 operators"),
                "{deep}: {found:?}"
            );
        }
        let deep = format!("{}select 1{}", "select * from (".repeat(9), ")".repeat(9));
        let found = query(&deep).unwrap_err();
        assert_eq!(found.message, "found more than 8 queries inside each other");
        assert_eq!(found.offset, deep.rfind('('));
        let named: Vec<_> = (0..33).map(|place| format!("t{place} as (select 1)")).collect();
        let found = query(&format!("with {} select 1", named.join(", "))).unwrap_err();
        assert_eq!(found.message, "found more than 32 queries inside the query");
        let list = format!("a in ({}-1)", "-1, ".repeat(3_000));
        assert!(expression(&list).is_ok());
    }
}
