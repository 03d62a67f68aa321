//! Looks through the headers of pages before Parquet's decoder does: it passes over the elements of a list as often as the list
//! claims, bytes or no bytes, and sets aside what a page claims to be once it is inflated.

use std::ops::Range;

use bytes::Bytes;

use super::{
    grammar::{DATA_PAGE, DATA_PAGE_V2, PAGE, member},
    lz4,
    thrift::{Compact, FALSE, I32, STRUCT},
};
use crate::{Error, Result};

/// Kind of a page that is a dictionary, as the format numbers them.
const DICTIONARY: i32 = 2;

/// Checks `bytes`, which are whole pages, one behind the other: each is within them, and has at most so many bytes once it is
/// inflated.
pub(super) fn check(bytes: &[u8], most: u64) -> Result<Pages> {
    let mut rest = Compact::new(bytes);
    let mut pages = Pages::default();
    while !rest.is_empty() {
        let start = bytes.len() - rest.len();
        let page = header(&mut rest)?;
        if u64::from(page.inflated) > most {
            return Err(Error::too_large(format!(
                "a page has {} bytes once it is inflated, more than the limit of {most}",
                page.inflated
            )));
        }
        rest.pass(usize::try_from(page.stored).unwrap_or(usize::MAX))?;
        pages.values = pages.values.saturating_add(page.values.into());
        // One that is stored as it is has as many bytes as that.
        let inflated = page.inflated.max(page.stored).into();
        if page.kind == DICTIONARY {
            pages
                .dictionaries
                .push((start..bytes.len() - rest.len(), inflated));
        } else {
            pages.largest = pages.largest.max(inflated);
        }
    }
    Ok(pages)
}

/// Whole pages of the codec LZ4, each of one chunk where Hadoop has written several.
pub(super) fn with_joined_chunks(bytes: &Bytes) -> Result<Bytes> {
    let mut rest = Compact::new(bytes);
    let mut changed: Option<Vec<u8>> = None;
    while !rest.is_empty() {
        let start = bytes.len() - rest.len();
        let page = header(&mut rest)?;
        let header = bytes.len() - rest.len() - start;
        rest.pass(usize::try_from(page.stored).unwrap_or(usize::MAX))?;
        let place = start..bytes.len() - rest.len();
        let whole = lz4::Page {
            bytes: &bytes[place.clone()],
            stored: page.stored_place.clone(),
            header,
            levels: usize::try_from(page.levels).unwrap_or(usize::MAX),
            inflated: usize::try_from(page.inflated.saturating_sub(page.levels)).unwrap_or(usize::MAX),
        };
        if !page.is_plain
            && let Some(joined) = whole.joined()
        {
            changed.get_or_insert_with(|| bytes.to_vec())[place].copy_from_slice(&joined);
        }
    }
    Ok(changed.map_or_else(|| bytes.clone(), Bytes::from))
}

/// What some pages hold.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Pages {
    /// The dictionaries: where each is, header and all, and the bytes that it inflates to.
    pub(super) dictionaries: Vec<(Range<usize>, u64)>,
    /// Values of the others.
    pub(super) values: u64,
    /// Bytes that the largest of the others inflates to.
    pub(super) largest: u64,
}

/// A page, and its sizes in bytes.
#[derive(Debug, Default)]
struct Page {
    kind: i32,
    stored: u32,
    inflated: u32,
    values: u32,
    /// Where `stored` is in the header.
    stored_place: Range<usize>,
    /// Bytes of levels, which are not compressed.
    levels: u32,
    /// Whether nothing of it is compressed, whatever the codec.
    is_plain: bool,
}

/// Reads a `PageHeader`.
fn header(bytes: &mut Compact<'_>) -> Result<Page> {
    let (mut page, mut last, all) = (Page::default(), 0, bytes.len());
    while let Some(field) = bytes.field(last)? {
        match (field.id, field.kind) {
            (1, I32) => page.kind = bytes.integer()?,
            (2, I32) => page.inflated = bytes.integer()?,
            (3, I32) => {
                let start = all - bytes.len();
                page.stored = bytes.integer()?;
                page.stored_place = start..all - bytes.len();
            }
            (5, STRUCT) => data(bytes, &mut page)?,
            (8, STRUCT) => data_of_second_version(bytes, &mut page)?,
            _ => member(bytes, field, PAGE)?,
        }
        last = field.id;
    }
    Ok(page)
}

