//! Checks the headers of pages before Parquet's decoder reads them. The decoder skips as many list elements as a list claims,
//! even without bytes for them, and allocates the decompressed size that a page claims.

use std::ops::Range;

use bytes::Bytes;

use super::{
    lz4::Lz4Page,
    structures::{DATA_PAGE_HEADER, DATA_PAGE_HEADER_V2, PAGE_HEADER, skip_field},
    thrift::{CompactReader, FALSE, I32, STRUCT},
};
use pushdown_core::{Error, Result};

/// `PageType.DICTIONARY_PAGE` of the format.
const DICTIONARY_PAGE: i32 = 2;

/// Checks consecutive pages: each ends within `bytes`, and has at most `max_page_bytes` when decompressed.
pub(super) fn inspect_pages(bytes: &[u8], max_page_bytes: u64) -> Result<PageSummary> {
    let mut rest = CompactReader::new(bytes);
    let mut pages = PageSummary::default();
    while !rest.is_empty() {
        let start = bytes.len() - rest.len();
        let page = read_header(&mut rest)?;
        if u64::from(page.uncompressed_bytes) > max_page_bytes {
            return Err(Error::too_large(format!(
                "Parquet page too large: expected at most {max_page_bytes} decompressed bytes, found {}",
                page.uncompressed_bytes
            )));
        }
        rest.skip_bytes(usize::try_from(page.stored_bytes).unwrap_or(usize::MAX))?;
        pages.values = pages.values.saturating_add(page.values.into());
        // An uncompressed page is as large as its stored bytes, even if its header claims less.
        let uncompressed_bytes = page.uncompressed_bytes.max(page.stored_bytes).into();
        if page.kind == DICTIONARY_PAGE {
            pages.dictionaries.push(DictionaryRange {
                range: start..bytes.len() - rest.len(),
                uncompressed_bytes,
            });
        } else {
            pages.largest_bytes = pages.largest_bytes.max(uncompressed_bytes);
        }
    }
    Ok(pages)
}

/// Merges the chunks of each LZ4 page into one, if Hadoop wrote several.
pub(super) fn merge_lz4_chunks(bytes: &Bytes) -> Result<Bytes> {
    let mut rest = CompactReader::new(bytes);
    let mut changed: Option<Vec<u8>> = None;
    while !rest.is_empty() {
        let start = bytes.len() - rest.len();
        let page = read_header(&mut rest)?;
        let header_bytes = bytes.len() - rest.len() - start;
        rest.skip_bytes(usize::try_from(page.stored_bytes).unwrap_or(usize::MAX))?;
        let range = start..bytes.len() - rest.len();
        let values_bytes = page.uncompressed_bytes.saturating_sub(page.levels_bytes);
        let lz4_page = Lz4Page {
            bytes: &bytes[range.clone()],
            stored_bytes_field: page.stored_bytes_field.clone(),
            header_bytes,
            levels_bytes: usize::try_from(page.levels_bytes).unwrap_or(usize::MAX),
            values_bytes: usize::try_from(values_bytes).unwrap_or(usize::MAX),
        };
        if !page.is_uncompressed
            && let Some(merged) = lz4_page.merge_chunks()
        {
            changed.get_or_insert_with(|| bytes.to_vec())[range].copy_from_slice(&merged);
        }
    }
    Ok(changed.map_or_else(|| bytes.clone(), Bytes::from))
}

/// Totals of consecutive pages.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PageSummary {
    pub(super) dictionaries: Vec<DictionaryRange>,
    /// Number of values in the data pages.
    pub(super) values: u64,
    /// Decompressed size of the largest data page.
    pub(super) largest_bytes: u64,
}

/// A dictionary page within consecutive pages.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DictionaryRange {
    /// The stored page, with its header.
    pub(super) range: Range<usize>,
    pub(super) uncompressed_bytes: u64,
}

/// The fields of a `PageHeader` that matter for checks.
#[derive(Debug, Default)]
struct PageHeader {
    kind: i32,
    /// Size of the page without its header, as stored.
    stored_bytes: u32,
    uncompressed_bytes: u32,
    values: u32,
    /// Range of the field `stored_bytes` in the header.
    stored_bytes_field: Range<usize>,
    /// Size of the levels. They are not compressed.
    levels_bytes: u32,
    /// Whether the page is stored without compression, regardless of the codec.
    is_uncompressed: bool,
}

