//! Header blocks of a tar.
//!
//! They are read more strictly than by the crate `tar`, which drops the high bytes of numbers in base 256, and takes any block
//! without a known magic for one of V7.

use std::ops::Range;

use super::BLOCK;
use crate::ShardError;

const NAME: Range<usize> = 0..100;
const MODE: Range<usize> = 100..108;
const UID: Range<usize> = 108..116;
const GID: Range<usize> = 116..124;
const SIZE: Range<usize> = 124..136;
const MTIME: Range<usize> = 136..148;
const CHECKSUM: Range<usize> = 148..156;
const KIND: usize = 156;
const MAGIC: Range<usize> = 257..265;
const DEVICE_MAJOR: Range<usize> = 329..337;
const DEVICE_MINOR: Range<usize> = 337..345;
const PREFIX: Range<usize> = 345..500;

/// Magic and version of ustar and pax.
const USTAR: &[u8; 8] = b"ustar\x0000";
/// Magic and version of GNU, whose headers have times in place of the prefix.
const GNU: &[u8; 8] = b"ustar  \0";
/// The largest size in octal digits.
pub(super) const MAX_OCTAL_SIZE: u64 = (1 << 33) - 1;

/// A header block with a valid checksum and of a known format.
#[derive(Debug, Clone, Copy)]
pub(super) struct Header<'a> {
    block: &'a [u8; BLOCK],
    offset: u64,
    has_prefix: bool,
}

/// What a header is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The content describes the next file, or all of them.
    Extension(Extension),
    /// A file, a directory or something else.
    Entry(EntryKind),
}

/// Kinds of extension headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extension {
    Pax,
    GlobalPax,
    LongName,
    LongLink,
}

/// Kinds of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    File,
    Directory,
    HardLink,
    /// A symbolic link, a device or a named pipe, by its letter: what has no content.
    Special(u8),
    /// A sparse file of GNU, whose content is not stored as it is.
    Sparse,
    /// Anything else, by its letter.
    Other(u8),
}

/// The header of an entry to be written.
#[derive(Debug)]
pub(super) struct NewHeader<'a> {
    pub(super) prefix: &'a [u8],
    pub(super) name: &'a [u8],
    pub(super) kind: u8,
    /// At most [`MAX_OCTAL_SIZE`].
    pub(super) size: u64,
}

impl<'a> Header<'a> {
    /// Checks the block at byte `offset`.
    pub(super) fn parse(block: &'a [u8; BLOCK], offset: u64) -> Result<Self, ShardError> {
        let invalid = |reason| ShardError::InvalidHeader { offset, reason };
        let (unsigned, signed) = checksums(block);
        match octal(&block[CHECKSUM]) {
            Some(found) if found == unsigned || i64::try_from(found) == Ok(signed) => {}
            Some(found) => {
                return Err(invalid(format!(
                    "expected the checksum {unsigned}, found {found}"
                )));
            }
            None => {
                return Err(invalid(
                    "expected a checksum in octal digits, found other bytes".to_owned(),
                ));
            }
        }
        let magic = &block[MAGIC];
        let has_prefix = magic.starts_with(&USTAR[..6]);
        if !has_prefix && magic != GNU && magic != [0; 8] {
            let found = magic.escape_ascii();
            return Err(invalid(format!(
                "expected the format ustar, GNU or V7, found `{found}`"
            )));
        }
        Ok(Self {
            block,
            offset,
            has_prefix,
        })
    }

    pub(super) const fn kind(&self) -> Kind {
        match self.block[KIND] {
            // 7: a file in one piece on disk.
            b'0' | b'7' | 0 => Kind::Entry(EntryKind::File),
            b'5' => Kind::Entry(EntryKind::Directory),
            b'1' => Kind::Entry(EntryKind::HardLink),
            letter @ (b'2' | b'3' | b'4' | b'6') => Kind::Entry(EntryKind::Special(letter)),
            b'S' => Kind::Entry(EntryKind::Sparse),
            // X: of Solaris.
            b'x' | b'X' => Kind::Extension(Extension::Pax),
            b'g' => Kind::Extension(Extension::GlobalPax),
            b'L' => Kind::Extension(Extension::LongName),
            b'K' => Kind::Extension(Extension::LongLink),
            other => Kind::Entry(EntryKind::Other(other)),
        }
    }

