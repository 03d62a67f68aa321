//! What a directory entry and a local header have in common.

use super::fields::Fields;
use crate::{
    ShardError,
    name::{checked_name, quoted},
};

/// Compression method of members that are stored as they are.
const STORED: u16 = 0;
/// Bits of the flags: the member, or the directory, is encrypted.
const ENCRYPTED: u16 = 1 << 0 | 1 << 6 | 1 << 13;
/// Bit of the flags: sizes follow the content instead of being in the header.
const SIZES_AFTER_CONTENT: u16 = 1 << 3;
/// Bit of the flags: the content is a patch.
const PATCH: u16 = 1 << 5;
/// Bit of the flags: the name is UTF-8.
const UTF_8: u16 = 1 << 11;
/// Extra field with sizes of 64 bits.
const ZIP64_ID: u16 = 0x0001;
/// Extra field of Info-ZIP with the name in UTF-8, after a version and a checksum.
const UNICODE_PATH_ID: u16 = 0x7075;
const UNICODE_PATH_HEAD_BYTES: usize = 5;

/// The common fields of a directory entry and a local header.
#[derive(Debug, Clone, Copy)]
pub(super) struct File<'a> {
    pub(super) flags: u16,
    pub(super) method: u16,
    pub(super) compressed_bytes: u32,
    pub(super) bytes: u32,
    pub(super) name: &'a [u8],
    pub(super) extra: &'a [u8],
}

/// A file that is stored as it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredFile<'a> {
    pub(super) name: &'a str,
    pub(super) bytes: u64,
    /// Whether the sizes of a local header may be 0, since they follow the content. Those of the directory are right.
    pub(super) has_sizes_after_content: bool,
    /// Where its local header begins, by the directory.
    pub(super) offset: u64,
}

impl<'a> File<'a> {
    /// The stored file of this record, which begins at byte `at` and has this offset of the local header. An error for anything
    /// else.
    pub(super) fn stored(&self, at: u64, offset: u32) -> Result<StoredFile<'a>, ShardError> {
        let name = self.stored_name(at)?;
        let invalid = |reason: &str| ShardError::InvalidHeader {
            offset: at,
            reason: reason.to_owned(),
        };
        let [bytes, compressed_bytes, offset] = self
            .long_numbers([self.bytes, self.compressed_bytes, offset])
            .ok_or_else(|| invalid("expected a zip64 field with the numbers of 64 bits, found none"))?;
        if bytes != compressed_bytes {
            return Err(invalid("expected one size of a stored file, found two"));
        }
        Ok(StoredFile {
            name,
            bytes,
            has_sizes_after_content: self.flags & SIZES_AFTER_CONTENT != 0,
            offset,
        })
    }

    fn stored_name(&self, at: u64) -> Result<&'a str, ShardError> {
        let unsupported = |found| ShardError::Unsupported {
            name: quoted(self.name),
            offset: at,
            found,
        };
        if self.flags & ENCRYPTED != 0 {
            Err(unsupported("an encrypted one".to_owned()))
        } else if self.method != STORED {
            Err(unsupported(format!(
                "one that is compressed by method {}",
                self.method
            )))
        } else if self.flags & PATCH != 0 {
            Err(unsupported("a patch".to_owned()))
        } else {
            let name = self.unambiguous_name().ok_or_else(|| ShardError::InvalidName {
                name: quoted(self.name),
                reason: "expected a name that is ASCII, marked as UTF-8 or in the extra fields, and no other one beside it",
            })?;
            checked_name(name)
        }
    }

    /// The name that all readers take for the same text.
    fn unambiguous_name(&self) -> Option<&'a [u8]> {
        let is_plain = self.flags & UTF_8 != 0 || self.name.is_ascii();
        let Some(field) = extra_field(self.extra, UNICODE_PATH_ID) else {
            return is_plain.then_some(self.name);
        };
        let (head, name) = field.split_at_checked(UNICODE_PATH_HEAD_BYTES)?;
        let [version, checksum @ ..] = head.first_chunk::<UNICODE_PATH_HEAD_BYTES>()?;
        // With another checksum the field is that of an earlier name.
        let is_of_name = *version == 1 && u32::from_le_bytes(*checksum) == crc32fast::hash(self.name);
        (name == self.name || !is_plain && is_of_name).then_some(name)
    }

    /// Numbers of 32 bits, of which those that are a mark are in the zip64 field, in their order. `None` if they are not.
    fn long_numbers<const N: usize>(&self, numbers: [u32; N]) -> Option<[u64; N]> {
        let mut field = Fields(extra_field(self.extra, ZIP64_ID).unwrap_or_default());
        let mut long_numbers = [0; N];
        for (long, short) in long_numbers.iter_mut().zip(numbers) {
            *long = match short {
                u32::MAX => field.u64()?,
                short => u64::from(short),
            };
        }
        Some(long_numbers)
    }
}

/// The first extra field with this identifier.
fn extra_field(extra: &[u8], id: u16) -> Option<&[u8]> {
    let mut fields = Fields(extra);
    loop {
        let (found, length) = (fields.u16()?, fields.u16()?);
        let field = fields.bytes(usize::from(length))?;
        if found == id {
            return Some(field);
        }
    }
}
