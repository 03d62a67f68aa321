//! CSV as in RFC 4180: quotes are doubled inside quotes, an empty value is null.

mod column;
mod head;
mod time;
mod types;

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions, cast::AsArray as _};
use arrow_csv::reader::{Decoder, ReaderBuilder};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use super::{
    head::Head,
    lines::{Preamble, RowDecoder, TextDecoder, TextFormat, count_line_breaks, malformed},
};
use crate::guard::duplicate::first_duplicate;
use head::WholeRows;
pub(super) use head::first_row_end;
use pushdown_core::{Error, Result, language::excerpt, limits::TableLimits};

/// The inferred layout of a CSV file.
#[derive(Debug, Clone)]
pub(super) struct CsvTable {
    pub(super) schema: SchemaRef,
    delimiter: u8,
    header: Preamble,
    batch_rows: usize,
}

impl CsvTable {
    /// Infers names and types from the whole rows of the head.
    pub(super) fn infer(head: &Head, has_header: bool, delimiter: u8, limits: &TableLimits) -> Result<Self> {
        let rows = WholeRows::read(head, delimiter)?;
        let columns = rows.first.len();
        if columns > limits.max_columns {
            return Err(Error::too_large(format!(
                "too many columns: expected at most {}, found {columns}",
                limits.max_columns
            )));
        }
        if has_header && rows.first.as_slice().contains(&0) {
            return Err(malformed::<CsvFormat>(
                1,
                "expected text in UTF-8, found a zero byte",
            ));
        }
        let start = if has_header { rows.second_start } else { 0 };
        let end = rows.end.max(start);
        let names = if has_header {
            rows.first.iter().map(lossy_name).collect()
        } else {
            vec![String::new(); columns]
        };
        let or_default = |(index, name): (usize, String)| match name.as_str() {
            "" => format!("column_{}", index + 1),
            _ => name,
        };
        let names: Vec<_> = names.into_iter().enumerate().map(or_default).collect();
        if let Some(name) = first_duplicate(names.iter().map(String::as_str)) {
            return Err(Error::undecodable(format!(
                "duplicate CSV column: expected unique names in the first row, found `{}` twice (`header=false` reads the \
                 row as values)",
                excerpt(name, 60)
            )));
        }
        if let Err(error) = std::str::from_utf8(&head.bytes[..end]) {
            let line = count_line_breaks(&head.bytes[..error.valid_up_to()]) + 1;
            return Err(malformed::<CsvFormat>(
                line,
                "expected text in UTF-8, found invalid bytes",
            ));
        }
        let types = head::infer_types(&head.bytes[start..end], columns, delimiter)?;
        let fields = names.into_iter().zip(types);
        let fields = fields.map(|(name, types)| Field::new(name, types.preferred(), true));
        Ok(Self {
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            delimiter,
            header: Preamble {
                bytes: start,
                lines: count_line_breaks(&head.bytes[..start]),
            },
            batch_rows: Head::batch_rows(rows.count, rows.end),
        })
    }

    pub(super) fn decoder(&self, columns: &[usize], limits: &TableLimits) -> Result<TextDecoder<CsvFormat>> {
        let format = CsvFormat {
            schema: SchemaRef::clone(&self.schema),
            delimiter: self.delimiter,
            columns: columns.to_vec(),
        };
        TextDecoder::new(format, self.batch_rows, self.header, limits)
    }
}

fn lossy_name(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// CSV with the columns to read.
pub(super) struct CsvFormat {
    schema: SchemaRef,
    delimiter: u8,
    columns: Vec<usize>,
}

impl TextFormat for CsvFormat {
    const NAME: &'static str = "CSV";
    type Decoder = CsvDecoder;

    fn row_decoder(&self, batch_rows: usize) -> Result<CsvDecoder> {
        // Arrow truncates values that do not fit, such as fractions of seconds. So it decodes texts only.
        let fields = self.schema.fields().iter();
        let texts = fields.map(|field| Field::new(field.name(), DataType::Utf8, true));
        let builder = ReaderBuilder::new(Arc::new(Schema::new(texts.collect::<Vec<_>>())))
            .with_delimiter(self.delimiter)
            .with_projection(self.columns.clone())
            .with_batch_size(batch_rows);
        let schema = self.schema.project(&self.columns);
        let schema = schema.map_err(|error| Error::internal(error.to_string()))?;
        Ok(CsvDecoder {
            decoder: builder.build_decoder(),
            schema: Arc::new(schema),
        })
    }

    fn describe(&self, error: &ArrowError) -> String {
        describe(error)
    }
}

/// Arrow's message without its positions. They are relative to the start of the decoder and not to the text.
fn describe(error: &ArrowError) -> String {
    if let ArrowError::CastError(misfit) = error {
        return misfit.clone();
    }
    let (ArrowError::CsvError(text) | ArrowError::ParseError(text)) = error else {
        return excerpt(&error.to_string(), 200).into_owned();
    };
    let text = match (text.split_once(" at line "), text.split_once(" for line ")) {
        (Some((text, _)), _) => text,
        // The number found depends on how much of the row has been decoded.
        (_, Some(("incorrect number of fields", rest))) => {
            let expected = rest
                .split_whitespace()
                .skip_while(|word| *word != "expected")
                .nth(1);
            let expected = expected.unwrap_or("as many as in the first row");
            return format!("wrong number of values: expected {expected}");
        }
        (_, Some((text, _))) => text,
        _ => text.as_str(),
    };
    excerpt(text, 200).into_owned()
}

/// Decodes texts by Arrow and converts them to the types of their columns.
pub(super) struct CsvDecoder {
    decoder: Decoder,
    /// The columns to read.
    schema: SchemaRef,
}

impl CsvDecoder {
    /// Converts texts to the types of their columns.
    fn convert(&self, texts: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let fields = self.schema.fields().iter();
        let columns = fields.zip(texts.columns()).map(|(field, texts)| {
            column::parse(texts.as_string(), field.data_type()).map_err(|text| misfit(text, field))
        });
        let options = RecordBatchOptions::new().with_row_count(Some(texts.num_rows()));
        let columns = columns.collect::<Result<_, _>>()?;
        RecordBatch::try_new_with_options(SchemaRef::clone(&self.schema), columns, &options)
    }
}

fn misfit(text: &str, field: &Field) -> ArrowError {
    ArrowError::CastError(format!(
        "expected {} in column `{}` as in the first rows, found `{}`",
        field.data_type(),
        excerpt(field.name(), 60),
        excerpt(text, 60)
    ))
}

impl RowDecoder for CsvDecoder {
    fn decode(&mut self, text: &[u8]) -> Result<usize, ArrowError> {
        self.decoder.decode(text)
    }

    fn is_full(&self) -> bool {
        self.decoder.capacity() == 0
    }

    /// Outside of quotes, a line break ends the last row, if one is open. Inside of quotes, it is one more character, and only
    /// the end of the text ends the row.
    fn end(&mut self) -> Result<(), ArrowError> {
        self.decoder.decode(b"\n")?;
        let rows = self.decoder.capacity();
        self.decoder.decode(&[])?;
        if self.decoder.capacity() == rows {
            return Ok(());
        }
        Err(ArrowError::CsvError("unclosed quote".to_owned()))
    }

    fn flush(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let texts = self.decoder.flush()?;
        texts.map(|texts| self.convert(&texts)).transpose()
    }
}
