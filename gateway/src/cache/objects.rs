//! The versions of objects that the gateway has read lately.

use std::sync::Arc;

use foyer::{Cache, CacheBuilder, EvictionConfig, FifoConfig};

use super::SourceHead;
use crate::origin::ObjectId;

/// The last known version of each object, in bounded memory. Nothing in it proves that the version still exists, or that
/// anybody may read it: it only tells which condition to send. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct KnownObjects(Cache<ObjectId, Arc<SourceHead>>);

impl KnownObjects {
    /// A table of at most `bytes`.
    pub(super) fn new(bytes: u64) -> Self {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let cache = CacheBuilder::new(bytes)
            .with_shards(4)
            .with_eviction_config(EvictionConfig::from(FifoConfig::default()))
            .with_weighter(|_: &ObjectId, head: &Arc<SourceHead>| size_of::<ObjectId>() + head.bytes())
            .build();
        Self(cache)
    }

    /// The last known version of an object.
    pub(super) fn get(&self, object: &ObjectId) -> Option<Arc<SourceHead>> {
        self.0.get(object).map(|entry| Arc::clone(entry.value()))
    }

    /// Remembers a version.
    pub(super) fn insert(&self, object: ObjectId, head: Arc<SourceHead>) {
        if self.get(&object).is_none_or(|known| known != head) {
            self.0.insert(object, head);
        }
    }

    /// Forgets an object that the store no longer has.
    pub(super) fn remove(&self, object: &ObjectId) {
        self.0.remove(object);
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, Uri, header};
    use pushdown::BytesKind;

    use super::*;

    fn object(number: usize) -> ObjectId {
        ObjectId::new(None, &format!("/b/{number}").parse::<Uri>().unwrap())
    }

    fn head(etag: &str) -> Arc<SourceHead> {
        let answer = HeaderMap::from_iter([(header::ETAG, HeaderValue::from_str(etag).unwrap())]);
        Arc::new(SourceHead::new(5, BytesKind::default(), &answer).unwrap())
    }

    #[test]
    fn a_later_version_replaces_an_earlier_one() {
        let objects = KnownObjects::new(1 << 20);
        for etag in ["\"1\"", "\"2\"", "\"2\""] {
            objects.insert(object(0), head(etag));
        }
        assert_eq!(objects.get(&object(0)), Some(head("\"2\"")));
        objects.remove(&object(0));
        assert_eq!(objects.get(&object(0)), None);
    }

    #[test]
    fn memory_is_bounded() {
        let objects = KnownObjects::new(100 << 10);
        (0..10_000).for_each(|number| objects.insert(object(number), head("\"1\"")));
        assert!(objects.0.usage() <= 100 << 10);
        assert!(objects.get(&object(9_999)).is_some() && objects.get(&object(0)).is_none());
    }
}
