//! A sample of a list, and what identifies it.

use pushdown::shard::MemberRange;

use crate::objects::{MemberRef, Object, Objects};

/// A sample of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListedSample<'a> {
    objects: &'a Objects,
    index: usize,
}

impl<'a> ListedSample<'a> {
    pub(crate) const fn new(objects: &'a Objects, index: usize) -> Self {
        Self { objects, index }
    }

    /// The index of the sample in its list.
    pub(super) const fn index(self) -> usize {
        self.index
    }

    pub(super) fn object(self) -> Object<'a> {
        self.objects.object(self.index)
    }

    /// Number of further columns.
    pub(super) fn columns(self) -> usize {
        self.objects.columns().len()
    }

    /// What identifies the sample besides its object: the member and its place, then the same of each further column after the name
    /// of the column. Empty for a whole object without further columns.
    pub(super) fn member_parts(self) -> Vec<Vec<u8>> {
        let value = self.objects.member(self.index);
        let columns = self.objects.columns();
        if value.is_none() && columns.is_empty() {
            return Vec::new();
        }
        let mut parts = Vec::from(of_member(value));
        for (column, name) in columns.iter().enumerate() {
            parts.push(name.as_bytes().to_vec());
            parts.extend(of_member(self.objects.column_member(self.index, column)));
        }
        parts
    }
}

/// The name of a member and its place; both empty if there is none.
fn of_member(member: Option<MemberRef<'_>>) -> [Vec<u8>; 2] {
    member.map_or_else(Default::default, |member| {
        [member.name.as_bytes().to_vec(), place(&member.range)]
    })
}

fn place(range: &MemberRange) -> Vec<u8> {
    let header_bytes = u64::from(range.header_bytes());
    let numbers = [range.offset(), header_bytes, range.size()];
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}
