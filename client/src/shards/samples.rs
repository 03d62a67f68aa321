//! Selects samples from the members of shards.

use std::{
    collections::{BTreeSet, HashMap},
    ops::Range,
};

use pushdown::{shard::split_name, wire::check_columns};

use super::ShardIndex;
use crate::{
    error::{Error, Result},
    objects::{MemberRef, Objects, ObjectsBuilder},
};

/// Extensions of the values if none is named, in the order of preference.
const IMAGES: [&str; 4] = ["jpg", "jpeg", "png", "webp"];
/// The most extensions that an error lists.
const MAX_LISTED_EXTENSIONS: usize = 20;

/// Which members of a group belong to its sample.
///
/// A group is the members of one shard whose names agree up to the first dot after the last `/`. The rest of a name is its extension, which is
/// compared in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ColumnSelection {
    /// Extension of the value, which the pipeline computes. Default: the first of `jpg`, `jpeg`, `png` and `webp` that a group has, except
    /// further columns.
    pub value: Option<String>,
    /// Extensions of the further columns, whose members are delivered as they are stored. At most 16.
    pub further: Vec<String>,
}

/// The members of a group, by their indices.
#[derive(Debug)]
struct Group {
    /// The value, after the rank of its extension: 0 is the best.
    value: Option<(usize, usize)>,
    further: Vec<Option<usize>>,
}

/// Collects the groups of one shard after the other.
#[derive(Debug)]
struct Grouping<'a> {
    members: &'a Objects,
    /// Extensions of the value, in the order of preference.
    values: Vec<String>,
    /// Extensions of the further columns.
    further: Vec<String>,
    /// Some of the extensions that were found, for an error.
    extensions: BTreeSet<String>,
}

impl ShardIndex {
    /// The samples that the groups of members form, in the order of their first members. A group without a value is no sample; their number
    /// is logged as a warning.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) for an invalid selection, if no group has a value, if no sample has one of the further columns,
    /// or if a group has two members for one column.
    pub fn samples(&self, selection: &ColumnSelection) -> Result<Objects> {
        let mut grouping = Grouping::new(&self.members, selection)?;
        let names = selection.further.iter().map(|name| name.as_str().into());
        let mut builder = ObjectsBuilder::with_columns(names.collect());
        let mut found = vec![false; selection.further.len()];
        let (mut samples, mut skipped) = (0_usize, 0_usize);
        for shard in self.shard_ranges() {
            for group in grouping.groups(shard)? {
                let Some((_, value)) = group.value else {
                    skipped += 1;
                    continue;
                };
                samples += 1;
                let further = group.further.into_iter();
                let columns: Vec<Option<MemberRef<'_>>> = further
                    .map(|index| index.and_then(|index| self.members.member(index)))
                    .collect();
                for (found, column) in found.iter_mut().zip(&columns) {
                    *found |= column.is_some();
                }
                builder.push_with_columns(self.members.object(value), &columns);
            }
        }
        if samples == 0 {
            return Err(grouping.missing(&grouping.values));
        }
        let missing = grouping.further.iter().zip(&found).find(|(_, found)| !**found);
        if let Some((column, _)) = missing {
            return Err(grouping.missing(std::slice::from_ref(column)));
        }
        if skipped > 0 {
            tracing::warn!(
                "{skipped} of {} groups in the shards of s3://{} have no member with the extension {} and are skipped",
                samples + skipped,
                self.bucket(),
                grouping.values.join(", ")
            );
        }
        Ok(builder.finish(self.bucket().into()))
    }
}

// === impl Grouping ===

impl<'a> Grouping<'a> {
    fn new(members: &'a Objects, selection: &ColumnSelection) -> Result<Self> {
        check_columns(&selection.further).map_err(|error| Error::config(error.to_string()))?;
        let further: Vec<String> = selection.further.iter().map(|name| name.to_lowercase()).collect();
        let mut values: Vec<String> = match &selection.value {
            Some(value) => vec![value.to_lowercase()],
            None => IMAGES.map(str::to_owned).into(),
        };
        values.retain(|value| !further.contains(value));
        if values.is_empty() {
            let text =
                "the value of a sample cannot be one of its further columns: name another extension for it";
            return Err(Error::config(text));
        }
        Ok(Self {
            members,
            values,
            further,
            extensions: BTreeSet::new(),
        })
    }

    /// The groups of a shard.
    fn groups(&mut self, shard: Range<usize>) -> Result<Vec<Group>> {
        let members = self.members;
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        let mut groups: Vec<Group> = Vec::new();
        for index in shard {
            let name = members.member(index).map(|member| member.name);
            let Some((base, extension)) = name.and_then(split_name) else {
                continue;
            };
            if self.extensions.len() < MAX_LISTED_EXTENSIONS && !self.extensions.contains(&*extension) {
                self.extensions.insert(extension.to_string());
            }
            let number = *numbers.entry(base).or_insert(groups.len());
            if number == groups.len() {
                groups.push(Group {
                    value: None,
                    further: vec![None; self.further.len()],
                });
            }
            if let Some(other) = self.add(&mut groups[number], &extension, index) {
                return Err(self.duplicate(other, index));
            }
        }
        Ok(groups)
    }

    /// Adds a member to its group. Returns the member that already has its column, if there is one.
    fn add(&self, group: &mut Group, extension: &str, index: usize) -> Option<usize> {
        let Some(rank) = self.values.iter().position(|value| value == extension) else {
            let column = self.further.iter().position(|column| column == extension)?;
            return group.further[column].replace(index);
        };
        match group.value {
            Some((best, other)) if best == rank => Some(other),
            Some((best, _)) if best < rank => None,
            _ => {
                group.value = Some((rank, index));
                None
            }
        }
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
        let found: Vec<&str> = self.extensions.iter().map(String::as_str).collect();
        Error::config(format!(
            "no sample in the shards of s3://{} has a member with the extension {}: found {}",
            self.members.bucket(),
            columns.join(", "),
            if found.is_empty() {
                "no extension".to_owned()
            } else {
                found.join(", ")
            }
        ))
    }
}
