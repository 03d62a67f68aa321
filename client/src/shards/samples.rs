//! Selects samples from the members of shards.

use std::{collections::HashMap, ops::Range};

use pushdown::shard::{ColumnMatcher, Group, split_name};

use super::{
    ColumnSelection, ShardIndex,
    selection::{FoundExtensions, warn_of_skipped},
};
use crate::{
    error::{Error, Result},
    objects::{MemberRef, Objects, ObjectsBuilder},
};

/// Collects the groups of one shard after the other, whose members may be anywhere in their shard.
#[derive(Debug)]
struct IndexGroups<'a> {
    members: &'a Objects,
    columns: ColumnMatcher,
    extensions: FoundExtensions,
}

impl ShardIndex {
    /// The samples that the groups of members form, in the order of their first members. A group without a value is no sample; their number
    /// is logged as a warning.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) for an invalid selection, if no group has a value, if no sample has one of the further columns,
    /// or if a group has two members for one column.
    pub fn samples(&self, selection: &ColumnSelection) -> Result<Objects> {
        let mut grouping = IndexGroups::new(&self.members, selection)?;
        let names = selection.further.iter().map(|name| name.as_str().into());
        let mut builder = ObjectsBuilder::with_columns(names.collect());
        let mut found = vec![false; selection.further.len()];
        let (mut samples, mut skipped) = (0, 0);
        for shard in self.shard_ranges() {
            for group in grouping.groups(shard)? {
                let (Some(value), further) = group.into_columns() else {
                    skipped += 1;
                    continue;
                };
                samples += 1;
                let columns: Vec<Option<MemberRef<'_>>> = further
                    .into_iter()
                    .map(|index| index.and_then(|index| self.members.member(index)))
                    .collect();
                for (found, column) in found.iter_mut().zip(&columns) {
                    *found |= column.is_some();
                }
                builder.push_with_columns(self.members.object(value), &columns);
            }
        }
        if samples == 0 {
            return Err(grouping.missing(grouping.columns.values()));
        }
        let missing = grouping
            .columns
            .further()
            .iter()
            .zip(&found)
            .find(|(_, found)| !**found);
        if let Some((column, _)) = missing {
            return Err(grouping.missing(std::slice::from_ref(column)));
        }
        warn_of_skipped(self.bucket(), samples, skipped, grouping.columns.values());
        Ok(builder.finish(self.bucket().into()))
    }
}

impl<'a> IndexGroups<'a> {
    fn new(members: &'a Objects, selection: &ColumnSelection) -> Result<Self> {
        Ok(Self {
            members,
            columns: selection.matcher()?,
            extensions: FoundExtensions::default(),
        })
    }

    /// The groups of a shard, whose members are their indices.
    fn groups(&mut self, shard: Range<usize>) -> Result<Vec<Group<usize>>> {
        let members = self.members;
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let mut groups: Vec<Group<usize>> = Vec::new();
        for index in shard {
            let name = members.member(index).map(|member| member.name);
            let Some((base, extension)) = name.and_then(split_name) else {
                continue;
            };
            self.extensions.add(&extension);
            let number = *numbers.entry(base).or_insert(groups.len());
            if number == groups.len() {
                groups.push(Group::new(&self.columns));
            }
            if let Some(column) = self.columns.column(&extension)
                && let Err(other) = groups[number].add(column, index)
            {
                return Err(self.duplicate(*other, index));
            }
        }
        Ok(groups)
    }

    /// The error for two members of a group with one extension.
    fn duplicate(&self, first: usize, second: usize) -> Error {
        let name = |index| self.members.member(index).map_or("", |member| member.name);
        Error::config(format!(
            "s3://{}/{} has two members for one column of a sample: `{}` and `{}`",
            self.members.bucket(),
            self.members.key(first),
            name(first),
            name(second)
        ))
    }

    /// The error for columns that no sample has.
    fn missing(&self, columns: &[String]) -> Error {
        self.extensions.missing(self.members.bucket(), columns)
    }
}
