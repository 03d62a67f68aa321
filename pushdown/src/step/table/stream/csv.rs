//! CSV as RFC 4180 has it: quotes are doubled inside quotes, an empty value is null.

mod column;
mod head;
mod time;
mod types;

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions, cast::AsArray as _};
use arrow_csv::reader::{Decoder, ReaderBuilder};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

use super::{
    Head,
    lines::{Form, Lines, Rows, breaks, malformed},
};
use crate::{Error, Result, limits::TableLimits, pipeline::excerpt, step::table::twice::twice};
use head::Found;

/// What the start of a file tells of it.
#[derive(Debug, Clone)]
pub(super) struct Table {
    pub(super) schema: SchemaRef,
    delimiter: u8,
    /// Bytes of the header, and lines in them.
    header: (usize, usize),
    batch_rows: usize,
}

impl Table {
    /// Finds names and types in the whole rows of the head.
    pub(super) fn infer(head: &Head, header: bool, delimiter: u8, limits: &TableLimits) -> Result<Self> {
        let found = Found::read(head, delimiter)?;
        let columns = found.first.len();
        if columns > limits.max_columns {
            return Err(Error::too_large(format!(
                "the object has {columns} columns, more than the limit of {}",
                limits.max_columns
            )));
        }
        if header && found.first.as_slice().contains(&0) {
            return Err(malformed::<Columns>(
                1,
                "found a byte of zero, expected text in UTF-8",
            ));
        }
        let start = if header { found.second } else { 0 };
        let text = &head.bytes[start..found.end.max(start)];
        let names = if header {
            found.first.iter().map(name).collect()
        } else {
            vec![String::new(); columns]
        };
        let named = |(index, name): (usize, String)| match name.as_str() {
            "" => format!("column_{}", index + 1),
            _ => name,
        };
        let names: Vec<_> = names.into_iter().enumerate().map(named).collect();
        if let Some(twice) = twice(names.iter().map(String::as_str)) {
            return Err(Error::undecodable(format!(
                "the first row of the CSV has the name `{}` twice, expected names that differ: `header=false` reads it as \
                 values",
                excerpt(twice, 60)
            )));
        }
        if let Err(error) = std::str::from_utf8(&head.bytes[..found.end.max(start)]) {
            let line = breaks(&head.bytes[..error.valid_up_to()]) + 1;
            return Err(malformed::<Columns>(line, "found bytes that are no UTF-8"));
        }
        let types = head::types(text, columns, delimiter)?;
        let fields = names.into_iter().zip(types);
        let fields = fields.map(|(name, types)| Field::new(name, types.first(), true));
        Ok(Self {
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            delimiter,
            header: (start, breaks(&head.bytes[..start])),
            batch_rows: Head::batch_rows(found.rows, found.end),
        })
    }

    pub(super) fn decoder(&self, columns: &[usize], limits: &TableLimits) -> Result<Lines<Columns>> {
        let form = Columns {
            schema: SchemaRef::clone(&self.schema),
            delimiter: self.delimiter,
            read: columns.to_vec(),
        };
        Lines::new(form, self.batch_rows, self.header, limits)
    }
}

fn name(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Some columns of a file.
pub(super) struct Columns {
    schema: SchemaRef,
    delimiter: u8,
    read: Vec<usize>,
}

impl Form for Columns {
    const NAME: &'static str = "CSV";
    type Rows = Records;

    fn rows(&self, rows: usize) -> Result<Records> {
        // Arrow would cut off what does not fit, fractions of seconds, say: values are read from their texts here.
        let fields = self.schema.fields().iter();
        let texts = fields.map(|field| Field::new(field.name(), DataType::Utf8, true));
        let builder = ReaderBuilder::new(Arc::new(Schema::new(texts.collect::<Vec<_>>())))
            .with_delimiter(self.delimiter)
            .with_projection(self.read.clone())
            .with_batch_size(rows);
        let schema = self.schema.project(&self.read);
        let schema = schema.map_err(|error| Error::internal(error.to_string()))?;
        Ok(Records {
            decoder: builder.build_decoder(),
            schema: Arc::new(schema),
        })
    }

    fn fault(&self, error: &ArrowError) -> String {
        fault(error)
    }
}

/// What Arrow says, without the places that it counts from where it was started.
fn fault(error: &ArrowError) -> String {
    if let ArrowError::CastError(misfit) = error {
        return misfit.clone();
    }
    let (ArrowError::CsvError(text) | ArrowError::ParseError(text)) = error else {
        return excerpt(&error.to_string(), 200).into_owned();
    };
    let text = match (text.split_once(" at line "), text.split_once(" for line ")) {
        (Some((text, _)), _) => text,
        // How many there are depends on how far the text has come.
        (_, Some(("incorrect number of fields", rest))) => {
            let expected = rest
                .split_whitespace()
                .skip_while(|word| *word != "expected")
                .nth(1);
            let expected = expected.unwrap_or("that of the first row");
            return format!("found another number of values, expected {expected}");
        }
        (_, Some((text, _))) => text,
        _ => text.as_str(),
    };
    excerpt(text, 200).into_owned()
}

/// Arrow's decoder of texts.
pub(super) struct Records {
    decoder: Decoder,
    /// The columns that are read.
    schema: SchemaRef,
}

impl Records {
    /// The values of texts, each of its column's type.
    fn typed(&self, texts: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let fields = self.schema.fields().iter();
        let columns = fields.zip(texts.columns()).map(|(field, texts)| {
            let read = column::read(texts.as_string(), field.data_type());
            read.map_err(|text| misfit(text, field))
        });
        let options = RecordBatchOptions::new().with_row_count(Some(texts.num_rows()));
        let columns = columns.collect::<Result<_, _>>()?;
        RecordBatch::try_new_with_options(SchemaRef::clone(&self.schema), columns, &options)
    }
}

fn misfit(text: &str, field: &Field) -> ArrowError {
    ArrowError::CastError(format!(
        "found `{}` in column `{}`, expected {} as in the rows at the start",
        excerpt(text, 60),
        excerpt(field.name(), 60),
        field.data_type()
    ))
}

impl Rows for Records {
    fn decode(&mut self, text: &[u8]) -> Result<usize, ArrowError> {
        self.decoder.decode(text)
    }

    fn is_full(&self) -> bool {
        self.decoder.capacity() == 0
    }

    /// Outside of quotes a line break ends the last row, or is nothing. Inside of them it is one more character, and only
    /// the end of the text ends the row.
    fn end(&mut self) -> Result<(), ArrowError> {
        self.decoder.decode(b"\n")?;
        let rows = self.decoder.capacity();
        self.decoder.decode(&[])?;
        if self.decoder.capacity() == rows {
            return Ok(());
        }
        Err(ArrowError::CsvError("a quote is not closed".to_owned()))
    }

    fn flush(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let texts = self.decoder.flush()?;
        texts.map(|texts| self.typed(&texts)).transpose()
    }
}
