//! Footers that one reader has read and the next one need not read.

use std::sync::Arc;

use crate::{
    objects::Objects,
    store::{ObjectEnd, StoredTable},
};

/// The most bytes of all footers that are handed on; those of later objects are read again.
const MAX_BYTES: u64 = 256 << 20;

/// What a [`TableReader`](super::TableReader) has read of the ends of its objects, for another reader of the same objects.
///
/// A reader that is [built with it](crate::reader::PushdownReaderBuilder::footers) requests no footer again. It reads the same versions: an
/// object replaced since ends its stream with an error, unless all of the object is known, whose rows are those of before. It has up to 64 KiB of each object, or a longer footer, and 256 MiB at most.
#[derive(Debug, Clone)]
pub struct Footers(Arc<Known>);

#[derive(Debug)]
struct Known {
    /// The digest of the data set.
    digest: String,
    /// By object, as far as they are known.
    ends: Vec<Option<ObjectEnd>>,
}

impl Footers {
    /// The footers that these tables, the objects of a data set, have read.
    pub(super) fn new(objects: &Objects, tables: &[StoredTable]) -> Self {
        let mut left = MAX_BYTES;
        let end = |table: &StoredTable| {
            let end = table.end()?;
            left = left.checked_sub(end.len())?;
            Some(end)
        };
        Self(Arc::new(Known {
            digest: objects.digest().to_owned(),
            ends: tables.iter().map(end).collect(),
        }))
    }

    /// The end of an object of this data set.
    pub(crate) fn end(&self, objects: &Objects, object: usize) -> Option<ObjectEnd> {
        let ends = &self.0.ends;
        let is_same = self.0.digest == objects.digest();
        ends.get(object).filter(|_| is_same)?.clone()
    }
}
