//! Samples in tar objects: [`ShardIndex`] finds their members once, and [`ShardReader`] streams whole shards without an index.
//!
//! ```no_run
//! use pushdown_client::{
//!     reader::PushdownReader,
//!     shards::ColumnSelection,
//!     store::Store,
//! };
//!
//! # async fn read() -> pushdown_client::Result<()> {
//! let store = Store::builder()
//!     .endpoint("http://127.0.0.1:9900")
//!     .build()
//!     .await?;
//! let shards = store.list_objects("photos", "shards/").await?;
//! let index = store.index_shards(&shards, |_progress| ()).await?;
//! let samples = index.samples(&ColumnSelection::default())?;
//! let reader = PushdownReader::builder()
//!     .endpoint("http://127.0.0.1:9900")
//!     .objects(samples)
//!     .pipeline("decode | resize(64, 64)")
//!     .seed(7)
//!     .build()
//!     .await?;
//! println!("{} samples", reader.len());
//! # Ok(())
//! # }
//! ```

mod columns;
mod file;
mod samples;
mod selection;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Range,
};

pub use crate::{
    store::IndexProgress,
    units::shards::{ShardReader, ShardsRead},
};
pub use selection::ColumnSelection;
pub(crate) use selection::{FoundExtensions, warn_of_left_out, warn_of_skipped};

use crate::{
    error::{Error, Result},
    objects::Objects,
};

/// All members of a set of shards: tar objects, and zip objects without compression. All are in one bucket.
///
/// The members of a shard stand together, in the order of their offsets. [`Store::index_shards`](crate::store::Store::index_shards) makes an index,
/// [`samples`](Self::samples) selects the samples of a data set from it. It has no credentials. Each member takes as much memory as in a list
/// of [`Objects`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardIndex {
    members: Objects,
    /// By shard, the number of its members that are left out, if there are any.
    left_out: BTreeMap<String, u64>,
}

impl ShardIndex {
    /// The index of these members, in the order above.
    pub(crate) const fn new(members: Objects) -> Self {
        Self {
            members,
            left_out: BTreeMap::new(),
        }
    }

    /// The same index, with the number of members that each shard leaves out.
    pub(crate) fn with_left_out(self, left_out: BTreeMap<String, u64>) -> Self {
        Self { left_out, ..self }
    }

    /// Every member as a sample.
    pub const fn members(&self) -> &Objects {
        &self.members
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Number of members that are left out: what is no regular file, and files with a name that is not UTF-8, absolute or with a part `..`.
    pub fn left_out(&self) -> u64 {
        self.left_out
            .values()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The bucket of all shards.
    pub fn bucket(&self) -> &str {
        self.members.bucket()
    }

    /// Key and ETag of every shard with members, in their order.
    pub fn shards(&self) -> impl Iterator<Item = (&str, &str)> {
        self.shard_ranges().into_iter().map(|range| {
            let etag = self.members.etag(range.start);
            (self.members.key(range.start), etag.unwrap_or_default())
        })
    }

    /// The index of these shards alone, in this order.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) for a key that is repeated or that has no members in the index.
    pub fn select_shards(&self, keys: &[impl AsRef<str>]) -> Result<Self> {
        let ranges = self.shard_ranges().into_iter();
        let ranges: HashMap<&str, Range<usize>> = ranges
            .map(|range| (self.members.key(range.start), range))
            .collect();
        check_distinct(self.bucket(), keys.iter().map(AsRef::as_ref))?;
        let mut selected = Vec::with_capacity(keys.len());
        let mut left_out = BTreeMap::new();
        for key in keys.iter().map(AsRef::as_ref) {
            let range = ranges.get(key).ok_or_else(|| {
                Error::config(format!(
                    "the index has no members of s3://{}/{key}: run `pushdown index` with this shard",
                    self.bucket()
                ))
            })?;
            selected.push(range.clone());
            if let Some(count) = self.left_out.get(key) {
                left_out.insert(key.to_owned(), *count);
            }
        }
        let members = self.members.select(selected.into_iter().flatten());
        Ok(Self::new(members).with_left_out(left_out))
    }

    /// The members of each shard.
    fn shard_ranges(&self) -> Vec<Range<usize>> {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for index in 0..self.len() {
            match ranges.get_mut(self.members.shard_number(index)) {
                Some(range) => range.end = index + 1,
                None => ranges.push(index..index + 1),
            }
        }
        ranges
    }
}

/// Checks that no shard is named twice.
pub(crate) fn check_distinct<'a>(bucket: &str, keys: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut seen = HashSet::new();
    for key in keys {
        if !seen.insert(key) {
            let text = format!("s3://{bucket}/{key} is named twice, expected each shard once");
            return Err(Error::config(text));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
