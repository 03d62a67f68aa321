//! Groups the members of a shard into samples as they arrive.

use std::{
    collections::HashSet,
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
};

use bytes::Bytes;
use pushdown::{
    shard::{LeftOut, Member, split_name},
    wire::{MAX_COLUMN_BYTES, RowError},
};
use pushdown_s3::Escaped;

use super::sample::{StoredSample, invalid_shard, member_too_large};
use crate::shards::{Column, ColumnMatcher, FoundExtensions};

/// Groups the members of one shard. A group ends with the first member of another.
///
/// The samples are those of an index of the shard, in the same order. Where an index would have others, since members of a group do not
/// follow each other, the shard is refused.
#[derive(Debug)]
pub(super) struct Grouping {
    columns: Arc<ColumnMatcher>,
    max_value_bytes: u64,
    group: Option<Group>,
    /// 128 bits of the name of each group so far, under keys that nobody can guess.
    seen: HashSet<u128>,
    hashers: [RandomState; 2],
    counts: GroupCounts,
}

/// What was found in shards.
#[derive(Debug, Clone, Default)]
pub(super) struct GroupCounts {
    pub(super) samples: u64,
    /// Groups without a value, which are no samples.
    pub(super) skipped: u64,
    pub(super) extensions: FoundExtensions,
    /// By further column: whether a sample has it.
    pub(super) has_column: Vec<bool>,
    /// Members that are no regular files, or have a name that none can have.
    pub(super) left_out: LeftOut,
    /// Shards that could not be read to their end.
    pub(super) broken_shards: u64,
}

/// The group whose members arrive.
#[derive(Debug)]
struct Group {
    name: String,
    value: Option<Value>,
    columns: Vec<Option<Bytes>>,
    column_bytes: u64,
    /// Why the sample cannot be delivered although its value may.
    error: Option<RowError>,
}

#[derive(Debug)]
struct Value {
    /// Rank of the extension: 0 is the best.
    rank: usize,
    member: Arc<str>,
    content: Result<Bytes, RowError>,
}

impl GroupCounts {
    /// Adds those of the shard with this key.
    pub(super) fn add(&mut self, key: &str, other: &Self) {
        self.samples += other.samples;
        self.skipped += other.skipped;
        self.extensions.extend(&other.extensions);
        self.has_column
            .resize(other.has_column.len().max(self.has_column.len()), false);
        for (has, other) in self.has_column.iter_mut().zip(&other.has_column) {
            *has |= other;
        }
        self.left_out
            .extend(&format!("{} ", Escaped(key)), &other.left_out);
        self.broken_shards += other.broken_shards;
    }
}

impl Grouping {
    /// Groups members by these columns. A value of more bytes is an error of its sample.
    pub(super) fn new(columns: Arc<ColumnMatcher>, max_value_bytes: u64) -> Self {
        let counts = GroupCounts {
            has_column: vec![false; columns.further().len()],
            ..GroupCounts::default()
        };
        Self {
            columns,
            max_value_bytes,
            group: None,
            seen: HashSet::new(),
            hashers: [RandomState::new(), RandomState::new()],
            counts,
        }
    }

    pub(super) const fn counts(&self) -> &GroupCounts {
        &self.counts
    }

    /// Records what is left out of the shard so far.
    pub(super) fn set_left_out(&mut self, left_out: &LeftOut) {
        if self.counts.left_out.count() != left_out.count() {
            self.counts.left_out.clone_from(left_out);
        }
    }