    /// The name, unless an extension header has it.
    pub(super) fn name(&self) -> Vec<u8> {
        let name = until_nul(&self.block[NAME]);
        let prefix = if self.has_prefix {
            until_nul(&self.block[PREFIX])
        } else {
            &[]
        };
        if prefix.is_empty() {
            name.to_vec()
        } else {
            [prefix, b"/", name].concat()
        }
    }

    /// The size of the content, unless an extension header has it. `None` for a field of spaces, which GNU tar refuses; NULs are 0.
    pub(super) fn size(&self) -> Result<Option<u64>, ShardError> {
        let field = &self.block[SIZE];
        if field.iter().all(|byte| is_blank(*byte)) {
            return Ok(field.contains(&0).then_some(0));
        }
        let size = match field.split_first() {
            Some((0x80, digits)) => base_256(digits),
            _ => octal(field),
        };
        size.map(Some).ok_or_else(|| ShardError::InvalidHeader {
            offset: self.offset,
            reason: format!(
                "expected a size in octal digits or base 256, below 2^64, found `{}`",
                field.escape_ascii()
            ),
        })
    }
}

impl NewHeader<'_> {
    /// The block: ustar, without owner, time or devices.
    pub(super) fn to_block(&self) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        let size = format!("{:011o}", self.size);
        let fields: [(Range<usize>, &[u8]); 11] = [
            (NAME, self.name),
            (MODE, b"0000644"),
            (UID, b"0000000"),
            (GID, b"0000000"),
            (SIZE, size.as_bytes()),
            (MTIME, b"00000000000"),
            (KIND..KIND + 1, &[self.kind]),
            (MAGIC, USTAR),
            (DEVICE_MAJOR, b"0000000"),
            (DEVICE_MINOR, b"0000000"),
            (PREFIX, self.prefix),
        ];
        for (place, value) in fields {
            fill(&mut block[place], value);
        }
        let (checksum, _) = checksums(&block);
        fill(&mut block[CHECKSUM], format!("{checksum:06o}\0 ").as_bytes());
        block
    }
}

/// What a header with this letter is about, for a message. It is no regular file.
pub(super) fn describe(kind: u8) -> String {
    let description = match kind {
        b'1' => "a hard link",
        b'2' => "a symbolic link",
        b'3' => "a character device",
        b'4' => "a block device",
        b'6' => "a named pipe",
        b'D' => "a list of a folder",
        b'M' => "the rest of a file of another volume",
        b'V' => "a volume label",
        other => return format!("an entry of type `{}`", other.escape_ascii()),
    };
    description.to_owned()
}

/// Splits a name into prefix and name of a ustar header. `None` if it does not fit.
pub(super) fn split_ustar_name(name: &str) -> Option<(&[u8], &[u8])> {
    let bytes = name.as_bytes();
    let Some(first_slash) = bytes.len().checked_sub(NAME.len() + 1) else {
        return Some((&[], bytes));
    };
    // The prefix has a byte, and the name after the slash, too.
    let mut places = first_slash.max(1)..=PREFIX.len().min(bytes.len() - 2);
    let slash = places.find(|place| bytes[*place] == b'/')?;
    Some((&bytes[..slash], &bytes[slash + 1..]))
}

fn fill(place: &mut [u8], value: &[u8]) {
    place.iter_mut().zip(value).for_each(|(to, from)| *to = *from);
}

/// The sums of all bytes, with spaces in place of the checksum: of unsigned bytes, and of signed bytes as in old archives.
fn checksums(block: &[u8; BLOCK]) -> (u64, i64) {
    let counted = block.iter().enumerate().map(
        |(index, byte)| {
            if CHECKSUM.contains(&index) { b' ' } else { *byte }
        },
    );
    counted.fold((0, 0), |(unsigned, signed), byte| {
        (unsigned + u64::from(byte), signed + i64::from(byte.cast_signed()))
    })
}

