//! The objects of a data set, in their order, as a compact list.

mod builder;
mod columns;
mod digest;
mod file;
mod members;

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use arrow_array::{Array as _, LargeStringArray, UInt64Array};
use pushdown::wire::{hash_fraction, member_hash, object_hash};

pub(crate) use builder::ObjectsBuilder;
pub use members::MemberRef;
use members::Members;

/// An object of a data set, or a member of a shard: an element of [`Objects`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object<'a> {
    /// The key of the object or of the shard, not percent-encoded.
    pub key: &'a str,
    /// Stored size in bytes, if known: of the member, if there is one.
    pub bytes: Option<u64>,
    /// The ETag of the object from the listing, or of the indexed shard.
    pub etag: Option<&'a str>,
    /// The member, if the sample is a member of a shard and not the whole object.
    pub member: Option<MemberRef<'a>>,
}

/// The objects of a data set, in the order of its samples, all in one bucket. A sample is a whole object, or a member of a shard.
///
/// The list consists of Arrow arrays: a million keys of 40 bytes take 56 MB, and with ETags 98 MB. Of samples in shards, the keys and ETags
/// of the shards are stored once: a million members with names of 20 bytes take 52 MB. Clones share them. It has no credentials.
/// [`Store::list_objects`](crate::store::Store::list_objects) lists a prefix; [`ShardIndex::samples`](crate::shards::ShardIndex::samples) selects members
/// of shards; [`save`](Self::save) and [`load`](Self::load) keep a list for later.
#[derive(Clone)]
pub struct Objects(Arc<List>);

struct List {
    bucket: Arc<str>,
    /// Of the objects; of a list with members, of its shards, each of which stands once.
    keys: LargeStringArray,
    /// Stored sizes of the same objects; unknown for shards.
    bytes: UInt64Array,
    /// ETags of the same objects.
    etags: LargeStringArray,
    /// The samples, unless they are the objects themselves.
    members: Option<Members>,
    /// Computed when first needed, or from a file.
    digest: OnceLock<String>,
}

impl Objects {
    /// Objects of which only the keys are known.
    pub fn from_keys(bucket: impl Into<Arc<str>>, keys: impl IntoIterator<Item: AsRef<str>>) -> Self {
        Self::from_key_column(bucket.into(), key_column(keys))
    }

    /// These objects, in this order.
    pub fn from_objects<'a>(
        bucket: impl Into<Arc<str>>,
        objects: impl IntoIterator<Item = Object<'a>>,
    ) -> Self {
        let mut builder = ObjectsBuilder::default();
        builder.extend(objects);
        builder.finish(bucket.into())
    }

    pub(crate) fn from_key_column(bucket: Arc<str>, keys: LargeStringArray) -> Self {
        let count = keys.len();
        Self(Arc::new(List {
            bucket,
            keys,
            bytes: UInt64Array::new_null(count),
            etags: LargeStringArray::new_null(count),
            members: None,
            digest: OnceLock::new(),
        }))
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        match &self.0.members {
            Some(members) => members.len(),
            None => self.0.keys.len(),
        }
    }

    /// Number of objects, or in a list with members of different shards.
    pub(crate) fn shard_count(&self) -> usize {
        self.0.keys.len()
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bucket of all objects.
    pub fn bucket(&self) -> &str {
        &self.0.bucket
    }

    /// The key of an object, not percent-encoded; of a member, the key of its shard.
    ///
    /// # Panics
    /// If there is no object with this index.
    pub fn key(&self, index: usize) -> &str {
        self.0.keys.value(self.shard_number(index))
    }

    /// Stored size of an object or of a member in bytes, if known.
    ///
    /// # Panics
    /// If there is no object with this index.
    pub fn bytes(&self, index: usize) -> Option<u64> {
        if let Some(member) = self.member(index) {
            return Some(member.range.size());
        }
        let (bytes, number) = (&self.0.bytes, self.shard_number(index));
        bytes.is_valid(number).then(|| bytes.value(number))
    }

    /// The ETag of an object from the listing, if known; of a member, the ETag of its shard.
    ///
    /// # Panics
    /// If there is no object with this index.
    pub fn etag(&self, index: usize) -> Option<&str> {
        let (etags, number) = (&self.0.etags, self.shard_number(index));
        etags.is_valid(number).then(|| etags.value(number))
    }

    /// The hash of an object or of a member as a fraction of all hashes: it decides whether a gateway caches its values.
    ///
    /// # Panics
    /// If there is no object with this index.
    pub(crate) fn hash_fraction(&self, index: usize) -> f64 {
        let key = self.key(index);
        hash_fraction(match self.member(index) {
            Some(member) => member_hash(self.bucket(), key, member.name),
            None => object_hash(self.bucket(), key),
        })
    }

    /// An object.
    ///
    /// # Panics
    /// If there is no object with this index.
    pub fn object(&self, index: usize) -> Object<'_> {
        Object {
            key: self.key(index),
            bytes: self.bytes(index),
            etag: self.etag(index),
            member: self.member(index),
        }
    }

    /// All objects in their order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Object<'_>> + ExactSizeIterator {
        (0..self.len()).map(|index| self.object(index))
    }

    /// The objects with these indices, in this order, with duplicates if an index is repeated.
    ///
    /// # Panics
    /// If there is no object with one of the indices.
    #[must_use]
    pub fn select(&self, indices: impl IntoIterator<Item = usize>) -> Self {
        let mut builder = ObjectsBuilder::with_columns(self.columns().to_vec());
        let mut columns = Vec::with_capacity(self.columns().len());
        for index in indices {
            columns.clear();
            columns.extend((0..self.columns().len()).map(|column| self.column_member(index, column)));
            builder.push_with_columns(self.object(index), &columns);
        }
        builder.finish(Arc::clone(&self.0.bucket))
    }
}

/// The same bucket and the same objects in the same order.
impl PartialEq for Objects {
    fn eq(&self, other: &Self) -> bool {
        let (list, other) = (&self.0, &other.0);
        list.bucket == other.bucket
            && list.keys == other.keys
            && list.bytes == other.bytes
            && list.etags == other.etags
            && list.members == other.members
    }
}

impl Eq for Objects {}

/// Without the objects, which may be millions.
impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects")
            .field("bucket", &self.bucket())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// Keys as a column, without spare memory.
pub(crate) fn key_column(keys: impl IntoIterator<Item: AsRef<str>>) -> LargeStringArray {
    let mut column: LargeStringArray = keys.into_iter().map(Some).collect();
    column.shrink_to_fit();
    column
}

#[cfg(test)]
mod tests;
