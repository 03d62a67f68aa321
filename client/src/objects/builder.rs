//! Collects objects into columns.

mod members;

use std::sync::{Arc, OnceLock};

use arrow_array::{
    Array as _,
    builder::{ArrayBuilder as _, LargeStringBuilder, UInt64Builder},
};

use super::{List, MemberRef, Object, Objects};
use members::MembersBuilder;

/// Collects the samples of a list, in their order.
#[derive(Debug, Default)]
pub(crate) struct ObjectsBuilder {
    keys: LargeStringBuilder,
    bytes: UInt64Builder,
    etags: LargeStringBuilder,
    /// `None` until the first member.
    members: Option<MembersBuilder>,
}

impl ObjectsBuilder {
    /// Collects samples with these further columns.
    pub(crate) fn with_columns(names: Vec<Arc<str>>) -> Self {
        Self {
            members: (!names.is_empty()).then(|| MembersBuilder::new(names, 0)),
            ..Self::default()
        }
    }

    /// Adds a sample without further columns at the end.
    pub(crate) fn push(&mut self, object: Object<'_>) {
        self.push_with_columns(object, &[]);
    }

    /// Adds a sample at the end, with its members of the further columns. Missing ones are null.
    pub(crate) fn push_with_columns(&mut self, object: Object<'_>, columns: &[Option<MemberRef<'_>>]) {
        if object.member.is_some() && self.members.is_none() {
            self.members = Some(MembersBuilder::new(Vec::new(), self.keys.len()));
        }
        let Some(members) = &mut self.members else {
            self.append(object);
            return;
        };
        let next = self.keys.len();
        let number = match object.member {
            Some(_) => members.shard(object.key, object.etag, next),
            None => next,
        };
        members.push(number, object.member, columns);
        if number == next {
            self.append(Object {
                bytes: object.bytes.filter(|_| object.member.is_none()),
                ..object
            });
        }
    }

    /// Adds a whole object, or a shard.
    fn append(&mut self, object: Object<'_>) {
        self.keys.append_value(object.key);
        self.bytes.append_option(object.bytes);
        self.etags.append_option(object.etag);
    }

    /// The list, without spare memory.
    pub(crate) fn finish(mut self, bucket: Arc<str>) -> Objects {
        let mut list = List {
            bucket,
            keys: self.keys.finish(),
            bytes: self.bytes.finish(),
            etags: self.etags.finish(),
            members: self.members.map(MembersBuilder::finish),
            digest: OnceLock::new(),
        };
        list.keys.shrink_to_fit();
        list.bytes.shrink_to_fit();
        list.etags.shrink_to_fit();
        Objects(Arc::new(list))
    }
}

impl<'a> Extend<Object<'a>> for ObjectsBuilder {
    fn extend<I: IntoIterator<Item = Object<'a>>>(&mut self, objects: I) {
        objects.into_iter().for_each(|object| self.push(object));
    }
}
