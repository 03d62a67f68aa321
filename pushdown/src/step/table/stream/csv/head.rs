//! The whole rows at the start of a file.

use csv::{ByteRecord, ReaderBuilder as Parser, StringRecord};

use super::{super::Head, types::Types};
use crate::{Error, Result};

/// The whole rows of a head.
pub(super) struct Found {
    pub(super) first: ByteRecord,
    /// Where the second row starts.
    pub(super) second: usize,
    /// Where the last whole row ends.
    pub(super) end: usize,
    pub(super) rows: usize,
}

impl Found {
    pub(super) fn read(head: &Head, delimiter: u8) -> Result<Self> {
        let mut parser = parser(delimiter).from_reader(&head.bytes[..]);
        let mut next = || {
            let start = usize::try_from(parser.position().byte()).unwrap_or(usize::MAX);
            let mut record = ByteRecord::new();
            let read = parser.read_byte_record(&mut record);
            let read = read.map_err(|error| unreadable(&error))?;
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

/// The types that hold all values of each column. Rows of another length are errors once they are read, with their line.
pub(super) fn types(text: &[u8], columns: usize, delimiter: u8) -> Result<Vec<Types>> {
    let mut types = vec![Types::ALL; columns];
    let mut parser = parser(delimiter).from_reader(text);
    let mut record = StringRecord::new();
    while parser
        .read_record(&mut record)
        .map_err(|error| unreadable(&error))?
    {
        for (types, value) in types.iter_mut().zip(&record) {
            if !value.is_empty() && !types.is_empty() {
                *types &= Types::of(value);
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

fn unreadable(error: &csv::Error) -> Error {
    Error::undecodable(format!("found malformed CSV: {error}"))
}
