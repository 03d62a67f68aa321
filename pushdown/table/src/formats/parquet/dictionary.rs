//! Bounds the size of rows whose values are in a dictionary. A few bytes of a file can refer to a long value any number of
//! times.

use bytes::{Buf as _, Bytes, buf::Reader};
use parquet::{
    basic::Type,
    column::page::{Page, PageReader as _},
    errors::Result,
    file::{
        metadata::ColumnChunkMetaData,
        reader::{ChunkReader, Length},
        serialized_reader::SerializedPageReader,
    },
};

/// Bytes per value in addition to the value itself: its offset and its validity.
const VALUE_OVERHEAD_BYTES: u64 = 5;

/// A dictionary of a column chunk.
#[derive(Debug)]
pub(super) struct Dictionary<'a> {
    /// The stored page, with its header.
    pub(super) page: Bytes,
    /// Decompressed size of all values.
    pub(super) uncompressed_bytes: u64,
    pub(super) chunk: &'a ColumnChunkMetaData,
    /// Number of values per row. For lists, it is the average and may exceed 1.
    pub(super) values_per_row: u64,
}

impl Dictionary<'_> {
    /// Size of a row of values of `value_bytes` each.
    const fn row_bytes(&self, value_bytes: u64) -> u64 {
        value_bytes
            .saturating_add(VALUE_OVERHEAD_BYTES)
            .saturating_mul(self.values_per_row)
    }

    /// Size of the longest value.
    fn longest_value_bytes(&self) -> Result<u64> {
        match self.chunk.column_type() {
            Type::BYTE_ARRAY => {}
            Type::FIXED_LEN_BYTE_ARRAY => {
                return Ok(u64::try_from(self.chunk.column_descr().type_length()).unwrap_or_default());
            }
            // An upper bound for numbers.
            _ => return Ok(16),
        }
        let chunk = DictionaryChunk {
            page: self.page.clone(),
            offset: self.chunk.byte_range().0,
        };
        let mut pages = SerializedPageReader::new(chunk.into(), self.chunk, 0, None)?;
        match pages.get_next_page()? {
            Some(Page::DictionaryPage { buf, .. }) => Ok(longest_prefixed_value(&buf)),
            _ => Ok(0),
        }
    }
}

/// Upper bound of the bytes of one row of dictionary values. The dictionaries are decoded only if the bound from their sizes
/// exceeds `budget_bytes`.
pub(super) fn max_row_bytes(dictionaries: &[Dictionary<'_>], budget_bytes: u64) -> Result<u64> {
    let sum = |values: &mut dyn Iterator<Item = u64>| values.fold(0, u64::saturating_add);
    let mut bounds = dictionaries
        .iter()
        .map(|dictionary| dictionary.row_bytes(dictionary.uncompressed_bytes));
    let bound = sum(&mut bounds);
    if bound <= budget_bytes {
        return Ok(bound);
    }
    let rows: Result<Vec<_>> = dictionaries
        .iter()
        .map(|dictionary| Ok(dictionary.row_bytes(dictionary.longest_value_bytes()?)))
        .collect();
    Ok(sum(&mut rows?.into_iter()))
}

/// The length of the longest of length-prefixed values. The decoder rejects a truncated value.
fn longest_prefixed_value(mut values: &[u8]) -> u64 {
    let mut longest = 0;
    while let Some((length, rest)) = values.split_first_chunk() {
        let length = u32::from_le_bytes(*length);
        longest = longest.max(length);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        values = rest.get(length..).unwrap_or_default();
    }
    longest.into()
}

/// A column chunk that consists of its dictionary page.
struct DictionaryChunk {
    page: Bytes,
    /// Offset of the column chunk in the file.
    offset: u64,
}

impl DictionaryChunk {
    fn bytes_from(&self, offset: u64) -> Bytes {
        let start = usize::try_from(offset.saturating_sub(self.offset)).unwrap_or(usize::MAX);
        self.page.slice(start.min(self.page.len())..)
    }
}

impl Length for DictionaryChunk {
    fn len(&self) -> u64 {
        self.offset + self.page.len() as u64
    }
}

impl ChunkReader for DictionaryChunk {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(self.bytes_from(start).reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let rest = self.bytes_from(start);
        Ok(rest.slice(..length.min(rest.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_value_is_found() {
        let values = [&[2, 0, 0, 0][..], b"ab", &[0; 4], &[3, 0, 0, 0], b"xyz"].concat();
        assert_eq!(longest_prefixed_value(&values), 3);
        assert_eq!(
            longest_prefixed_value(&values[..values.len() - 1]),
            3,
            "the claimed length"
        );
        assert_eq!(longest_prefixed_value(&values[..8]), 2);
        assert_eq!(longest_prefixed_value(&[]), 0);
    }
}
