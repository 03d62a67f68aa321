//! The samples of a data set while it is materialized: their versions may change meanwhile.

use std::{collections::BTreeMap, sync::Arc};

use pushdown::{part::Label, wire::is_etag_hint};
use pushdown_exec::sync::Mutex;

use super::{labels::Labels, layout::shown_name};
use crate::{
    error::{Error, ErrorKind, Result},
    objects::{Object, Objects},
    store::{HiddenObjects, Store},
};

/// The samples of a data set. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct DataSet {
    pub(super) objects: Objects,
    pub(super) labels: Option<Arc<Labels>>,
    /// What the keys of all objects begin with; names in parts are what follows.
    pub(super) prefix: String,
    /// ETags of objects that were replaced after the list was made; `None` for those that are gone.
    changes: Arc<Mutex<BTreeMap<u32, Option<String>>>>,
}

/// A sample in its version of now.
#[derive(Debug, Clone)]
pub(super) struct CurrentSample<'a> {
    pub(super) index: u32,
    pub(super) object: Object<'a>,
    pub(super) etag: String,
}

impl DataSet {
    /// The samples of a list with ETags.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] for an object without an ETag, and for another number of labels.
    pub(super) fn new(objects: Objects, labels: Option<Labels>, prefix: &str) -> Result<Self> {
        if let Some(labels) = labels.as_ref().filter(|labels| labels.len() != objects.len()) {
            return Err(Error::config(format!(
                "invalid labels: expected {}, one for each object, found {}",
                objects.len(),
                labels.len()
            )));
        }
        let without = (0..objects.len()).find(|index| !objects.etag(*index).is_some_and(is_etag_hint));
        if let Some(index) = without {
            return Err(Error::config(format!(
                "cannot materialize: expected an ETag of each object, which tells its version, found none of `{}`; list the objects with ETags",
                objects.key(index)
            )));
        }
        let mut prefix = prefix;
        // A prefix need not end with a folder, and names never begin within one.
        if !prefix.ends_with('/') {
            prefix = prefix.rfind('/').map_or("", |end| &prefix[..=end]);
        }
        let has_prefix = (0..objects.len()).all(|index| {
            let key = objects.key(index);
            key.len() > prefix.len() && key.starts_with(prefix)
        });
        Ok(Self {
            prefix: if has_prefix {
                prefix.to_owned()
            } else {
                String::new()
            },
            labels: labels.map(Arc::new),
            changes: Arc::default(),
            objects,
        })
    }

    /// The samples of a part that are there, in their versions of now.
    pub(super) fn current(&self, part: &[u32]) -> Vec<CurrentSample<'_>> {
        let changes = self.changes.lock();
        let current = |index: &u32| {
            let object = self.objects.object(*index as usize);
            let etag = match changes.get(index) {
                Some(changed) => changed.clone()?,
                None => object.etag.unwrap_or_default().to_owned(),
            };
            Some(CurrentSample {
                index: *index,
                object,
                etag,
            })
        };
        part.iter().filter_map(current).collect()
    }

    /// The label of a sample.
    pub(super) fn label(&self, index: u32) -> Option<Label> {
        self.labels.as_ref().map(|labels| labels.get(index as usize))
    }

    /// The name of a sample in a part: its key without the prefix, and behind it the member for a sample of a shard.
    pub(super) fn name_in_part(&self, index: u32) -> String {
        let object = self.objects.object(index as usize);
        let name = object.key.strip_prefix(&self.prefix).unwrap_or(object.key);
        match object.member {
            Some(member) => format!("{name}/{}", member.name),
            None => name.to_owned(),
        }
    }

    /// Names of the objects that are gone.
    pub(super) fn vanished(&self) -> Vec<String> {
        let changes = self.changes.lock();
        let gone = changes.iter().filter(|(_, etag)| etag.is_none());
        gone.map(|(index, _)| shown_name(&self.objects, *index)).collect()
    }

    /// Lists objects again that are no longer those of the list.
    ///
    /// # Errors
    /// [`ErrorKind::Sample`] for members of a shard that was replaced: its index is needed; those of the store.
    pub(super) async fn list_again<'a>(
        &self,
        store: &Store,
        changed: impl Iterator<Item = &'a CurrentSample<'a>>,
    ) -> Result<()> {
        let bucket = self.objects.bucket();
        for &CurrentSample { index, object, .. } in changed {
            if object.member.is_some() {
                let text = format!(
                    "the shard `{}` was replaced after it was indexed: run `pushdown index` again",
                    object.key
                );
                return Err(Error::new(ErrorKind::Sample, text));
            }
            let listed = store
                .list_objects_with(bucket, object.key, HiddenObjects::Listed, |_| ())
                .await?;
            let found = listed.iter().find(|listed| listed.key == object.key);
            let etag = found.and_then(|found| found.etag).map(str::to_owned);
            self.changes.lock().insert(index, etag);
        }
        Ok(())
    }
}
