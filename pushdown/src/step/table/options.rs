//! How an object is read as a table: what `select` and `sql` are both told of it.

use super::{Format, between::Between};
use crate::{
    Result,
    pipeline::{Args, FromValue, Param, Value},
};

/// The arguments that all steps that read objects have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The format, where it is named.
    pub(super) format: Option<Format>,
    /// Whether the first row of a CSV file has the columns' names.
    pub(super) header: Option<bool>,
    /// What stands between the values of a CSV file.
    pub(super) delimiter: Option<Delimiter>,
    /// The name of a column more: the place of each row in the object, from 0.
    pub(super) row_number: Option<String>,
    /// The rows that are read at all.
    pub(super) rows: Option<Between>,
}

/// An ASCII character that no value has to be quoted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delimiter(pub(super) u8);

impl FromValue for Delimiter {
    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) => match text.as_bytes() {
                [byte] if byte.is_ascii() && !b"\"\r\n\0".contains(byte) => Ok(Self(*byte)),
                _ => Err("one ASCII character, and no quote".to_owned()),
            },
            _ => Err("one ASCII character in quotes".to_owned()),
        }
    }
}

impl Reading {
    pub(super) const FORMAT: Param = Param::named(
        "format",
        "parquet|csv|json|arrow = found",
        "the object's format, where its bytes and name do not tell; json is JSON lines",
    );
    pub(super) const HEADER: Param = Param::named(
        "header",
        "true|false = true",
        "whether the first row of a CSV file has the names; without, they are column_1, column_2, ...",
    );
    pub(super) const DELIMITER: Param = Param::named(
        "delimiter",
        "character = \",\"",
        "what stands between the values of a CSV file; a tab for names that end in .tsv",
    );
    pub(super) const ROW_NUMBER: Param = Param::named(
        "row_number",
        "name",
        "a column more of this name: the place of each row in the object, from 0",
    );
    pub(super) const ROWS: Param = Param::named(
        "rows",
        "[from, to] = all",
        "only the rows at these places of the object, counted from 0, the last one left out",
    );

    pub(super) fn parse(args: &Args<'_>) -> Result<Self> {
        let reading = Self {
            format: args.optional("format")?,
            header: args.optional("header")?,
            delimiter: args.optional("delimiter")?,
            row_number: args.optional("row_number")?,
            rows: args.optional("rows")?,
        };
        if let Some(format) = reading.format
            && let Some(fault) = reading.misplaced(format)
        {
            return Err(args.fault(fault));
        }
        if reading.row_number.as_deref() == Some("") {
            return Err(args.fault("`row_number` is empty, expected the name of a column"));
        }
        Ok(reading)
    }

    /// What is wrong with the arguments for an object of this format.
    pub(super) fn misplaced(&self, format: Format) -> Option<String> {
        let name = match (format, self.header, self.delimiter) {
            (Format::Csv, ..) | (_, None, None) => return None,
            (_, Some(_), _) => "header",
            _ => "delimiter",
        };
        Some(format!(
            "`{name}` is for CSV, and the object is read as {}",
            format.name()
        ))
    }

    /// The arguments that `parse` reads back, those with their default value left out.
    pub(super) fn arguments(&self) -> Vec<(&'static str, Value)> {
        let text = |text: &str| Value::Text(text.to_owned());
        let header = self.header.filter(|header| !header).map(|_| text("false"));
        let delimiter = self.delimiter.filter(|Delimiter(byte)| *byte != b',');
        let delimiter = delimiter.map(|Delimiter(byte)| Value::Text(char::from(byte).to_string()));
        let arguments = [
            ("format", self.format.map(|format| text(format.name()))),
            ("header", header),
            ("delimiter", delimiter),
            ("row_number", self.row_number.as_deref().map(text)),
            ("rows", self.rows.map(Between::value)),
        ];
        let given = arguments.into_iter();
        given.filter_map(|(name, value)| Some((name, value?))).collect()
    }
}
