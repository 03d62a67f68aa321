//! Reads the whole rows at the start of a file, to infer its columns.

use csv::{ByteRecord, ReaderBuilder as Parser, StringRecord};

use super::{super::head::Head, types::TypeSet};
use pushdown_core::{Error, Result};

/// The whole rows of a head. Offsets are in bytes.
pub(super) struct WholeRows {
    pub(super) first: ByteRecord,
    /// Start of the second row.
    pub(super) second_start: usize,
    /// End of the last whole row.
    pub(super) end: usize,
    pub(super) count: usize,
}

impl WholeRows {
    pub(super) fn read(head: &Head, delimiter: u8) -> Result<Self> {
        let mut parser = parser(delimiter).from_reader(&head.bytes[..]);
        let mut next = || {
            let start = usize::try_from(parser.position().byte()).unwrap_or(usize::MAX);
            let mut record = ByteRecord::new();
            let is_row = parser
                .read_byte_record(&mut record)
                .map_err(|error| malformed(&error))?;
            Ok((start, is_row.then_some(record)))
        };
        let (_, Some(first)) = next()? else {
            return Err(Error::undecodable("empty CSV: expected at least one row"));
        };
        let (mut second_start, mut last_start, mut count) = (None, 0, 1);
        loop {
            let (start, record) = next()?;
            second_start.get_or_insert(start);
            if record.is_none() {
                // The last row may continue after the head.
                let end = if head.is_truncated { last_start } else { start };
                if head.is_truncated && count == 1 {
                    return Err(Error::undecodable(format!(
                        "first CSV row too long: expected at most {} bytes, found more (check for an unclosed quote)",
                        head.bytes.len()
                    )));
                }
                let second_start = second_start.unwrap_or(start).min(end.max(1));
                return Ok(Self {
                    first,
                    second_start,
                    end,
                    count,
                });
            }
            last_start = start;
            count += 1;
        }
    }
}

/// The end of the first row with values, in a text that continues; `None` if the row may be longer.
pub(in super::super) fn first_row_end(text: &[u8], has_header: bool, delimiter: u8) -> Option<usize> {
    let mut parser = parser(delimiter).from_reader(text);
    let mut record = ByteRecord::new();
    for _ in 0..=usize::from(has_header) {
        // A malformed row is an error of the inference.
        parser
            .read_byte_record(&mut record)
            .ok()
            .filter(|is_row| *is_row)?;
    }
    let end = usize::try_from(parser.position().byte()).ok()?;
    (end < text.len()).then_some(end)
}

/// The types that hold all values of each column. Rows with another number of values fail when they are decoded, with
/// their line.
pub(super) fn infer_types(text: &[u8], columns: usize, delimiter: u8) -> Result<Vec<TypeSet>> {
    let mut types = vec![TypeSet::ALL; columns];
    let mut parser = parser(delimiter).from_reader(text);
    let mut record = StringRecord::new();
    while parser
        .read_record(&mut record)
        .map_err(|error| malformed(&error))?
    {
        for (types, value) in types.iter_mut().zip(&record) {
            if !value.is_empty() && !types.is_empty() {
                *types &= TypeSet::from_text(value);
            }
        }
    }
    Ok(types)
}

fn parser(delimiter: u8) -> Parser {
    let mut parser = Parser::new();
    parser.has_headers(false).flexible(true).delimiter(delimiter);
    parser
}

fn malformed(error: &csv::Error) -> Error {
    Error::undecodable(format!("malformed CSV: {error}"))
}
