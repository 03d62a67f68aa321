//! The patterns of a query. Each is compiled once while the query is planned, so that an invalid pattern is an error of the
//! pipeline and does not depend on the object's rows.

use datafusion::logical_expr::{Expr, Like};
use regex::{Regex, RegexBuilder};

use pushdown_core::{Error, ErrorKind, Result, limits::MAX_COUNTED_PATTERNS};

/// Functions whose second argument is a regular expression, and the index of the argument with its flags.
const REGEX_FUNCTIONS: [(&str, usize); 5] = [
    ("regexp_count", 3),
    ("regexp_instr", 4),
    ("regexp_like", 2),
    ("regexp_match", 2),
    ("regexp_replace", 3),
];

/// Checks the regular expression and the flags of a function call, if the function has one.
///
/// # Errors
/// [`InvalidPipeline`](ErrorKind::InvalidPipeline) for a pattern that is computed, malformed or too large.
pub(crate) fn check_call(name: &str, arguments: &[Expr], counted: &mut usize) -> Result<()> {
    let Some((_, flags)) = REGEX_FUNCTIONS.iter().find(|(function, _)| *function == name) else {
        return Ok(());
    };
    let flags = match arguments.get(*flags) {
        Some(flags) => literal(flags)?.unwrap_or_default(),
        None => "",
    };
    arguments
        .get(1)
        .map_or(Ok(()), |pattern| check(pattern, flags, counted))
}

/// Checks the regular expression on the right of an operator. It must be a literal: compiling takes memory, and must not happen
/// for each row. `counted` is the number of expressions of the query with a counted repetition so far.
///
/// # Errors
/// As [`check_call`].
pub(crate) fn check(pattern: &Expr, flags: &str, counted: &mut usize) -> Result<()> {
    let Some(pattern) = literal(pattern)? else {
        return Ok(());
    };
    // The time of all others is proportional to their length.
    let is_count =
        |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit() || first.is_whitespace());
    *counted += usize::from(pattern.split('{').skip(1).any(is_count));
    if *counted > MAX_COUNTED_PATTERNS {
        return Err(Error::new(
            ErrorKind::InvalidPipeline,
            format!(
                "the query has more than {MAX_COUNTED_PATTERNS} regular expressions with a repetition such as `{{9}}`"
            ),
        ));
    }
    // `g` (all matches) is a flag of the function, not of the expression.
    let flags = flags.replace('g', "");
    let with_flags = if flags.is_empty() {
        pattern.to_owned()
    } else {
        format!("(?{flags}){pattern}")
    };
    Regex::new(&with_flags)
        .map(drop)
        .map_err(|error| pattern_error(&error))
}

/// Checks the pattern of `LIKE`: DataFusion compiles it to a regular expression as well. A computed pattern depends on the rows
/// and is not checked.
///
/// # Errors
/// [`InvalidPipeline`](ErrorKind::InvalidPipeline) for a literal that is too large.
pub(crate) fn check_like(like: &Like) -> Result<()> {
    let Expr::Literal(pattern, _) = like.pattern.as_ref() else {
        return Ok(());
    };
    let Some(pattern) = pattern.try_as_str().flatten() else {
        return Ok(());
    };
    let mut regex = String::with_capacity(pattern.len() * 2);
    for character in pattern.chars() {
        match character {
            '%' => regex.push_str(".*"),
            '_' => regex.push('.'),
            other => regex.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    RegexBuilder::new(&regex)
        .case_insensitive(like.case_insensitive)
        .dot_matches_new_line(true)
        .build()
        .map(drop)
        .map_err(|error| pattern_error(&error))
}

/// The text of a literal; `None` for NULL.
fn literal(expr: &Expr) -> Result<Option<&str>> {
    match expr {
        Expr::Literal(value, _) => Ok(value.try_as_str().flatten()),
        _ => Err(Error::new(
            ErrorKind::InvalidPipeline,
            "invalid regular expression: expected a literal, found a computed value",
        )),
    }
}

fn pattern_error(error: &regex::Error) -> Error {
    let reason = match error {
        regex::Error::CompiledTooBig(limit) => {
            format!("invalid pattern: it compiles to more than {limit} bytes")
        }
        // The parser's message has several lines; the last one is the reason.
        other => {
            let text = other.to_string();
            let reason = text.lines().last().unwrap_or_default();
            format!("invalid pattern: {}", reason.trim_start_matches("error: "))
        }
    };
    Error::new(ErrorKind::InvalidPipeline, reason)
}
