//! Rows of a text: what CSV and JSON lines have in common.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use bytes::Bytes;

use super::Decoder;
use crate::{Error, Result, limits::TableLimits};

/// Bytes of text that a record batch may be made of, whatever the limits are: Arrow counts the bytes of a column of strings
/// in 31 bits, and what comes last may be more than is left.
const MAX_TEXT_BYTES: u64 = 1 << 30;

/// A decoder of one of the formats.
pub(super) trait Rows: Send {
    /// Reads `text` until a record batch is full; gives how many bytes it took.
    fn decode(&mut self, text: &[u8]) -> Result<usize, ArrowError>;

    /// Whether a record batch is full.
    fn is_full(&self) -> bool;

    /// No more bytes come.
    fn end(&mut self) -> Result<(), ArrowError>;

    /// The rows so far.
    fn flush(&mut self) -> Result<Option<RecordBatch>, ArrowError>;
}

/// How such decoders are made.
pub(super) trait Form: Send {
    /// What errors call it.
    const NAME: &'static str;
    type Rows: Rows;

    /// A decoder whose record batches have `rows` rows.
    fn rows(&self, rows: usize) -> Result<Self::Rows>;

    /// What is wrong with a row, in a few words.
    fn fault(&self, error: &ArrowError) -> String;
}

/// Rows of a text, as it comes.
pub(super) struct Lines<F: Form> {
    form: F,
    rows: F::Rows,
    /// The text of the rows that are not out yet.
    held: Vec<Bytes>,
    bytes: u64,
    /// Lines before it.
    before: usize,
    /// Bytes at the start of the text that are no rows.
    skip: usize,
    most: u64,
}

impl<F: Form> Lines<F> {
    /// Reads rows of a text behind its first `skip` bytes, which have `lines` lines.
    pub(super) fn new(
        form: F,
        batch_rows: usize,
        (skip, lines): (usize, usize),
        limits: &TableLimits,
    ) -> Result<Self> {
        Ok(Self {
            rows: form.rows(batch_rows)?,
            form,
            held: Vec::new(),
            bytes: 0,
            before: lines,
            skip,
            most: limits.max_batch_bytes.min(MAX_TEXT_BYTES),
        })
    }

    fn flush(&mut self, end: bool) -> Result<Option<RecordBatch>> {
        let batch = self.rows.flush().map_err(|error| self.locate(&error, end))?;
        self.before += self.held.iter().map(|text| breaks(text)).sum::<usize>();
        self.held.clear();
        self.bytes = 0;
        Ok(batch)
    }

    /// The error of the first row that cannot be read, found by reading the held ones once more, one by one.
    fn locate(&self, error: &ArrowError, end: bool) -> Error {
        match self.first_fault(end) {
            Ok(Some((line, fault))) => malformed::<F>(line, &self.form.fault(&fault)),
            Ok(None) | Err(_) => malformed::<F>(self.before + 1, &self.form.fault(error)),
        }
    }

    fn first_fault(&self, end: bool) -> Result<Option<(usize, ArrowError)>> {
        let mut rows = self.form.rows(1)?;
        let (mut line, mut started, mut inside) = (self.before + 1, self.before + 1, false);
        for text in &self.held {
            let mut rest = &text[..];
            while !rest.is_empty() {
                if !inside {
                    started = line + breaks(leading(rest));
                }
                let taken = match rows.decode(rest) {
                    Ok(taken) => taken,
                    Err(error) => return Ok(Some((started, error))),
                };
                line += breaks(&rest[..taken]);
                // Space alone begins no row.
                inside = !rows.is_full() && (inside || leading(&rest[..taken]).len() < taken);
                rest = &rest[taken..];
                if rows.is_full()
                    && let Err(error) = rows.flush()
                {
                    return Ok(Some((started, error)));
                }
            }
        }
        let last = if end { rows.end() } else { Ok(()) };
        let last = last.and_then(|()| if end { rows.flush().map(drop) } else { Ok(()) });
        Ok(last.err().map(|error| (started, error)))
    }
}

impl<F: Form> Decoder for Lines<F> {
    fn push(&mut self, chunk: &mut Bytes) -> Result<Option<RecordBatch>> {
        let skipped = self.skip.min(chunk.len());
        let _behind = chunk.split_to(skipped);
        self.skip -= skipped;
        while !chunk.is_empty() {
            let taken = match self.rows.decode(chunk) {
                Ok(taken) => taken,
                Err(error) => {
                    self.held.push(chunk.clone());
                    return Err(self.locate(&error, false));
                }
            };
            if taken == 0 && !self.rows.is_full() {
                return Err(Error::internal("a decoder takes no more text and gives no rows"));
            }
            let text = chunk.split_to(taken);
            if let Some(place) = memchr::memchr(0, &text) {
                let held = self.held.iter().map(|text| breaks(text)).sum::<usize>();
                let line = self.before + held + breaks(&text[..place]) + 1;
                return Err(malformed::<F>(
                    line,
                    "found a byte of zero, expected text in UTF-8",
                ));
            }
            self.held.push(text);
            self.bytes += taken as u64;
            if self.bytes > self.most {
                return Err(Error::too_large(format!(
                    "the rows from line {} on have more than {} bytes before a record batch is full, which is the limit: a \
                     quote may not be closed",
                    self.before + 1,
                    self.most
                )));
            }
            if self.rows.is_full() {
                return self.flush(false);
            }
        }
        Ok(None)
    }

    fn finish(&mut self) -> Result<Option<RecordBatch>> {
        self.rows.end().map_err(|error| self.locate(&error, true))?;
        self.flush(true)
    }
}

/// An error in a line.
pub(super) fn malformed<F: Form>(line: usize, what: &str) -> Error {
    Error::undecodable(format!("found malformed {} in line {line}: {what}", F::NAME))
}

/// Line breaks in a text.
pub(super) fn breaks(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text).count()
}

/// The space that a text starts with.
pub(super) fn leading(text: &[u8]) -> &[u8] {
    let space = text.iter().take_while(|byte| b" \t\r\n".contains(byte)).count();
    &text[..space]
}
