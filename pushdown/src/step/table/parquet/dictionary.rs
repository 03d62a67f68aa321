//! What rows may have whose values stand in a dictionary: a few bytes of a file name a long value as often as they like.

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

/// Bytes of a value beside its own: where it starts, and whether it is there.
const PLACE: u64 = 5;

/// A dictionary's page, with its header, and the column chunk that it is of.
#[derive(Debug)]
pub(super) struct Dictionary<'a> {
    pub(super) page: Bytes,
    /// Bytes of all values, inflated.
    pub(super) inflated: u64,
    pub(super) chunk: &'a ColumnChunkMetaData,
    /// Values of a row: of a list as many as rows have on average.
    pub(super) values: u64,
}

impl Dictionary<'_> {
    /// The most bytes of a row, where each value has so many.
    const fn row(&self, value: u64) -> u64 {
        value.saturating_add(PLACE).saturating_mul(self.values)
    }

    /// Bytes of the longest value.
    fn longest(&self) -> Result<u64> {
        match self.chunk.column_type() {
            Type::BYTE_ARRAY => {}
            Type::FIXED_LEN_BYTE_ARRAY => {
                return Ok(u64::try_from(self.chunk.column_descr().type_length()).unwrap_or_default());
            }
            // Numbers.
            _ => return Ok(16),
        }
        let chunk = AtStart {
            page: self.page.clone(),
            start: self.chunk.byte_range().0,
        };
        let mut pages = SerializedPageReader::new(chunk.into(), self.chunk, 0, None)?;
        match pages.get_next_page()? {
            Some(Page::DictionaryPage { buf, .. }) => Ok(longest(&buf)),
            _ => Ok(0),
        }
    }
}

/// The most bytes that a row may have of the values in these dictionaries, where that may be more than `enough`.
pub(super) fn row(dictionaries: &[Dictionary<'_>], enough: u64) -> Result<u64> {
    let sum = |values: &mut dyn Iterator<Item = u64>| values.fold(0, u64::saturating_add);
    let most = sum(&mut dictionaries.iter().map(|of| of.row(of.inflated)));
    if most <= enough {
        return Ok(most);
    }
    let rows: Result<Vec<_>> = dictionaries.iter().map(|of| Ok(of.row(of.longest()?))).collect();
    Ok(sum(&mut rows?.into_iter()))
}

/// The longest of values that each have their length in front. One that is cut off is the decoder's to refuse.
fn longest(mut values: &[u8]) -> u64 {
    let mut longest = 0;
    while let Some((length, rest)) = values.split_first_chunk() {
        let length = u32::from_le_bytes(*length);
        longest = longest.max(length);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        values = rest.get(length..).unwrap_or_default();
    }
    longest.into()
}

/// A page as if it were the first of its column chunk.
struct AtStart {
    page: Bytes,
    /// Where the column chunk is in the file.
    start: u64,
}

impl AtStart {
    fn from(&self, at: u64) -> Bytes {
        let at = usize::try_from(at.saturating_sub(self.start)).unwrap_or(usize::MAX);
        self.page.slice(at.min(self.page.len())..)
    }
}

impl Length for AtStart {
    fn len(&self) -> u64 {
        self.start + self.page.len() as u64
    }
}

impl ChunkReader for AtStart {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(self.from(start).reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let rest = self.from(start);
        Ok(rest.slice(..length.min(rest.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_value_of_a_dictionary() {
        let values = [&[2, 0, 0, 0][..], b"ab", &[0; 4], &[3, 0, 0, 0], b"xyz"].concat();
        assert_eq!(longest(&values), 3);
        assert_eq!(longest(&values[..values.len() - 1]), 3, "as it claims");
        assert_eq!(longest(&values[..8]), 2);
        assert_eq!(longest(&[]), 0);
    }
}