/// Reads a header of data: how many values there are.
fn data(bytes: &mut Compact<'_>, page: &mut Page) -> Result<()> {
    let mut last = 0;
    while let Some(field) = bytes.field(last)? {
        match (field.id, field.kind) {
            (1, I32) => page.values = bytes.integer()?,
            _ => member(bytes, field, DATA_PAGE)?,
        }
        last = field.id;
    }
    Ok(())
}

/// The same of the second version, which has levels apart from the values.
fn data_of_second_version(bytes: &mut Compact<'_>, page: &mut Page) -> Result<()> {
    let mut last = 0;
    while let Some(field) = bytes.field(last)? {
        match (field.id, field.kind) {
            (1, I32) => page.values = bytes.integer()?,
            (5 | 6, I32) => page.levels = page.levels.saturating_add(bytes.integer()?),
            (7, FALSE) => page.is_plain = true,
            _ => member(bytes, field, DATA_PAGE_V2)?,
        }
        last = field.id;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    /// A data page of three bytes, nine once it is inflated, with statistics.
    const PAGE: &[u8] = &[
        0x15, 0, 0x15, 18, 0x15, 6, 0x2c, 0x15, 2, 0x15, 0, 0x15, 0, 0x15, 0, 0x1c, 0x18, 1, b'z', 0x18, 1,
        b'a', 0, 0, 0, 1, 2, 3,
    ];

    fn error(bytes: &[u8], most: u64) -> (ErrorKind, String) {
        let error = check(bytes, most).unwrap_err();
        (error.kind(), error.to_string())
    }

    #[test]
    fn pages_follow_each_other() {
        assert_eq!(check(&[], 9).unwrap(), Pages::default());
        let two = check(&[PAGE, PAGE].concat(), 9).unwrap();
        assert_eq!((two.values, two.largest, two.dictionaries), (2, 9, vec![]));
        let mut dictionary = PAGE.to_vec();
        dictionary[1] = 4;
        let length = PAGE.len();
        let found = check(&[PAGE, &dictionary].concat(), 9).unwrap();
        assert_eq!(found.dictionaries, [(length..2 * length, 9)]);
        for length in 1..PAGE.len() {
            assert_eq!(error(&PAGE[..length], 9).0, ErrorKind::Undecodable, "{length}");
        }
        let (kind, says) = error(PAGE, 8);
        assert_eq!(kind, ErrorKind::TooLarge);
        assert!(says.contains("a page has 9 bytes once it is inflated"), "{says}");
    }

    /// The decoder would pass over two thousand million numbers that are not there.
    #[test]
    fn lists_without_an_end_are_malformed() {
        // Field 9: a list of doubles.
        let list = [
            0x15, 0, 0x15, 0, 0x15, 0, 0x69, 0xf7, 0xff, 0xff, 0xff, 0xff, 0x07,
        ];
        let (kind, says) = error(&list, 9);
        assert_eq!(kind, ErrorKind::Undecodable);
        assert!(says.contains("a list of 2147483647 elements"), "{says}");
    }

    #[test]
    fn fields_have_the_kinds_of_the_format() {
        for header in [
            &[0x16, 0][..],
            &[0x15, 0, 0x15, 0, 0x15, 0, 0x25, 2],
            &[0x15, 0, 0x15, 0, 0x15, 0, 0x2c, 0x16, 2],
            &[0x15, 0, 0x15, 0, 0x15, 0, 0x2c, 0x5c, 0x15, 0],
        ] {
            let (_, says) = error(header, 9);
            assert!(says.contains("expected it as the format has it"), "{says}");
        }
        assert!(error(&[0x15, 0, 0x15, 1], 9).1.contains("the number -1"));
    }
}
