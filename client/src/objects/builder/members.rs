//! Collects members of shards into columns.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{
    Array as _,
    builder::{LargeStringBuilder, UInt32Builder, UInt64Builder},
};

use super::super::{
    MemberRef,
    members::{MemberColumn, Members},
};

/// Collects samples of which some are members of shards.
#[derive(Debug, Default)]
pub(super) struct MembersBuilder {
    shards: UInt32Builder,
    values: ColumnBuilder,
    names: Vec<Arc<str>>,
    columns: Vec<ColumnBuilder>,
    /// The numbers of all shards so far, by key. A shard that was replaced has one for each ETag.
    numbers: HashMap<Box<str>, Vec<ShardNumber>>,
}

/// The number of a shard with this ETag.
type ShardNumber = (Option<Box<str>>, usize);

/// Collects one member or none for each sample.
#[derive(Debug, Default)]
struct ColumnBuilder {
    names: LargeStringBuilder,
    offsets: UInt64Builder,
    header_bytes: UInt32Builder,
    sizes: UInt64Builder,
}

impl MembersBuilder {
    /// Collects samples with these further columns, after `objects` samples that are whole objects.
    pub(super) fn new(names: Vec<Arc<str>>, objects: usize) -> Self {
        let mut builder = Self {
            columns: names.iter().map(|_| ColumnBuilder::default()).collect(),
            names,
            ..Self::default()
        };
        (0..objects).for_each(|number| builder.push(number, None, &[]));
        builder
    }

    /// The number of a shard: that of an earlier sample, or `next`.
    pub(super) fn shard(&mut self, key: &str, etag: Option<&str>, next: usize) -> usize {
        let versions = self.numbers.get(key).map(Vec::as_slice).unwrap_or_default();
        let known = versions.iter().find(|(version, _)| version.as_deref() == etag);
        if let Some((_, number)) = known {
            return *number;
        }
        let versions = self.numbers.entry(key.into()).or_default();
        versions.push((etag.map(Into::into), next));
        next
    }

    /// Adds a sample of the shard with this number.
    pub(super) fn push(
        &mut self,
        number: usize,
        member: Option<MemberRef<'_>>,
        columns: &[Option<MemberRef<'_>>],
    ) {
        // More shards do not fit into memory.
        self.shards
            .append_value(u32::try_from(number).unwrap_or(u32::MAX));
        self.values.push(member);
        for (index, column) in self.columns.iter_mut().enumerate() {
            column.push(columns.get(index).copied().flatten());
        }
    }

    /// The samples, without spare memory.
    pub(super) fn finish(mut self) -> Members {
        let mut shards = self.shards.finish();
        shards.shrink_to_fit();
        Members {
            shards,
            values: self.values.finish(),
            names: self.names,
            columns: self.columns.into_iter().map(ColumnBuilder::finish).collect(),
        }
    }
}

impl ColumnBuilder {
    fn push(&mut self, member: Option<MemberRef<'_>>) {
        let range = member.map(|member| member.range);
        self.names.append_option(member.map(|member| member.name));
        self.offsets.append_value(range.map_or(0, |range| range.offset()));
        self.header_bytes
            .append_value(range.map_or(0, |range| range.header_bytes()));
        self.sizes.append_value(range.map_or(0, |range| range.size()));
    }

    fn finish(mut self) -> MemberColumn {
        let mut column = MemberColumn {
            names: self.names.finish(),
            offsets: self.offsets.finish(),
            header_bytes: self.header_bytes.finish(),
            sizes: self.sizes.finish(),
        };
        column.names.shrink_to_fit();
        column.offsets.shrink_to_fit();
        column.header_bytes.shrink_to_fit();
        column.sizes.shrink_to_fit();
        column
    }
}
