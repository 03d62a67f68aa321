//! Converts errors of Parquet, Arrow and DataFusion to this crate's errors.

use std::error::Error as StdError;

use arrow_schema::ArrowError;
use datafusion::{
    common::{DataFusionError, SchemaError},
    error::Result as PlanResult,
};
use parquet::errors::ParquetError;

use pushdown_core::{Error, ErrorKind, language::excerpt, step::distance};

/// Longest name, in bytes, for which similar names are searched: a comparison takes time proportional to the product of both
/// lengths, and a name can be as long as the query.
const MAX_COMPARED_BYTES: usize = 256;
/// Begins the text of an error of the planner.
const PLANNER_FAILED: &str = "the query cannot be planned over this object (another form of it may be)";
/// Maximum number of known columns that a message lists.
const MAX_LISTED_NAMES: usize = 20;
/// Maximum length of a library's message within an error message, in characters.
const MAX_MESSAGE_CHARS: usize = 300;

/// Converts an error of the Parquet decoder.
#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
pub(crate) fn parquet(error: ParquetError) -> Error {
    own_error(&error).unwrap_or_else(|| Error::undecodable(format!("malformed Parquet: {}", text(&error))))
}

/// Converts an error of planning or running a query.
#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
pub(crate) fn query(error: DataFusionError) -> Error {
    if let Some(own) = own_error(&error) {
        return own;
    }
    match error.find_root() {
        DataFusionError::SQL(error, _) => Error::new(ErrorKind::InvalidPipeline, text(error.as_ref())),
        DataFusionError::SchemaError(error, _) => column_error(error),
        DataFusionError::ResourcesExhausted(_) => {
            Error::too_large("the query takes more memory than the limit of one query")
        }
        DataFusionError::Plan(message)
        | DataFusionError::NotImplemented(message)
        | DataFusionError::Configuration(message) => {
            Error::new(ErrorKind::InvalidPipeline, planning_message(message))
        }
        DataFusionError::Execution(message) => Error::unsuitable(text(message)),
        DataFusionError::ArrowError(error, _) => match error.as_ref() {
            ArrowError::ParquetError(message)
            | ArrowError::CsvError(message)
            | ArrowError::JsonError(message) => Error::undecodable(text(message)),
            error => Error::unsuitable(text(error)),
        },
        root => Error::internal(text(root)),
    }
}

/// Describes a failure of the planner that is its own, a panic included: the same query over the same object fails again.
pub(crate) fn planning(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Internal => Error::unsuitable(format!("{PLANNER_FAILED}: {}", error.split_position().1)),
        _ => error,
    }
}

/// Converts an error of planning SQL, with its position in the query if the planner reports one.
pub(crate) fn sql(error: DataFusionError) -> Error {
    let span = error.diagnostic().and_then(|diagnostic| diagnostic.span);
    let error = query(error);
    match span.map(|span| span.start) {
        Some(at) if at.line > 0 => error.with_suffix(format_args!(
            " (line {}, column {} of the query)",
            at.line, at.column
        )),
        _ => error,
    }
}

/// Wraps an error of this crate to pass it through DataFusion.
pub(crate) fn to_datafusion(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Converts a result of this crate to one of DataFusion.
pub(crate) fn to_plan_result<T>(result: pushdown_core::Result<T>) -> PlanResult<T> {
    result.map_err(to_datafusion)
}

/// The error for an unknown column, with similar names or the known columns.
pub(crate) fn unknown_column<'a>(name: &str, columns: impl Iterator<Item = &'a str> + Clone) -> Error {
    let count = columns.clone().count();
    if count == 0 {
        let name = excerpt(name, 60);
        return Error::new(
            ErrorKind::InvalidPipeline,
            format!("unknown column `{name}`: the query reads no table; is `FROM object` missing?"),
        );
    }
    let similar = similar_names(name, columns.clone());
    let hint = if !similar.is_empty() {
        format!("did you mean {}?", name_list(similar.into_iter().take(3)))
    } else if count > MAX_LISTED_NAMES {
        let names = name_list(columns.take(MAX_LISTED_NAMES));
        format!("it has {names} and {} more", count - MAX_LISTED_NAMES)
    } else {
        format!("it has {}", name_list(columns))
    };
    Error::unsuitable(format!(
        "the object has no column `{}`; {hint}",
        excerpt(name, 60)
    ))
}

/// The names within an edit distance of 2, nearest first.
fn similar_names<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = name.to_lowercase();
    let mut similar: Vec<_> = names
        .filter(|other| name.len() <= MAX_COMPARED_BYTES && other.len() <= MAX_COMPARED_BYTES)
        .map(|other| (distance(&other.to_lowercase(), &wanted), other))
        .filter(|(distance, _)| *distance <= 2)
        .collect();
    similar.sort_by_key(|(distance, _)| *distance);
    similar.into_iter().map(|(_, other)| other).collect()
}

fn name_list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let quoted = names.map(|name| format!("`{}`", excerpt(name, 40)));
    quoted.collect::<Vec<_>>().join(", ")
}

fn column_error(error: &SchemaError) -> Error {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            unknown_column(&field.name, valid_fields.iter().map(|field| field.name.as_str()))
        }
        SchemaError::AmbiguousReference { field } => Error::new(
            ErrorKind::InvalidPipeline,
            format!("the column `{}` is ambiguous", excerpt(&field.name, 60)),
        ),
        SchemaError::DuplicateQualifiedField { name, .. }
        | SchemaError::DuplicateUnqualifiedField { name } => Error::new(
            ErrorKind::InvalidPipeline,
            format!(
                "two columns are named `{}`: rename one with `as`",
                excerpt(name, 60)
            ),
        ),
    }
}

/// The error of this crate that a library's error wraps, if any.
fn own_error(error: &(dyn StdError + 'static)) -> Option<Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(own) = error.downcast_ref::<Error>() {
            return Some(own.clone());
        }
        // `source()` of these two does not return the external error.
        next = match (
            error.downcast_ref::<DataFusionError>(),
            error.downcast_ref::<ParquetError>(),
        ) {
            (Some(DataFusionError::External(inner)), _) | (_, Some(ParquetError::External(inner))) => {
                Some(inner.as_ref())
            }
            _ => error.source(),
        };
    }
    None
}

/// A planner's message. Catalog names that a user never sees are replaced.
fn planning_message(message: &str) -> String {
    let table = message
        .strip_prefix("table '")
        .and_then(|rest| rest.strip_suffix("' not found"));
    match table {
        Some(table) => {
            let name = table.strip_prefix("datafusion.public.").unwrap_or(table);
            format!("unknown table `{}`: expected `object`", excerpt(name, 60))
        }
        None => text(&message),
    }
}

/// The first line of a message.
fn text(error: &dyn std::fmt::Display) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    excerpt(line, MAX_MESSAGE_CHARS).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_not_searched_for_long_names() {
        let columns = [255, 300].map(|length| "x".repeat(length));
        let message = |length: usize| {
            let columns = columns.iter().map(String::as_str);
            unknown_column(&"x".repeat(length), columns).to_string()
        };
        assert!(message(256).contains("did you mean `xxx"), "{}", message(256));
        assert!(message(301).contains("it has `xxx"), "{}", message(301));
    }
}
