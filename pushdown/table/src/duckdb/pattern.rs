//! `LIKE` and `SIMILAR TO`.

use datafusion::{
    common::{plan_err, tree_node::Transformed},
    error::Result,
    functions::string::expr_fn::replace,
    logical_expr::{BinaryExpr, Expr, Like, Operator, lit},
};

/// DataFusion always uses this escape character, even if a query names another or none.
const ESCAPE: char = '\\';

/// `LIKE`: without ESCAPE, no character escapes a wildcard.
pub(super) fn rewrite_like(mut like: Like) -> Result<Transformed<Expr>> {
    let escape = like.escape_char.take();
    let text = match like.pattern.as_ref() {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => match escape {
            None => {
                let pattern = std::mem::take(like.pattern.as_mut());
                *like.pattern = replace(pattern, lit(r"\"), lit(r"\\"));
                return Ok(Transformed::yes(Expr::Like(like)));
            }
            Some(_) => {
                return plan_err!(
                    "invalid pattern before ESCAPE: expected a literal, found a computed value"
                );
            }
        },
    };
    let Some(text) = text else {
        return Ok(Transformed::no(Expr::Like(like)));
    };
    let mut pattern = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let (character, is_escaped) = if Some(character) == escape {
            let Some(next) = characters.next() else {
                return plan_err!(
                    "invalid pattern: expected a character after the escape character, found the end"
                );
            };
            (next, true)
        } else {
            (character, character == ESCAPE)
        };
        if is_escaped {
            pattern.push(ESCAPE);
        }
        pattern.push(character);
    }
    *like.pattern = lit(pattern);
    Ok(Transformed::yes(Expr::Like(like)))
}

/// `SIMILAR TO`: a regular expression that matches the whole text.
pub(super) fn rewrite_similar_to(like: Like) -> Result<Transformed<Expr>> {
    let op = if like.negated {
        Operator::RegexNotMatch
    } else {
        Operator::RegexMatch
    };
    let pattern = match like.pattern.as_ref() {
        Expr::Literal(value, _) => match value.try_as_str().flatten() {
            Some(text) => lit(format!(r"\A(?:{text})\z")),
            None => *like.pattern,
        },
        _ => return plan_err!("invalid regular expression: expected a literal, found a computed value"),
    };
    Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(
        like.expr,
        op,
        Box::new(pattern),
    ))))
}
