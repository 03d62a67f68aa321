//! Samples that are members of shards.

use std::sync::Arc;

use arrow_array::{Array as _, LargeStringArray, UInt32Array, UInt64Array};
use pushdown::shard::{MemberRange, check_name};

use super::{Object, Objects};
use crate::error::Error;

/// A member of a shard: a file in a tar or zip object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemberRef<'a> {
    /// Its name in the shard.
    pub name: &'a str,
    /// Where it is in the shard.
    pub range: MemberRange,
}

/// The samples of a list with members.
#[derive(Debug, PartialEq)]
pub(super) struct Members {
    /// The number of each sample's shard: its index in the columns of objects.
    pub(super) shards: UInt32Array,
    /// The members whose values the pipeline computes. Null for a sample that is a whole object.
    pub(super) values: MemberColumn,
    /// Names of the further columns.
    pub(super) names: Vec<Arc<str>>,
    /// The members of the further columns. Null for a sample without one.
    pub(super) columns: Vec<MemberColumn>,
}

/// Members, one or none for each sample. The names are null where there is none, and the numbers are 0 then.
#[derive(Debug, PartialEq)]
pub(super) struct MemberColumn {
    pub(super) names: LargeStringArray,
    pub(super) offsets: UInt64Array,
    pub(super) header_bytes: UInt32Array,
    pub(super) sizes: UInt64Array,
}

impl Objects {
    /// The member of a sample, if it is one and not a whole object. [`column_member`](Self::column_member) has those of further columns.
    ///
    /// # Panics
    /// If there is no sample with this index.
    pub fn member(&self, index: usize) -> Option<MemberRef<'_>> {
        self.0.members.as_ref()?.values.get(index)
    }

    /// Whether samples are members of shards.
    pub fn has_members(&self) -> bool {
        self.0.members.is_some()
    }

    /// Names of the further columns, whose members are delivered as they are stored, with the value of the same sample.
    pub fn columns(&self) -> &[Arc<str>] {
        match &self.0.members {
            Some(members) => &members.names,
            None => &[],
        }
    }

    /// The member of a further column, in the shard of the sample. `None` if the sample has none of this column.
    ///
    /// # Panics
    /// If there is no sample or no column with this index.
    pub fn column_member(&self, index: usize, column: usize) -> Option<MemberRef<'_>> {
        self.0.members.as_ref()?.columns[column].get(index)
    }

    /// The member with this name in a shard, as a list of one sample.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) if there is none in this list.
    pub fn find_member(&self, bucket: &str, key: &str, name: &str) -> Result<Self, Error> {
        let is_named =
            |object: Object<'_>| object.key == key && object.member.is_some_and(|member| member.name == name);
        let found = self.iter().position(is_named);
        match found.filter(|_| self.bucket() == bucket) {
            Some(index) => Ok(self.select([index])),
            None => Err(Error::config(format!(
                "found no member `{name}` of s3://{bucket}/{key}: `pushdown ls --members` lists the members of a shard"
            ))),
        }
    }

    /// The number of a sample's shard. Samples of the same version of a shard have the same number; the numbers begin with 0, in the order
    /// of the first samples. In a list without members it is the index itself.
    ///
    /// # Panics
    /// If there is no sample with this index.
    pub fn shard_number(&self, index: usize) -> usize {
        match &self.0.members {
            Some(members) => members.shards.value(index) as usize,
            None => index,
        }
    }
}

impl Members {
    pub(super) fn len(&self) -> usize {
        self.shards.len()
    }

    /// Checks samples that were read from a file, of a list with this number of shards.
    ///
    /// # Errors
    /// The text is what was expected.
    pub(super) fn check(&self, shard_count: usize) -> Result<(), String> {
        let is_known = |shard: &u32| (*shard as usize) < shard_count;
        if self.shards.null_count() > 0 || !self.shards.values().iter().all(is_known) {
            return Err(format!("numbers of {shard_count} shards"));
        }
        let has_value =
            |column: &MemberColumn, index| column.names.is_null(index) || self.values.names.is_valid(index);
        let mut columns = self.columns.iter();
        if columns.any(|column| !(0..self.len()).all(|index| has_value(column, index))) {
            return Err("no members of further columns for whole objects".to_owned());
        }
        Ok(())
    }
}

impl MemberColumn {
    pub(super) fn get(&self, index: usize) -> Option<MemberRef<'_>> {
        if self.names.is_null(index) {
            return None;
        }
        let range = MemberRange::new(
            self.offsets.value(index),
            self.header_bytes.value(index),
            self.sizes.value(index),
        );
        Some(MemberRef {
            name: self.names.value(index),
            // Only legal ranges are stored.
            range: range.ok()?,
        })
    }

    /// Checks that all members have legal names and ranges.
    ///
    /// # Errors
    /// The text is what was expected.
    pub(super) fn check(&self) -> Result<(), String> {
        for (index, name) in self.names.iter().enumerate() {
            let Some(name) = name else { continue };
            let range = MemberRange::new(
                self.offsets.value(index),
                self.header_bytes.value(index),
                self.sizes.value(index),
            );
            let checked = check_name(name).and(range);
            checked.map_err(|error| format!("valid members (row {index}: {error})"))?;
        }
        Ok(())
    }
}
