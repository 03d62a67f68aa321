//! The headers of one entry.

use super::{
    BLOCK,
    header::{EntryKind, Extension, Header, describe, until_nul},
    pax::Pax,
};
use crate::{
    MemberRange, ShardError,
    limits::{MAX_EXTENSION_BYTES, MAX_HEADER_BYTES},
    name::{checked_name, left_out_name, quoted},
};

/// The headers of an entry so far.
///
/// Programs disagree on extension headers that contradict each other: in GNU tar the last one counts, and a pax header before a long
/// name; in Python's `tarfile` the first one counts, whatever it is. What both say is taken.
#[derive(Debug, Default)]
pub(super) struct EntryHeaders {
    offset: u64,
    bytes: u32,
    first: Extended,
    last_pax: Pax,
    last_long_name: Option<Vec<u8>>,
    is_sparse: bool,
}

/// What extension headers say about the place of an entry.
#[derive(Debug, Default)]
struct Extended {
    name: Option<Vec<u8>>,
    size: Option<u64>,
}

/// An entry: its place, and what it is.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    pub(super) range: MemberRange,
    pub(super) content: EntryContent,
}

#[derive(Debug)]
pub(super) enum EntryContent {
    /// A file that is a member, with its name.
    Member(String),
    Folder,
    /// For this reason.
    LeftOut(String),
}

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
        match kind {
            Extension::Pax => {
                let pax = Pax::parse(content, offset)?;
                self.first.add(pax.path.as_deref(), pax.size);
                self.is_sparse |= pax.is_sparse;
                self.last_pax = pax;
            }
            Extension::LongName => {
                let name = until_nul(content);
                self.first.add(Some(name), None);
                self.last_long_name = Some(name.to_vec());
            }
            // The name of a link's target: the link is left out.
            Extension::LongLink => {}
            Extension::GlobalPax => check_global(&Pax::parse(content, offset)?, offset)?,
        }
        Ok(())
    }

    /// The entry with these headers, of which `header` is the last.
    pub(super) fn into_entry(self, kind: EntryKind, header: &Header<'_>) -> Result<Entry, ShardError> {
        let offset = self.offset;
        let invalid = |reason| ShardError::InvalidHeader { offset, reason };
        let last_name = self.last_pax.path.or(self.last_long_name);
        if last_name != self.first.name {
            let text = |name: Option<Vec<u8>>| quoted(&name.unwrap_or_else(|| header.name()));
            return Err(invalid(format!(
                "expected one name in the extension headers of an entry, found `{}` and `{}`",
                text(self.first.name),
                text(last_name)
            )));
        }
        let name = last_name.unwrap_or_else(|| header.name());
        let unsupported = |found| ShardError::Unsupported {
            name: quoted(&name),
            offset,
            found,
        };
        let pax_size = self.last_pax.size;
        if pax_size != self.first.size {
            return Err(unsupported("one with two sizes in its pax headers".to_owned()));
        }
        if self.is_sparse {
            return Err(unsupported("a sparse file".to_owned()));
        }
        let header_size = header.size()?;
        let blank = || invalid("expected a size, found a blank field".to_owned());
        let size = || match (pax_size, header_size) {
            (Some(size), None | Some(0)) | (None, Some(size)) => Ok(size),
            (Some(size), Some(found)) if found == size => Ok(size),
            (Some(size), Some(found)) => Err(invalid(format!(
                "expected the size of the pax header, {size}, or 0, found {found}"
            ))),
            (None, None) => Err(blank()),
        };
        // No content follows a folder or a hard link, whatever its header says; a size in a pax header, and one of other entries without
        // a content, is passed over by GNU tar alone.
        let without_content = |what: &str, size: u64| match size {
            0 => Ok(0),
            size => Err(unsupported(format!("{what} of {size} bytes"))),
        };
        let (size, content) = match kind {
            EntryKind::File if name.ends_with(b"/") => match size()? {
                0 => (0, EntryContent::Folder),
                found => return Err(invalid(format!("expected a directory of 0 bytes, found {found}"))),
            },
            EntryKind::File => {
                let content = match left_out_name(&name) {
                    Some(reason) => EntryContent::LeftOut(reason.to_owned()),
                    None => EntryContent::Member(checked_name(&name)?.to_owned()),
                };
                (size()?, content)
            }
            EntryKind::Directory => {
                header_size.ok_or_else(blank)?;
                let size = without_content("a folder", pax_size.unwrap_or_default())?;
                (size, EntryContent::Folder)
            }
            EntryKind::HardLink => {
                let size = without_content("a hard link", pax_size.unwrap_or_default())?;
                (size, EntryContent::LeftOut(describe(b'1')))
            }
            EntryKind::Special(letter) => {
                let what = describe(letter);
                (without_content(&what, size()?)?, EntryContent::LeftOut(what))
            }
            EntryKind::Sparse => return Err(unsupported("a sparse file".to_owned())),
            EntryKind::Other(letter) => (size()?, EntryContent::LeftOut(describe(letter))),
        };
        let range = MemberRange::new(offset, self.bytes, size)?;
        Ok(Entry { name, range, content })
    }
}

impl Extended {
    /// Adds what the next extension header says, unless an earlier one says it.
    fn add(&mut self, name: Option<&[u8]>, size: Option<u64>) {
        if self.name.is_none() {
            self.name = name.map(<[u8]>::to_vec);
        }
        self.size = self.size.or(size);
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