/// A text up to its first NUL.
pub(super) fn until_nul(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, 0 | b' ')
}

/// Octal digits, after spaces and before spaces or NULs.
fn octal(field: &[u8]) -> Option<u64> {
    let start = field.iter().position(|byte| *byte != b' ')?;
    let digits = &field[start..];
    let end = digits
        .iter()
        .position(|byte| is_blank(*byte))
        .unwrap_or(digits.len());
    let (digits, rest) = digits.split_at(end);
    if digits.is_empty() || !rest.iter().all(|byte| is_blank(*byte)) {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| match digit {
        b'0'..=b'7' => number.checked_mul(8)?.checked_add(u64::from(digit - b'0')),
        _ => None,
    })
}

/// Bytes of a number, the highest first.
fn base_256(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |number, digit| {
        number.checked_mul(256)?.checked_add(u64::from(*digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octal_numbers_have_digits_and_padding_only() {
        for (field, number) in [
            (&b"00000000017\0"[..], 15),
            (b"         17 ", 15),
            (b"17\0\0\0\0", 15),
            (b"777777777777", (1 << 36) - 1),
            (b"0", 0),
        ] {
            assert_eq!(octal(field), Some(number), "{}", field.escape_ascii());
        }
        for field in [
            &b""[..],
            b"\0\0",
            b"   ",
            b"8",
            b"1 2",
            b"1\x002",
            b"-1",
            b"0x1",
            b"7777777777777777777777777",
        ] {
            assert_eq!(octal(field), None, "{}", field.escape_ascii());
        }
    }

    #[test]
    fn base_256_keeps_all_bytes() {
        assert_eq!(base_256(&[0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1]), Some(0x2_0000_0001));
        assert_eq!(
            base_256(&[0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]),
            Some(u64::MAX)
        );
        assert_eq!(base_256(&[0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]), None);
    }

    #[test]
    fn both_sums_are_checksums() {
        let block = |checksum: &str| {
            let header = NewHeader {
                prefix: b"",
                name: "ä.jpg".as_bytes(),
                kind: b'0',
                size: 1,
            };
            let mut block = header.to_block();
            if !checksum.is_empty() {
                fill(&mut block[CHECKSUM], checksum.as_bytes());
            }
            block
        };
        let (unsigned, signed) = checksums(&block(""));
        assert_eq!(unsigned, signed.cast_unsigned() + 512, "two bytes are negative");
        for checksum in ["", &format!("{signed:06o}\0 "), &format!("{unsigned:07o}\0")] {
            assert!(Header::parse(&block(checksum), 0).is_ok(), "{checksum}");
        }
        for checksum in ["        ", "0000000\0", &format!("{:06o}\0 ", unsigned + 1)] {
            assert!(Header::parse(&block(checksum), 0).is_err(), "{checksum}");
        }
    }

    #[test]
    fn long_names_are_split_at_a_slash_where_both_parts_fit() {
        let split = |name: &str| split_ustar_name(name).map(|(prefix, name)| (prefix.len(), name.len()));
        let name = |prefix: usize, name: usize| format!("{}/{}", "p".repeat(prefix), "n".repeat(name));
        assert_eq!(split(&"a".repeat(100)), Some((0, 100)));
        assert_eq!(split(&"a".repeat(101)), None);
        assert_eq!(split(&name(155, 100)), Some((155, 100)));
        assert_eq!(split(&name(156, 100)), None);
        assert_eq!(split(&name(155, 101)), None);
        assert_eq!(split(&name(1, 100)), Some((1, 100)));
        assert_eq!(split(&format!("/{}", "a".repeat(100))), None);
        assert_eq!(split(&format!("{}/", "a".repeat(100))), None);
        assert_eq!(split(&format!("a/b/{}", "c".repeat(98))), Some((1, 100)));
    }
}
