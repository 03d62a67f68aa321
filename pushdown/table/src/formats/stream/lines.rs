//! Decodes rows of a text: the common part of CSV and JSON lines.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use bytes::Bytes;

use super::Decoder;
use pushdown_core::{Error, Result, limits::TableLimits};

/// Maximum bytes of text in a record batch, regardless of the configured limit: Arrow has 31-bit offsets into a column of
/// strings, and the last chunk may exceed the rest.
const MAX_TEXT_BYTES: u64 = 1 << 30;

/// Decodes the rows of one format.
pub(super) trait RowDecoder: Send {
    /// Decodes `text` until a record batch is full. Returns the number of bytes consumed.
    fn decode(&mut self, text: &[u8]) -> Result<usize, ArrowError>;

    /// Whether a record batch is full.
    fn is_full(&self) -> bool;

    /// Handles the end of the text.
    fn end(&mut self) -> Result<(), ArrowError>;

    /// Returns the rows decoded so far.
    fn flush(&mut self) -> Result<Option<RecordBatch>, ArrowError>;
}

/// A text format.
pub(super) trait TextFormat: Send {
    /// The name of the format in errors.
    const NAME: &'static str;
    type Decoder: RowDecoder;

    /// A decoder of record batches of `batch_rows` rows.
    fn row_decoder(&self, batch_rows: usize) -> Result<Self::Decoder>;

    /// Describes the error of a row in a few words.
    fn describe(&self, error: &ArrowError) -> String;
}

/// Decodes a text, chunk by chunk.
pub(super) struct TextDecoder<F: TextFormat> {
    format: F,
    decoder: F::Decoder,
    /// The text of the rows that have not been returned.
    pending: Vec<Bytes>,
    pending_bytes: u64,
    /// Number of lines before `pending`.
    lines_before: usize,
    /// Bytes at the start of the text to skip.
    skip_bytes: usize,
    max_pending_bytes: u64,
}

/// The part of a text before its first row.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Preamble {
    pub(super) bytes: usize,
    pub(super) lines: usize,
}

impl<F: TextFormat> TextDecoder<F> {
    /// A decoder of the rows after `preamble`.
    pub(super) fn new(
        format: F,
        batch_rows: usize,
        preamble: Preamble,
        limits: &TableLimits,
    ) -> Result<Self> {
        Ok(Self {
            decoder: format.row_decoder(batch_rows)?,
            format,
            pending: Vec::new(),
            pending_bytes: 0,
            lines_before: preamble.lines,
            skip_bytes: preamble.bytes,
            max_pending_bytes: max_text_bytes(limits),
        })
    }

    fn flush(&mut self, is_end: bool) -> Result<Option<RecordBatch>> {
        let batch = self
            .decoder
            .flush()
            .map_err(|error| self.locate(&error, is_end))?;
        self.lines_before += self.pending_lines();
        self.pending.clear();
        self.pending_bytes = 0;
        Ok(batch)
    }

    fn pending_lines(&self) -> usize {
        self.pending.iter().map(|text| count_line_breaks(text)).sum()
    }

    /// The error of the first malformed row. The pending rows are decoded again, one by one, to find its line.
    fn locate(&self, error: &ArrowError, is_end: bool) -> Error {
        match self.first_row_error(is_end) {
            Ok(Some((line, error))) => malformed::<F>(line, &self.format.describe(&error)),
            Ok(None) | Err(_) => malformed::<F>(self.lines_before + 1, &self.format.describe(error)),
        }
    }

    /// The first malformed pending row: the line in which it starts, and its error.
    fn first_row_error(&self, is_end: bool) -> Result<Option<(usize, ArrowError)>> {
        let mut decoder = self.format.row_decoder(1)?;
        let first_line = self.lines_before + 1;
        let (mut line, mut row_line, mut is_in_row) = (first_line, first_line, false);
        for text in &self.pending {
            let mut rest = &text[..];
            while !rest.is_empty() {
                if !is_in_row {
                    row_line = line + count_line_breaks(leading_space(rest));
                }
                let consumed = match decoder.decode(rest) {
                    Ok(consumed) => consumed,
                    Err(error) => return Ok(Some((row_line, error))),
                };
                line += count_line_breaks(&rest[..consumed]);
                // Space does not begin a row.
                let has_content = leading_space(&rest[..consumed]).len() < consumed;
                is_in_row = !decoder.is_full() && (is_in_row || has_content);
                rest = &rest[consumed..];
                if decoder.is_full()
                    && let Err(error) = decoder.flush()
                {
                    return Ok(Some((row_line, error)));
                }
            }
        }
        if !is_end {
            return Ok(None);
        }
        let last = decoder.end().and_then(|()| decoder.flush().map(drop));
        Ok(last.err().map(|error| (row_line, error)))
    }
}

impl<F: TextFormat> Decoder for TextDecoder<F> {
    fn push(&mut self, chunk: &mut Bytes) -> Result<Option<RecordBatch>> {
        let skipped = self.skip_bytes.min(chunk.len());
        let _preamble = chunk.split_to(skipped);
        self.skip_bytes -= skipped;
        while !chunk.is_empty() {
            let consumed = match self.decoder.decode(chunk) {
                Ok(consumed) => consumed,
                Err(error) => {
                    self.pending.push(chunk.clone());
                    return Err(self.locate(&error, false));
                }
            };
            if consumed == 0 && !self.decoder.is_full() {
                return Err(Error::internal(
                    "the decoder consumes no text and returns no rows",
                ));
            }
            let text = chunk.split_to(consumed);
            if let Some(position) = memchr::memchr(0, &text) {
                let line =
                    self.lines_before + self.pending_lines() + count_line_breaks(&text[..position]) + 1;
                return Err(malformed::<F>(line, "expected text in UTF-8, found a zero byte"));
            }
            self.pending.push(text);
            self.pending_bytes += consumed as u64;
            if self.pending_bytes > self.max_pending_bytes {
                return Err(Error::too_large(format!(
                    "rows too large from line {} on: expected a full record batch in at most {} bytes, found more (check \
                     for an unclosed quote)",
                    self.lines_before + 1,
                    self.max_pending_bytes
                )));
            }
            if self.decoder.is_full() {
                return self.flush(false);
            }
        }
        Ok(None)
    }

    fn finish(&mut self) -> Result<Option<RecordBatch>> {
        self.decoder.end().map_err(|error| self.locate(&error, true))?;
        self.flush(true)
    }
}

/// Maximum bytes of text in a record batch.
pub(super) fn max_text_bytes(limits: &TableLimits) -> u64 {
    limits.max_batch_bytes.min(MAX_TEXT_BYTES)
}

/// The error of a malformed line.
pub(super) fn malformed<F: TextFormat>(line: usize, problem: &str) -> Error {
    Error::undecodable(format!("malformed {} in line {line}: {problem}", F::NAME))
}

/// Number of line breaks in a text.
pub(super) fn count_line_breaks(text: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', text).count()
}

/// The whitespace at the start of a text.
pub(super) fn leading_space(text: &[u8]) -> &[u8] {
    let space = text.iter().take_while(|byte| b" \t\r\n".contains(byte)).count();
    &text[..space]
}
