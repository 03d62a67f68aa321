//! Looks through the headers of pages before Parquet's decoder does: it passes over the elements of a list as often as the list
//! claims, bytes or no bytes, and sets aside what a page claims to be once it is inflated.

use std::ops::Range;

use super::{
    grammar::{PAGE, member},
    thrift::{Compact, I32},
};
use crate::{Error, Result};

/// Kind of a page that is a dictionary, as the format numbers them.
const DICTIONARY: i32 = 2;

/// Checks `bytes`, which are whole pages, one behind the other: each is within them, and has at most so many bytes once it is
/// inflated. Gives the dictionaries: where each is, header and all, and the bytes that it inflates to.
pub(super) fn check(bytes: &[u8], most: u64) -> Result<Vec<(Range<usize>, u64)>> {
    let mut rest = Compact::new(bytes);
    let mut dictionaries = Vec::new();
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
        if page.kind == DICTIONARY {
            dictionaries.push((start..bytes.len() - rest.len(), page.inflated.into()));
        }
    }
    Ok(dictionaries)
}

/// A page, and its sizes in bytes.
#[derive(Debug, Default)]
struct Page {
    kind: i32,
    stored: u32,
    inflated: u32,
}

/// Reads a `PageHeader`.
fn header(bytes: &mut Compact<'_>) -> Result<Page> {
    let (mut page, mut last) = (Page::default(), 0);
    while let Some(field) = bytes.field(last)? {
        match (field.id, field.kind) {
            (1, I32) => page.kind = bytes.integer()?,
            (2, I32) => page.inflated = bytes.integer()?,
            (3, I32) => page.stored = bytes.integer()?,
            _ => member(bytes, field, PAGE)?,
        }
        last = field.id;
    }
    Ok(page)
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
        assert_eq!(check(&[], 9).unwrap(), []);
        assert_eq!(check(&[PAGE, PAGE].concat(), 9).unwrap(), []);
        let mut dictionary = PAGE.to_vec();
        dictionary[1] = 4;
        let length = PAGE.len();
        let found = check(&[PAGE, &dictionary].concat(), 9).unwrap();
        assert_eq!(found, [(length..2 * length, 9)]);
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
