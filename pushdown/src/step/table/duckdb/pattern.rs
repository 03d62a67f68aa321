//! `LIKE` and `SIMILAR TO`.

use datafusion::{
    common::{plan_err, tree_node::Transformed},
    error::Result,
    functions::string::expr_fn::replace,
    logical_expr::{BinaryExpr, Expr, Like, Operator, lit},
};

/// DataFusion's escape character, whether or not a query names one.
const ESCAPE: char = '\\';

/// `LIKE`: nothing escapes a wildcard where the query names no escape character.
pub(super) fn like(mut like: Like) -> Result<Transformed<Expr>> {
    let escape = like.escape_char.take();
    let text = match like.pattern.as_ref() {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => match escape {
            None => {
                let pattern = std::mem::take(like.pattern.as_mut());
                *like.pattern = replace(pattern, lit(r"\"), lit(r"\\"));
                return Ok(Transformed::yes(Expr::Like(like)));
            }
            Some(_) => return plan_err!("found ESCAPE after a pattern that is computed, expected a literal"),
        },
    };
    let Some(text) = text else {
        return Ok(Transformed::no(Expr::Like(like)));
    };
    let mut pattern = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let (character, escaped) = if Some(character) == escape {
            let Some(next) = characters.next() else {
                return plan_err!(
                    "found the escape character at the end of a pattern, expected another one after it"
                );
            };
            (next, true)
        } else {
            (character, character == ESCAPE)
        };
        if escaped {
            pattern.push(ESCAPE);
        }
        pattern.push(character);
    }
    *like.pattern = lit(pattern);
    Ok(Transformed::yes(Expr::Like(like)))
}

/// `SIMILAR TO`: a regular expression for the whole text.
pub(super) fn similar(like: Like) -> Result<Transformed<Expr>> {
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
        _ => return plan_err!("found a regular expression that is computed, expected a literal"),
    };
    Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(
        like.expr,
        op,
        Box::new(pattern),
    ))))
}
