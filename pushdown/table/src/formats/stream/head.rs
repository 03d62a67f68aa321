//! The first rows of a text, from which its columns are inferred.

use bytes::Bytes;

use super::{
    Chunks, csv::first_row_end as csv_row_end, json::first_row_end as json_row_end, lines::max_text_bytes,
    read_at_least,
};
use crate::formats::format::Format;
use pushdown_core::{
    Result, Source,
    limits::{BATCH_ROWS, INFERENCE_BYTES, TableLimits},
};

/// Target size of a text's record batches, estimated from its first rows.
const BATCH_BYTES: u64 = 16 << 20;
/// Copies of a long first row in memory until the columns are inferred: its chunks, the head, and the values of the row.
const COPIES: u64 = 3;

/// The first bytes of an object, decompressed.
pub(super) struct Head {
    pub(super) bytes: Bytes,
    /// Whether the last row may continue after them.
    pub(super) is_truncated: bool,
}

/// How rows of a text end.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowSyntax {
    pub(super) format: Format,
    pub(super) has_header: bool,
    pub(super) delimiter: u8,
}

impl Head {
    /// The first [`INFERENCE_BYTES`] of these chunks.
    pub(super) fn new(chunks: &[Bytes]) -> Self {
        Self::of_size(chunks, INFERENCE_BYTES)
    }

    fn of_size(chunks: &[Bytes], size: usize) -> Self {
        let mut bytes = match chunks {
            [whole] => whole.clone(),
            parts => Bytes::from(parts.concat()),
        };
        let is_truncated = bytes.len() > size;
        bytes.truncate(size);
        Self { bytes, is_truncated }
    }

    /// Reads on until the first row is whole, if it is longer than this head. The new head ends with that row. One that is longer than
    /// the text of a record batch may be is left as it is: it cannot be read.
    ///
    /// `start` are the chunks that have been read, and `rest` those after them; `source` reserves memory for more.
    pub(super) async fn with_first_row(
        self,
        syntax: RowSyntax,
        (mut start, mut rest): (Vec<Bytes>, Chunks),
        source: &dyn Source,
        limits: &TableLimits,
    ) -> Result<(Self, Vec<Bytes>, Chunks)> {
        let max_bytes = usize::try_from(max_text_bytes(limits)).unwrap_or(usize::MAX);
        let mut head = self;
        let mut size = INFERENCE_BYTES;
        while head.is_truncated && size < max_bytes && syntax.first_row_end(&head.bytes).is_none() {
            let next = size.saturating_mul(2).min(max_bytes);
            source.reserve(((next - size) as u64).saturating_mul(COPIES))?;
            let held: usize = start.iter().map(Bytes::len).sum();
            let more;
            (more, rest) = read_at_least(rest, (next + 1).saturating_sub(held)).await?;
            start.extend(more);
            (head, size) = (Self::of_size(&start, next), next);
        }
        if size > INFERENCE_BYTES
            && let Some(end) = syntax.first_row_end(&head.bytes)
        {
            head.bytes.truncate(end);
            head.is_truncated = false;
        }
        Ok((head, start, rest))
    }

    /// Number of rows in a record batch, if `rows` rows take `bytes` bytes.
    pub(super) fn batch_rows(rows: usize, bytes: usize) -> usize {
        let row_bytes = (bytes as u64).div_ceil(rows.max(1) as u64).max(1);
        usize::try_from(BATCH_BYTES / row_bytes)
            .unwrap_or(BATCH_ROWS)
            .clamp(1, BATCH_ROWS)
    }
}

impl RowSyntax {
    /// The end of the first row with values, in a text that continues. `None` if it may be longer.
    fn first_row_end(self, text: &[u8]) -> Option<usize> {
        match self.format {
            Format::Csv => csv_row_end(text, self.has_header, self.delimiter),
            Format::Json => json_row_end(text),
            Format::Arrow | Format::Parquet => Some(text.len()),
        }
    }
}
