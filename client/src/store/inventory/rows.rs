//! Which rows of an inventory are objects of the list.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use super::fault::Fault;
use crate::{
    objects::{Object, Objects, ObjectsBuilder},
    store::{HiddenObjects, list::LeftOut},
};

/// A row of a data file.
#[derive(Debug, Clone, Copy)]
pub(super) struct InventoryRow<'a> {
    /// The key, decoded.
    pub(super) key: &'a str,
    /// Size in bytes. A delete marker has none.
    pub(super) bytes: Option<u64>,
    /// With or without quotation marks.
    pub(super) etag: Option<&'a str>,
    /// False for a former version.
    pub(super) is_latest: bool,
    pub(super) is_delete_marker: bool,
}

/// Collects the objects that a listing would have, in the order of the rows.
#[derive(Debug)]
pub(super) struct InventoryRows {
    prefix: String,
    hidden: HiddenObjects,
    objects: ObjectsBuilder,
    left_out: LeftOut,
    /// Number of objects so far.
    count: Arc<AtomicUsize>,
    /// An ETag with quotation marks.
    quoted: String,
}

impl InventoryRows {
    /// Collects objects under a prefix. `count` is raised by one for each of them.
    pub(super) fn new(prefix: &str, hidden: HiddenObjects, count: Arc<AtomicUsize>) -> Self {
        Self {
            prefix: prefix.to_owned(),
            hidden,
            objects: ObjectsBuilder::default(),
            left_out: LeftOut::default(),
            count,
            quoted: String::new(),
        }
    }

    /// Adds the object of a row, if a listing would have it.
    ///
    /// # Errors
    /// [`Fault::Damaged`] for a row without a key, and for an object without a size.
    pub(super) fn push(&mut self, row: InventoryRow<'_>) -> Result<(), Fault> {
        let InventoryRow { key, bytes, etag, .. } = row;
        if key.is_empty() {
            return Err(Fault::Damaged(
                "expected a key in each row, found none".to_owned(),
            ));
        }
        if !row.is_latest || row.is_delete_marker || !key.starts_with(&self.prefix) {
            return Ok(());
        }
        if bytes.is_none() {
            let text = format!("expected a size of each object, found none for `{key}`");
            return Err(Fault::Damaged(text));
        }
        if self.hidden.leave_out(key, bytes) {
            self.left_out.add(key.to_owned());
            return Ok(());
        }
        let etag = etag.filter(|etag| !etag.is_empty()).map(|etag| {
            if etag.ends_with('"') {
                return etag;
            }
            self.quoted.clear();
            self.quoted.extend(["\"", etag, "\""]);
            &*self.quoted
        });
        self.objects.push(Object {
            key,
            bytes,
            etag,
            member: None,
        });
        self.count.fetch_add(1, Relaxed);
        Ok(())
    }

    /// The objects, and what was left out.
    pub(super) fn finish(self, bucket: &str) -> (Objects, LeftOut) {
        (self.objects.finish(bucket.into()), self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PHOTO: InventoryRow<'_> = InventoryRow {
        key: "train/a.jpg",
        bytes: Some(5),
        etag: Some("e"),
        is_latest: true,
        is_delete_marker: false,
    };

    fn rows(hidden: HiddenObjects) -> InventoryRows {
        InventoryRows::new("train/", hidden, Arc::default())
    }

    #[test]
    fn current_objects_under_the_prefix_are_listed() {
        let hidden_key = "train/.DS_Store";
        let all = [
            PHOTO,
            InventoryRow {
                key: "test/a.jpg",
                ..PHOTO
            },
            InventoryRow {
                is_latest: false,
                bytes: Some(7),
                ..PHOTO
            },
            InventoryRow {
                key: "train/b.jpg",
                bytes: None,
                etag: None,
                is_delete_marker: true,
                ..PHOTO
            },
            InventoryRow {
                key: hidden_key,
                ..PHOTO
            },
        ];
        for (hidden, expected) in [
            (HiddenObjects::LeftOut, vec![PHOTO.key]),
            (HiddenObjects::Listed, vec![PHOTO.key, hidden_key]),
        ] {
            let mut rows = rows(hidden);
            for row in all {
                rows.push(row).unwrap();
            }
            assert_eq!(rows.count.load(Relaxed), expected.len());
            let (objects, left_out) = rows.finish("photos");
            let keys: Vec<&str> = objects.iter().map(|object| object.key).collect();
            assert_eq!(keys, expected);
            let first = (hidden == HiddenObjects::LeftOut).then(|| hidden_key.to_owned());
            assert_eq!(left_out.first, first);
        }
    }

    #[test]
    fn etags_have_quotation_marks_as_in_a_listing() {
        let mut rows = rows(HiddenObjects::LeftOut);
        for etag in [Some("e-2"), Some("\"e\""), Some("W/\"e\""), Some(""), None] {
            rows.push(InventoryRow { etag, ..PHOTO }).unwrap();
        }
        let (objects, _) = rows.finish("photos");
        let etags: Vec<Option<&str>> = objects.iter().map(|object| object.etag).collect();
        assert_eq!(
            etags,
            [Some("\"e-2\""), Some("\"e\""), Some("W/\"e\""), None, None]
        );
    }

    #[test]
    fn rows_without_key_or_size_are_refused() {
        let mut rows = rows(HiddenObjects::LeftOut);
        for (row, expected) in [
            (
                InventoryRow { bytes: None, ..PHOTO },
                "expected a size of each object, found none for `train/a.jpg`",
            ),
            (
                InventoryRow { key: "", ..PHOTO },
                "expected a key in each row, found none",
            ),
        ] {
            assert_eq!(rows.push(row), Err(Fault::Damaged(expected.to_owned())));
        }
    }
}
