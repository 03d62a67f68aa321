//! What a plain read fetches of a sample.

use std::{collections::VecDeque, ops::Range};

use pushdown::shard::MemberRange;

use crate::objects::{MemberRef, Objects};

/// The most bytes between two entries that one request reads. Sending them takes less time than another request.
pub(in crate::units::objects) const MAX_GAP_BYTES: u64 = 64 << 10;

/// A whole object, or an entry of a shard: the value of a sample, or one of its further columns.
#[derive(Debug, Clone, Copy)]
pub(in crate::units::objects) struct Part {
    pub(in crate::units::objects) slot: usize,
    /// Index of the sample in the data set.
    pub(in crate::units::objects) index: usize,
    /// Number of the further column; `None` for the value.
    pub(in crate::units::objects) column: Option<usize>,
    /// Where it is in its shard; `None` for a whole object.
    pub(in crate::units::objects) range: Option<MemberRange>,
}

impl Part {
    /// All parts of the sample with this index.
    pub(in crate::units::objects) fn of_sample(
        objects: &Objects,
        slot: usize,
        index: usize,
    ) -> impl Iterator<Item = Self> {
        let part = move |column, range| Self {
            slot,
            index,
            column,
            range,
        };
        let value = part(None, objects.member(index).map(|member| member.range));
        let columns = (0..objects.columns().len()).filter_map(move |column| {
            let member = objects.column_member(index, column)?;
            Some(part(Some(column), Some(member.range)))
        });
        std::iter::once(value).chain(columns)
    }

    /// The member of the shard; `None` for a whole object.
    pub(in crate::units::objects) fn member<'a>(&self, objects: &'a Objects) -> Option<MemberRef<'a>> {
        match self.column {
            None => objects.member(self.index),
            Some(column) => objects.column_member(self.index, column),
        }
    }

    /// Where it begins in its object.
    pub(in crate::units::objects) fn offset(&self) -> u64 {
        self.range.map_or(0, |range| range.offset())
    }

    /// Whether it is so near after `last`, a part of the same object, that one request reads both.
    pub(in crate::units::objects) fn is_near(&self, last: &Self) -> bool {
        let (Some(range), Some(last)) = (self.range, last.range) else {
            return false;
        };
        let gap = range.offset().checked_sub(last.entry().end);
        range == last || gap.is_some_and(|gap| gap <= MAX_GAP_BYTES)
    }
}

/// The bytes of a shard from the first to the last of these parts; `None` for a whole object.
pub(in crate::units::objects) fn joined_range(parts: &VecDeque<Part>) -> Option<Range<u64>> {
    let (first, last) = (parts.front()?.range?, parts.back()?.range?);
    Some(first.offset()..last.entry().end)
}