/// Reads a `PageHeader`.
fn read_header(bytes: &mut CompactReader<'_>) -> Result<PageHeader> {
    let (mut page, mut last_id, total) = (PageHeader::default(), 0, bytes.len());
    while let Some(field) = bytes.field(last_id)? {
        match (field.id, field.kind) {
            (1, I32) => page.kind = bytes.integer()?,
            (2, I32) => page.uncompressed_bytes = bytes.integer()?,
            (3, I32) => {
                let start = total - bytes.len();
                page.stored_bytes = bytes.integer()?;
                page.stored_bytes_field = start..total - bytes.len();
            }
            (5, STRUCT) => read_data_header(bytes, &mut page)?,
            (8, STRUCT) => read_data_header_v2(bytes, &mut page)?,
            _ => skip_field(bytes, field, PAGE_HEADER)?,
        }
        last_id = field.id;
    }
    Ok(page)
}

/// Reads a `DataPageHeader`.
fn read_data_header(bytes: &mut CompactReader<'_>, page: &mut PageHeader) -> Result<()> {
    let mut last_id = 0;
    while let Some(field) = bytes.field(last_id)? {
        match (field.id, field.kind) {
            (1, I32) => page.values = bytes.integer()?,
            _ => skip_field(bytes, field, DATA_PAGE_HEADER)?,
        }
        last_id = field.id;
    }
    Ok(())
}

/// Reads a `DataPageHeaderV2`, whose levels are separate from the values.
fn read_data_header_v2(bytes: &mut CompactReader<'_>, page: &mut PageHeader) -> Result<()> {
    let mut last_id = 0;
    while let Some(field) = bytes.field(last_id)? {
        match (field.id, field.kind) {
            (1, I32) => page.values = bytes.integer()?,
            (5 | 6, I32) => page.levels_bytes = page.levels_bytes.saturating_add(bytes.integer()?),
            (7, FALSE) => page.is_uncompressed = true,
            _ => skip_field(bytes, field, DATA_PAGE_HEADER_V2)?,
        }
        last_id = field.id;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pushdown_core::ErrorKind;

    /// A data page with statistics: three stored bytes, nine decompressed.
    const PAGE: &[u8] = &[
        0x15, 0, 0x15, 18, 0x15, 6, 0x2c, 0x15, 2, 0x15, 0, 0x15, 0, 0x15, 0, 0x1c, 0x18, 1, b'z', 0x18, 1,
        b'a', 0, 0, 0, 1, 2, 3,
    ];

    fn error(bytes: &[u8], max_page_bytes: u64) -> (ErrorKind, String) {
        let error = inspect_pages(bytes, max_page_bytes).unwrap_err();
        (error.kind(), error.to_string())
    }

    #[test]
    fn consecutive_pages_are_summed_up() {
        assert_eq!(inspect_pages(&[], 9).unwrap(), PageSummary::default());
        let two = inspect_pages(&[PAGE, PAGE].concat(), 9).unwrap();
        assert_eq!((two.values, two.largest_bytes, two.dictionaries), (2, 9, vec![]));
        let mut dictionary = PAGE.to_vec();
        dictionary[1] = 4;
        let length = PAGE.len();
        let pages = inspect_pages(&[PAGE, &dictionary].concat(), 9).unwrap();
        let expected = DictionaryRange {
            range: length..2 * length,
            uncompressed_bytes: 9,
        };
        assert_eq!(pages.dictionaries, [expected]);
        for length in 1..PAGE.len() {
            assert_eq!(error(&PAGE[..length], 9).0, ErrorKind::Undecodable, "{length}");
        }
        let (kind, message) = error(PAGE, 8);
        assert_eq!(kind, ErrorKind::TooLarge);
        assert!(
            message.contains("at most 8 decompressed bytes, found 9"),
            "{message}"
        );
    }

    /// The decoder would skip 2^31 - 1 numbers without bytes for them.
    #[test]
    fn lists_longer_than_their_bytes_are_malformed() {
        // Field 9: a list of doubles.
        let list = [
            0x15, 0, 0x15, 0, 0x15, 0, 0x69, 0xf7, 0xff, 0xff, 0xff, 0xff, 0x07,
        ];
        let (kind, message) = error(&list, 9);
        assert_eq!(kind, ErrorKind::Undecodable);
        assert!(message.contains("found 2147483647"), "{message}");
    }

    #[test]
    fn field_kinds_match_the_format() {
        for header in [
            &[0x16, 0][..],
            &[0x15, 0, 0x15, 0, 0x15, 0, 0x25, 2],
            &[0x15, 0, 0x15, 0, 0x15, 0, 0x2c, 0x16, 2],
            &[0x15, 0, 0x15, 0, 0x15, 0, 0x2c, 0x5c, 0x15, 0],
        ] {
            let (_, message) = error(header, 9);
            assert!(
                message.contains("expected the kind that the format defines"),
                "{message}"
            );
        }
        assert!(error(&[0x15, 0, 0x15, 1], 9).1.contains("the number -1"));
    }
}