    /// Begins a member. Returns the sample that ends with it, and the column whose [content](Self::add_content) is wanted.
    ///
    /// # Errors
    /// If members of a group do not follow each other, or two are one column.
    pub(super) fn begin_member(
        &mut self,
        member: &Member,
    ) -> Result<(Option<StoredSample>, Option<Column>), RowError> {
        let Some((name, extension)) = split_name(&member.name) else {
            return Ok((None, None));
        };
        self.counts.extensions.add(&extension);
        let column = self.columns.column(&extension);
        let mut ended = None;
        if self.group.as_ref().is_none_or(|group| group.name != name) {
            if !self.is_new(name) {
                return match column {
                    Some(_) => Err(invalid_shard(format_args!(
                        "expected the members of `{}` to follow each other, found `{}` after others: run `pushdown index`, and read the \
                         samples of its list",
                        Escaped(name),
                        Escaped(&member.name)
                    ))),
                    None => Ok((None, None)),
                };
            }
            ended = self.end_group();
            self.group = Some(Group {
                name: name.to_owned(),
                value: None,
                columns: vec![None; self.columns.further().len()],
                column_bytes: 0,
                error: None,
            });
        }
        let wanted = match (&mut self.group, column) {
            (Some(group), Some(column)) => group.begin(member, column, self.max_value_bytes)?,
            _ => None,
        };
        Ok((ended, wanted))
    }

    /// Adds the content of the last member that began.
    pub(super) fn add_content(&mut self, column: Column, content: Bytes) {
        let Some(group) = &mut self.group else { return };
        match column {
            Column::Value(_) => {
                if let Some(value) = &mut group.value {
                    value.content = Ok(content);
                }
            }
            Column::Further(column) => group.columns[column] = Some(content),
        }
    }

    /// Ends the last group of a complete shard. Returns its sample.
    pub(super) fn end_group(&mut self) -> Option<StoredSample> {
        let group = self.group.take()?;
        let Some(value) = group.value else {
            self.counts.skipped += 1;
            return None;
        };
        self.counts.samples += 1;
        for (has, column) in self.counts.has_column.iter_mut().zip(&group.columns) {
            *has |= column.is_some();
        }
        let content = group.error.map_or(value.content, Err);
        let columns = match content {
            Ok(_) => group.columns,
            Err(_) => vec![None; group.columns.len()],
        };
        Some(StoredSample {
            member: Some(value.member),
            value: content,
            columns,
        })
    }

    /// Whether no group with this name began before.
    fn is_new(&mut self, name: &str) -> bool {
        let [high, low] = self
            .hashers
            .each_ref()
            .map(|hasher| u128::from(hasher.hash_one(name)));
        self.seen.insert(high << 64 | low)
    }
}

impl Group {
    /// Begins a member. Returns the column if its content is wanted.
    fn begin(
        &mut self,
        member: &Member,
        column: Column,
        max_value_bytes: u64,
    ) -> Result<Option<Column>, RowError> {
        let size = member.range.size();
        let is_second = match column {
            Column::Value(rank) => match &self.value {
                Some(value) if value.rank < rank => return Ok(None),
                Some(value) => value.rank == rank,
                None => false,
            },
            Column::Further(column) => self.columns[column].is_some(),
        };
        if is_second {
            return Err(invalid_shard(format_args!(
                "expected one member of `{}` for a column, found `{}` as a second",
                Escaped(&self.name),
                Escaped(&member.name)
            )));
        }
        match column {
            Column::Value(rank) => {
                let is_small = size <= max_value_bytes;
                self.value = Some(Value {
                    rank,
                    member: member.name.as_str().into(),
                    // Replaced by the content when it has arrived.
                    content: Err(member_too_large(size, max_value_bytes)),
                });
                Ok(is_small.then_some(Column::Value(rank)))
            }
            Column::Further(number) => {
                self.columns[number] = Some(Bytes::new());
                self.column_bytes = self.column_bytes.saturating_add(size);
                if self.column_bytes <= MAX_COLUMN_BYTES {
                    return Ok(Some(column));
                }
                self.error = Some(RowError::new(
                    pushdown::ErrorKind::TooLarge.code(),
                    format!(
                        "the further columns are too large: expected at most {MAX_COLUMN_BYTES} bytes together, found {}",
                        self.column_bytes
                    ),
                ));
                Ok(None)
            }
        }
    }
}
