//! Groups the members of a shard into samples as they arrive.

use std::{mem, sync::Arc};

use bytes::Bytes;
use pushdown::{
    shard::{Column, ColumnMatcher, Entered, Group, Grouping, LeftOut, Member, split_name},
    wire::{MAX_COLUMN_BYTES, RowError},
};
use pushdown_s3::Escaped;

use super::sample::{StoredSample, invalid_shard, member_too_large};
use crate::shards::FoundExtensions;

/// The content of a member, or why it is not held.
type Content = Result<Bytes, RowError>;

/// Makes samples of the members of one shard.
///
/// The samples are those of an index of the shard, in the same order. Where an index would have others, since members of a group do not
/// follow each other, the shard is refused.
#[derive(Debug)]
pub(super) struct SampleGroups {
    columns: Arc<ColumnMatcher>,
    max_value_bytes: u64,
    grouping: Grouping<Content>,
    arriving: ArrivingGroup,
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

/// What is known of the group whose members arrive, beside their contents.
#[derive(Debug, Default)]
struct ArrivingGroup {
    /// Name of the member that is the value.
    value: Option<Arc<str>>,
    column_bytes: u64,
    /// Why the sample cannot be delivered although its value may.
    error: Option<RowError>,
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

impl SampleGroups {
    /// Groups members by these columns. A value of more bytes is an error of its sample.
    pub(super) fn new(columns: Arc<ColumnMatcher>, max_value_bytes: u64) -> Self {
        let counts = GroupCounts {
            has_column: vec![false; columns.further().len()],
            ..GroupCounts::default()
        };
        Self {
            grouping: Grouping::new(&columns),
            columns,
            max_value_bytes,
            arriving: ArrivingGroup::default(),
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
        let ended = match (self.grouping.enter(name), column) {
            (Entered::Same, _) => None,
            (Entered::New(ended), _) => ended.and_then(|group| self.sample(group)),
            // Members that are no columns may be anywhere.
            (Entered::Ended, None) => return Ok((None, None)),
            (Entered::Ended, Some(_)) => {
                return Err(invalid_shard(format_args!(
                    "expected the members of `{}` to follow each other, found `{}` after others: run `pushdown index`, and read the \
                     samples of its list",
                    Escaped(name),
                    Escaped(&member.name)
                )));
            }
        };
        let wanted = match column {
            Some(column) => self.begin_column(name, member, column)?,
            None => None,
        };
        Ok((ended, wanted))
    }

    /// Begins a member that is a column of the group with this name. Returns the column if its content is wanted.
    fn begin_column(
        &mut self,
        group: &str,
        member: &Member,
        column: Column,
    ) -> Result<Option<Column>, RowError> {
        let (size, max) = (member.range.size(), self.max_value_bytes);
        let content = match column {
            Column::Value(_) if size > max => Err(member_too_large(size, max)),
            // Replaced by the content when it has arrived.
            Column::Value(_) | Column::Further(_) => Ok(Bytes::new()),
        };
        let is_held = content.is_ok();
        let added = self
            .grouping
            .current()
            .map_or(Ok(false), |current| current.add(column, content));
        let is_new = added.map_err(|_first| {
            invalid_shard(format_args!(
                "expected one member of `{}` for a column, found `{}` as a second",
                Escaped(group),
                Escaped(&member.name)
            ))
        })?;
        if !is_new {
            return Ok(None);
        }
        match column {
            Column::Value(_) => self.arriving.value = Some(member.name.as_str().into()),
            Column::Further(_) => {
                let bytes = self.arriving.column_bytes.saturating_add(size);
                self.arriving.column_bytes = bytes;
                if bytes > MAX_COLUMN_BYTES {
                    self.arriving.error = Some(RowError::new(
                        pushdown::ErrorKind::TooLarge.code(),
                        format!(
                            "the further columns are too large: expected at most {MAX_COLUMN_BYTES} bytes together, found {bytes}"
                        ),
                    ));
                    return Ok(None);
                }
            }
        }
        Ok(is_held.then_some(column))
    }

    /// Adds the content of the last member that began.
    pub(super) fn add_content(&mut self, column: Column, content: Bytes) {
        let group = self.grouping.current();
        if let Some(member) = group.and_then(|group| group.member_mut(column)) {
            *member = Ok(content);
        }
    }

    /// Ends the last group of a complete shard. Returns its sample.
    pub(super) fn end_group(&mut self) -> Option<StoredSample> {
        let group = self.grouping.end()?;
        self.sample(group)
    }

    /// The sample of a group that has ended.
    fn sample(&mut self, group: Group<Content>) -> Option<StoredSample> {
        let ArrivingGroup { value, error, .. } = mem::take(&mut self.arriving);
        let (content, columns) = group.into_columns();
        let (Some(member), Some(content)) = (value, content) else {
            self.counts.skipped += 1;
            return None;
        };
        self.counts.samples += 1;
        for (has, column) in self.counts.has_column.iter_mut().zip(&columns) {
            *has |= column.is_some();
        }
        let content = error.map_or(content, Err);
        let columns = columns.into_iter();
        Some(StoredSample {
            member: Some(member),
            columns: match content {
                Ok(_) => columns.map(|column| column.and_then(Content::ok)).collect(),
                Err(_) => columns.map(|_| None).collect(),
            },
            value: content,
        })
    }
}
