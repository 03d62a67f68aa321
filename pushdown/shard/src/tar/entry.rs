//! The headers of one entry.

use super::{
    BLOCK,
    header::{EntryKind, Extension, Header, describe},
    pax::Pax,
};
use crate::{
    Member, MemberRange, ShardError,
    limits::{MAX_EXTENSION_BYTES, MAX_HEADER_BYTES},
    name::{checked_name, quoted},
};

/// The headers of an entry so far.
#[derive(Debug, Default)]
pub(super) struct EntryHeaders {
    offset: u64,
    bytes: u32,
    pax: Option<Pax>,
    long_name: Option<Vec<u8>>,
}

// === impl EntryHeaders ===

impl EntryHeaders {
    pub(super) const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Adds the block at byte `offset`.
    pub(super) fn add_block(&mut self, offset: u64) -> Result<(), ShardError> {
        if self.is_empty() {
            self.offset = offset;
        }
        self.add_bytes(BLOCK)
    }

    /// Adds the padded content of an extension header.
    pub(super) fn add_bytes(&mut self, bytes: usize) -> Result<(), ShardError> {
        let total = u32::try_from(bytes)
            .ok()
            .and_then(|bytes| self.bytes.checked_add(bytes));
        match total {
            Some(total) if total <= MAX_HEADER_BYTES => {
                self.bytes = total;
                Ok(())
            }
            _ => Err(ShardError::TooLarge {
                what: "bytes of headers of an entry",
                limit: u64::from(MAX_HEADER_BYTES),
                offset: self.offset,
            }),
        }
    }

    /// Adds the content of an extension header, which begins at byte `offset`.
    pub(super) fn add_extension(
        &mut self,
        kind: Extension,
        content: &[u8],
        offset: u64,
    ) -> Result<(), ShardError> {
        let is_second = match kind {
            Extension::Pax => self.pax.replace(Pax::parse(content, offset)?).is_some(),
            Extension::LongName => self.long_name.replace(without_nuls(content).to_vec()).is_some(),
            // The name of a link's target: the link is refused.
            Extension::LongLink => false,
            Extension::GlobalPax => return check_global(&Pax::parse(content, offset)?, offset),
        };
        if is_second {
            return Err(ShardError::InvalidHeader {
                offset,
                reason: "expected one extension header of a kind before a file, found two".to_owned(),
            });
        }
        Ok(())
    }

    /// The member with these headers, of which `header` is the last. `None` for a directory.
    pub(super) fn into_member(
        self,
        kind: EntryKind,
        header: &Header<'_>,
    ) -> Result<Option<Member>, ShardError> {
        let offset = self.offset;
        let invalid = |reason| ShardError::InvalidHeader { offset, reason };
        let pax = self.pax.unwrap_or_default();
        let name = match (pax.path, self.long_name) {
            (Some(_), Some(_)) => {
                return Err(invalid(
                    "expected one long name, found one of pax and one of GNU".to_owned(),
                ));
            }
            (Some(name), None) | (None, Some(name)) => name,
            (None, None) => header.name(),
        };
        let unsupported = |found| ShardError::Unsupported {
            name: quoted(&name),
            offset,
            found,
        };
        if pax.is_sparse {
            return Err(unsupported("a sparse file".to_owned()));
        }
        let is_directory = match kind {
            EntryKind::File => name.ends_with(b"/"),
            EntryKind::Directory => true,
            EntryKind::Other(kind) => return Err(unsupported(describe(kind))),
        };
        let size = match (pax.size, header.size()?) {
            (Some(size), None | Some(0)) | (None, Some(size)) => size,
            (Some(size), Some(found)) if found == size => size,
            (Some(size), Some(found)) => {
                return Err(invalid(format!(
                    "expected the size of the pax header, {size}, or 0, found {found}"
                )));
            }
            (None, None) => return Err(invalid("expected a size, found a blank field".to_owned())),
        };
        if is_directory {
            return match size {
                0 => Ok(None),
                _ => Err(invalid(format!("expected a directory of 0 bytes, found {size}"))),
            };
        }
        Ok(Some(Member {
            name: checked_name(&name)?.to_owned(),
            range: MemberRange::new(offset, self.bytes, size)?,
        }))
    }
}

/// The size of the content of an extension header, if it is within the limit.
pub(super) fn checked_extension_bytes(size: u64, offset: u64) -> Result<usize, ShardError> {
    u32::try_from(size)
        .ok()
        .filter(|bytes| *bytes <= MAX_EXTENSION_BYTES)
        .and_then(|bytes| usize::try_from(bytes).ok())
        .ok_or_else(|| ShardError::TooLarge {
            what: "bytes of an extension header",
            limit: u64::from(MAX_EXTENSION_BYTES),
            offset,
        })
}

/// Refuses a global header that changes where all members are.
fn check_global(pax: &Pax, offset: u64) -> Result<(), ShardError> {
    if *pax == Pax::default() {
        return Ok(());
    }
    Err(ShardError::InvalidHeader {
        offset,
        reason: "expected a global pax header without path, size and sparse map, found one".to_owned(),
    })
}

/// A name of GNU without the NULs at its end.
fn without_nuls(content: &[u8]) -> &[u8] {
    match content.iter().rposition(|byte| *byte != 0) {
        Some(last) => &content[..=last],
        None => &[],
    }
}
