//! What Parquet, Arrow and DataFusion find wrong, as this crate's errors.

use std::error::Error as StdError;

use arrow_schema::ArrowError;
use datafusion::{
    common::{DataFusionError, SchemaError},
    error::Result as PlanResult,
};
use parquet::errors::ParquetError;

use crate::{Error, ErrorKind, pipeline::excerpt, step::distance};

/// The longest name, in bytes, that others are compared with: comparing takes the product of both lengths, and a query may
/// name what is as long as itself.
const COMPARED: usize = 256;
/// The most characters of a library's text that a message shows.
const SHOWN: usize = 300;

/// A Parquet file that cannot be decoded.
#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
pub(super) fn parquet(error: ParquetError) -> Error {
    carried(&error)
        .unwrap_or_else(|| Error::undecodable(format!("found malformed Parquet: {}", text(&error))))
}

/// What went wrong while a query was planned or ran.
#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
pub(super) fn query(error: DataFusionError) -> Error {
    if let Some(carried) = carried(&error) {
        return carried;
    }
    match error.find_root() {
        DataFusionError::SQL(error, _) => Error::new(ErrorKind::InvalidPipeline, text(error.as_ref())),
        DataFusionError::SchemaError(error, _) => column(error),
        DataFusionError::ResourcesExhausted(_) => {
            Error::too_large("the query takes more memory than the limit of one query")
        }
        DataFusionError::Plan(message)
        | DataFusionError::NotImplemented(message)
        | DataFusionError::Configuration(message) => {
            Error::new(ErrorKind::InvalidPipeline, planning(message))
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

/// What is wrong with a query, and where in its text, where the planner tells.
pub(super) fn planned(error: DataFusionError) -> Error {
    let place = error.diagnostic().and_then(|found| found.span);
    let found = query(error);
    match place.map(|span| span.start) {
        Some(at) if at.line > 0 => found.with_suffix(format_args!(
            " (line {}, column {} of the query)",
            at.line, at.column
        )),
        _ => found,
    }
}

/// An error of this crate on its way through DataFusion.
pub(super) fn outward(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// A check of this crate as DataFusion has it.
pub(super) fn checked<T>(result: crate::Result<T>) -> PlanResult<T> {
    result.map_err(outward)
}

/// The columns that there are, where one is not among them.
pub(super) fn unknown_column<'a>(name: &str, columns: impl Iterator<Item = &'a str> + Clone) -> Error {
    let asked = name.to_lowercase();
    let mut near: Vec<_> = columns
        .clone()
        .filter(|column| name.len() <= COMPARED && column.len() <= COMPARED)
        .map(|column| (distance(&column.to_lowercase(), &asked), column))
        .filter(|(distance, _)| *distance <= 2)
        .collect();
    near.sort_by_key(|(distance, _)| *distance);
    let list = |names: &mut dyn Iterator<Item = &str>| {
        let names = names.map(|name| format!("`{}`", excerpt(name, 40)));
        names.collect::<Vec<_>>().join(", ")
    };
    let hint = if near.is_empty() {
        format!("it has {}", list(&mut columns.clone().take(20)))
    } else {
        let nearest = near.iter().take(3).map(|(_, column)| *column);
        format!("did you mean {}?", list(&mut nearest.into_iter()))
    };
    let count = columns.count();
    if count == 0 {
        return Error::new(
            ErrorKind::InvalidPipeline,
            format!(
                "found the column `{}` where there is none to choose from: is `FROM object` missing?",
                excerpt(name, 60)
            ),
        );
    }
    let more = count.saturating_sub(20);
    let more = if near.is_empty() && more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    Error::unsuitable(format!(
        "the object has no column `{}`; {hint}{more}",
        excerpt(name, 60)
    ))
}

fn column(error: &SchemaError) -> Error {
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
                "two columns have the name `{}`: give one another by `as`",
                excerpt(name, 60)
            ),
        ),
    }
}

/// An error of this crate that a library carries.
fn carried(error: &(dyn StdError + 'static)) -> Option<Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(ours) = error.downcast_ref::<Error>() {
            return Some(ours.clone());
        }
        // These keep what they carry out of their source.
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

/// What a planner says, in this crate's words where it speaks of catalogues that nobody sees.
fn planning(message: &str) -> String {
    let table = message
        .strip_prefix("table '")
        .and_then(|rest| rest.strip_suffix("' not found"));
    match table {
        Some(table) => {
            let name = table.strip_prefix("datafusion.public.").unwrap_or(table);
            format!(
                "found the table `{}`, expected `object`: there is no other",
                excerpt(name, 60)
            )
        }
        None => text(&message),
    }
}

/// One line of text.
fn text(error: &dyn std::fmt::Display) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    excerpt(line, SHOWN).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_not_compared() {
        let columns = [255, 300].map(|length| "x".repeat(length));
        let says = |length: usize| {
            let columns = columns.iter().map(String::as_str);
            unknown_column(&"x".repeat(length), columns).to_string()
        };
        assert!(says(256).contains("did you mean `xxx"), "{}", says(256));
        assert!(says(301).contains("it has `xxx"), "{}", says(301));
    }
}
