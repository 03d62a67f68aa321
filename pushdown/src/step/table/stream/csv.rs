//! CSV as RFC 4180 has it: quotes are doubled inside quotes, an empty value is null.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_csv::reader::{Decoder, Format, ReaderBuilder};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use csv::{ByteRecord, ReaderBuilder as Parser};

use super::{
    Head,
    lines::{Form, Lines, Rows, malformed},
};
use crate::{Error, Result, limits::TableLimits, pipeline::excerpt, step::table::twice::twice};

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
        if let Err(error) = std::str::from_utf8(text) {
            let line = memchr::memchr_iter(b'\n', &head.bytes[..start + error.valid_up_to()]).count() + 1;
            return Err(malformed::<Columns>(line, "found bytes that are no UTF-8"));
        }
        // Rows of another length are reported when they are read, with their line.
        let format = Format::default()
            .with_delimiter(delimiter)
            .with_truncated_rows(true);
        let (inferred, _) = format
            .infer_schema(text, None)
            .map_err(|error| Error::undecodable(format!("found malformed CSV: {}", fault(&error))))?;
        let fields = names.into_iter().enumerate().map(|(index, name)| {
            let inferred = inferred.fields().get(index).map(|field| field.data_type());
            let data_type = match inferred {
                None | Some(DataType::Null) => DataType::Utf8,
                Some(found) => found.clone(),
            };
            Field::new(name, data_type, true)
        });
        Ok(Self {
            schema: Arc::new(Schema::new(fields.collect::<Vec<_>>())),
            delimiter,
            header: (start, memchr::memchr_iter(b'\n', &head.bytes[..start]).count()),
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

/// The whole rows of a head.
struct Found {
    first: ByteRecord,
    /// Where the second row starts.
    second: usize,
    /// Where the last whole row ends.
    end: usize,
    rows: usize,
}

impl Found {
    fn read(head: &Head, delimiter: u8) -> Result<Self> {
        let mut parser = Parser::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .from_reader(&head.bytes[..]);
        let mut next = || {
            let start = usize::try_from(parser.position().byte()).unwrap_or(usize::MAX);
            let mut record = ByteRecord::new();
            let read = parser.read_byte_record(&mut record);
            let read = read.map_err(|error| Error::undecodable(format!("found malformed CSV: {error}")))?;
            Ok((start, read.then_some(record)))
        };
        let (_, Some(first)) = next()? else {
            return Err(Error::undecodable("the CSV is empty, expected at least one row"));
        };
        let (mut second, mut starts, mut rows) = (None, 0, 1);
        loop {
            let (start, record) = next()?;
            second.get_or_insert(start);
            if record.is_none() {
                // The last row may go on behind the head.
                let end = if head.cut { starts } else { start };
                if head.cut && rows == 1 {
                    return Err(Error::undecodable(format!(
                        "the first row of the CSV has more than {} bytes: a quote may not be closed",
                        head.bytes.len()
                    )));
                }
                let second = second.unwrap_or(start).min(end.max(1));
                return Ok(Self {
                    first,
                    second,
                    end,
                    rows,
                });
            }
            starts = start;
            rows += 1;
        }
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
        let builder = ReaderBuilder::new(SchemaRef::clone(&self.schema))
            .with_delimiter(self.delimiter)
            .with_projection(self.read.clone())
            .with_batch_size(rows);
        Ok(Records(builder.build_decoder()))
    }

    fn fault(&self, error: &ArrowError) -> String {
        let text = fault(error);
        // Arrow tells a value that does not fit by the number of its column.
        let value = text.strip_prefix("Error while parsing value '");
        let value = value.and_then(|rest| rest.split_once("' as type '"));
        let parts = value.and_then(|(value, rest)| Some((value, rest.split_once("' for column ")?)));
        let column = |index: &str| Some(self.schema.fields().get(index.parse::<usize>().ok()?)?.name());
        match parts.and_then(|(value, (data_type, index))| Some((value, data_type, column(index)?))) {
            Some((value, data_type, column)) => format!(
                "found `{}` in column `{}`, expected {data_type} as in the rows at the start",
                excerpt(value, 60),
                excerpt(column, 60)
            ),
            None => text,
        }
    }
}

/// What Arrow says, without the places that it counts from where it was started.
fn fault(error: &ArrowError) -> String {
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

/// Arrow's decoder.
pub(super) struct Records(Decoder);

impl Rows for Records {
    fn decode(&mut self, text: &[u8]) -> Result<usize, ArrowError> {
        self.0.decode(text)
    }

    fn is_full(&self) -> bool {
        self.0.capacity() == 0
    }

    /// Outside of quotes a line break ends the last row, or is nothing. Inside of them it is one more character, and only
    /// the end of the text ends the row.
    fn end(&mut self) -> Result<(), ArrowError> {
        self.0.decode(b"\n")?;
        let rows = self.0.capacity();
        self.0.decode(&[])?;
        if self.0.capacity() == rows {
            return Ok(());
        }
        Err(ArrowError::CsvError("a quote is not closed".to_owned()))
    }

    fn flush(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        self.0.flush()
    }
}
