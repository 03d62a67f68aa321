//! How an object is read as a table: the arguments that `select` and `sql` share.

use crate::{formats::format::Format, row_range::RowRange};
use pushdown_core::{
    Result,
    language::{Args, FromValue, Param, Value},
};

/// The arguments of every step that reads an object as a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReadOptions {
    /// The format, if it is named.
    pub(crate) format: Option<Format>,
    /// Whether the first row of a CSV file contains the column names.
    pub(crate) header: Option<bool>,
    /// The character that separates the values of a CSV file.
    pub(crate) delimiter: Option<Delimiter>,
    /// The name of an additional column: the number of each row in the object, from 0.
    pub(crate) row_number: Option<String>,
    /// The rows to read; `None` for all.
    pub(crate) rows: Option<RowRange>,
}

/// An ASCII character other than a quote, CR, LF or NUL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Delimiter(pub(crate) u8);

impl FromValue for Delimiter {
    fn from_value(value: &Value) -> Result<Self, String> {
        match value {
            Value::Text(text) => match text.as_bytes() {
                [byte] if byte.is_ascii() && !b"\"\r\n\0".contains(byte) => Ok(Self(*byte)),
                _ => Err("one ASCII character other than a quote".to_owned()),
            },
            _ => Err("one ASCII character in quotes".to_owned()),
        }
    }
}

impl ReadOptions {
    pub(crate) const FORMAT: Param = Param::named(
        "format",
        "parquet|csv|json|arrow = detected",
        "the object's format, if its bytes and name do not show it; json is JSON lines",
    );
    pub(crate) const HEADER: Param = Param::named(
        "header",
        "true|false = true",
        "whether the first row of a CSV file has the column names; if not, they are column_1, column_2, ...",
    );
    pub(crate) const DELIMITER: Param = Param::named(
        "delimiter",
        "character = \",\"",
        "the separator of a CSV file; a tab for names that end in .tsv",
    );
    pub(crate) const ROW_NUMBER: Param = Param::named(
        "row_number",
        "name",
        "adds a column of this name: the number of each row in the object, from 0",
    );
    pub(crate) const ROWS: Param = Param::named(
        "rows",
        "[from, to] = all",
        "only these row numbers of the object, from 0, end excluded",
    );

    pub(crate) fn parse(args: &Args<'_>) -> Result<Self> {
        let options = Self {
            format: args.optional("format")?,
            header: args.optional("header")?,
            delimiter: args.optional("delimiter")?,
            row_number: args.optional("row_number")?,
            rows: args.optional("rows")?,
        };
        if let Some(format) = options.format
            && let Some(message) = options.misplaced_argument(format)
        {
            return Err(args.fault(message));
        }
        if options.row_number.as_deref() == Some("") {
            return Err(args.fault("`row_number` is empty, expected the name of a column"));
        }
        Ok(options)
    }

    /// A message about an argument that an object of this format does not take.
    pub(crate) fn misplaced_argument(&self, format: Format) -> Option<String> {
        let name = match (format, self.header, self.delimiter) {
            (Format::Csv, ..) | (_, None, None) => return None,
            (_, Some(_), _) => "header",
            _ => "delimiter",
        };
        Some(format!(
            "`{name}` applies to CSV only, and the object is read as {}",
            format.name()
        ))
    }

    /// The arguments that `parse` reads back, without those that have their default value.
    pub(crate) fn arguments(&self) -> Vec<(&'static str, Value)> {
        let text = |text: &str| Value::Text(text.to_owned());
        let header = self.header.filter(|header| !header).map(|_| text("false"));
        let delimiter = self.delimiter.filter(|Delimiter(byte)| *byte != b',');
        let delimiter = delimiter.map(|Delimiter(byte)| Value::Text(char::from(byte).to_string()));
        let arguments = [
            ("format", self.format.map(|format| text(format.name()))),
            ("header", header),
            ("delimiter", delimiter),
            ("row_number", self.row_number.as_deref().map(text)),
            ("rows", self.rows.map(RowRange::value)),
        ];
        let given = arguments.into_iter();
        given.filter_map(|(name, value)| Some((name, value?))).collect()
    }
}
