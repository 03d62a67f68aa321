//! Collects objects into columns.

use std::sync::{Arc, OnceLock};

use arrow_array::{
    Array as _,
    builder::{LargeStringBuilder, UInt64Builder},
};

use super::{List, Object, Objects};

/// Collects the objects of a list, in their order.
#[derive(Debug, Default)]
pub(crate) struct ObjectsBuilder {
    keys: LargeStringBuilder,
    bytes: UInt64Builder,
    etags: LargeStringBuilder,
}

impl ObjectsBuilder {
    /// Adds an object at the end.
    pub(crate) fn push(&mut self, object: Object<'_>) {
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
