//! The patterns of a query. Each is compiled once while the query is planned, so that a bad one is a fault of the pipeline,
//! whatever rows the object has.

use datafusion::logical_expr::{Expr, Like};
use regex::{Regex, RegexBuilder};

use crate::{Error, ErrorKind, Result};

/// The functions whose second argument is a regular expression, and the position of the argument with its flags.
const FUNCTIONS: [(&str, usize); 5] = [
    ("regexp_count", 3),
    ("regexp_instr", 4),
    ("regexp_like", 2),
    ("regexp_match", 2),
    ("regexp_replace", 3),
];

/// Checks the regular expression and the flags of a function call. Other functions have none.
///
/// # Errors
/// [`InvalidPipeline`](ErrorKind::InvalidPipeline) for one that is computed, malformed or too large.
pub(super) fn check_call(name: &str, arguments: &[Expr]) -> Result<()> {
    let Some((_, flags)) = FUNCTIONS.iter().find(|(function, _)| *function == name) else {
        return Ok(());
    };
    let flags = match arguments.get(*flags) {
        Some(flags) => literal(flags)?.unwrap_or_default(),
        None => "",
    };
    arguments.get(1).map_or(Ok(()), |pattern| check(pattern, flags))
}

/// Checks the regular expression on the right of an operator. Compiling one takes memory: the query has it once, and no row has
/// its own.
///
/// # Errors
/// As [`check_call`].
pub(super) fn check(pattern: &Expr, flags: &str) -> Result<()> {
    let Some(pattern) = literal(pattern)? else {
        return Ok(());
    };
    // `g`, for all matches, is no flag of the expression itself.
    let flags = flags.replace('g', "");
    let whole = if flags.is_empty() {
        pattern.to_owned()
    } else {
        format!("(?{flags}){pattern}")
    };
    Regex::new(&whole).map(drop).map_err(|error| fault(&error))
}

/// Checks the pattern of `LIKE`, which is compiled to a regular expression as well. A computed one is a value of the object.
///
/// # Errors
/// [`InvalidPipeline`](ErrorKind::InvalidPipeline) for a literal that is too large.
pub(super) fn check_like(like: &Like) -> Result<()> {
    let Expr::Literal(pattern, _) = like.pattern.as_ref() else {
        return Ok(());
    };
    let Some(pattern) = pattern.try_as_str().flatten() else {
        return Ok(());
    };
    let mut whole = String::with_capacity(pattern.len() * 2);
    for character in pattern.chars() {
        match character {
            '%' => whole.push_str(".*"),
            '_' => whole.push('.'),
            other => whole.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    let mut whole = RegexBuilder::new(&whole);
    let whole = whole
        .case_insensitive(like.case_insensitive)
        .dot_matches_new_line(true);
    whole.build().map(drop).map_err(|error| fault(&error))
}

/// The text of a literal, `None` for NULL.
fn literal(expr: &Expr) -> Result<Option<&str>> {
    match expr {
        Expr::Literal(value, _) => Ok(value.try_as_str().flatten()),
        _ => Err(Error::new(
            ErrorKind::InvalidPipeline,
            "found a regular expression that is computed, expected a literal",
        )),
    }
}

fn fault(error: &regex::Error) -> Error {
    let reason = match error {
        regex::Error::CompiledTooBig(limit) => {
            format!("found a pattern that compiles to more than {limit} bytes, expected a smaller one")
        }
        // The parser draws the pattern over several lines, and gives the reason in the last one.
        other => {
            let text = other.to_string();
            let reason = text.lines().last().unwrap_or_default();
            format!("invalid pattern: {}", reason.trim_start_matches("error: "))
        }
    };
    Error::new(ErrorKind::InvalidPipeline, reason)
}
