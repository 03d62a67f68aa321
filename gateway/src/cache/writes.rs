//! When objects were written through the gateway last.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use http::{HeaderMap, Method, Uri, header};
use pushdown_s3::Address;
use tokio::time::Instant;

use crate::origin::ObjectId;

/// Number of hash slots for objects: 128 KiB. Objects with the same slot only cost each other requests to the store.
const OBJECT_SLOTS: usize = 16_384;
/// Number of hash slots for buckets: 8 KiB.
const BUCKET_SLOTS: usize = 1_024;

/// The times of the last writes, in fixed memory, so that none is ever forgotten. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Writes(Arc<Slots>);

#[derive(Debug)]
struct Slots {
    started: Instant,
    /// Nanoseconds after `started`, by the hash of a path.
    objects: Box<[AtomicU64]>,
    /// The same, by the hash of a bucket.
    buckets: Box<[AtomicU64]>,
}

/// A write through the gateway, of an object or of something in a bucket. What was confirmed before its end is not valid after it.
#[derive(Debug)]
pub struct PendingWrite {
    writes: Writes,
    object: ObjectId,
    /// Whether any object of the bucket may be written.
    is_bucket_wide: bool,
}

impl Writes {
    pub(super) fn new() -> Self {
        let slots = |count| (0..count).map(|_| AtomicU64::new(0)).collect();
        Self(Arc::new(Slots {
            started: Instant::now(),
            objects: slots(OBJECT_SLOTS),
            buckets: slots(BUCKET_SLOTS),
        }))
    }

    /// The write that a request may be; `None` for a method that reads.
    pub(super) fn begin(&self, method: &Method, target: &Uri, headers: &HeaderMap) -> Option<PendingWrite> {
        if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
            return None;
        }
        let write = PendingWrite {
            writes: self.clone(),
            object: ObjectId::new(headers.get(header::HOST), target),
            is_bucket_wide: !Address::new(None, target.path()).is_some_and(|address| address.is_object()),
        };
        write.forget();
        Some(write)
    }

    /// Notes that an object may have changed.
    pub(super) fn mark(&self, object: &ObjectId) {
        self.set(&self.0.objects, object.path_hash());
    }

    /// Whether an object may have been written at `time` or later.
    pub(super) fn is_written_since(&self, object: &ObjectId, time: Instant) -> bool {
        let time = self.nanoseconds(time);
        let is_since = |slots: &[AtomicU64], hash| {
            slot(slots, hash).is_none_or(|last| last.load(Ordering::Acquire) >= time)
        };
        is_since(&self.0.objects, object.path_hash()) || is_since(&self.0.buckets, object.container())
    }

    fn set(&self, slots: &[AtomicU64], hash: u64) {
        if let Some(slot) = slot(slots, hash) {
            slot.fetch_max(self.nanoseconds(Instant::now()), Ordering::AcqRel);
        }
    }

    fn nanoseconds(&self, time: Instant) -> u64 {
        let since = time.saturating_duration_since(self.0.started);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }
}

fn slot(slots: &[AtomicU64], hash: u64) -> Option<&AtomicU64> {
    let index = usize::try_from(hash % slots.len() as u64).ok()?;
    slots.get(index)
}

impl PendingWrite {
    /// Ends what is confirmed so far. To be called before any part of the answer leaves.
    pub fn forget(&self) {
        if self.is_bucket_wide {
            self.writes.set(&self.writes.0.buckets, self.object.container());
        } else {
            self.writes.mark(&self.object);
        }
    }
}

impl Drop for PendingWrite {
    /// A request that is given up may have been carried out.
    fn drop(&mut self) {
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(target: &'static str) -> ObjectId {
        ObjectId::new(None, &Uri::from_static(target))
    }

    fn begin(writes: &Writes, method: &Method, target: &'static str) -> Option<PendingWrite> {
        writes.begin(method, &Uri::from_static(target), &HeaderMap::new())
    }

    #[test]
    fn a_write_ends_what_was_confirmed_before_its_end() {
        let writes = Writes::new();
        let (written, other) = (object("/b/k%201?versionId=7"), object("/b/other"));
        let before = Instant::now();
        assert!(!writes.is_written_since(&written, before));
        let write = begin(&writes, &Method::PUT, "/b/k%201").unwrap();
        let during = Instant::now();
        assert!(writes.is_written_since(&written, before));
        drop(write);
        let after = Instant::now();
        assert!(writes.is_written_since(&written, during));
        assert!(!writes.is_written_since(&written, after + std::time::Duration::from_nanos(1)));
        assert!(!writes.is_written_since(&other, before));
    }

    #[test]
    fn a_write_to_a_bucket_is_one_to_all_its_objects() {
        for target in ["/b?delete", "/b/?delete", "/b"] {
            let writes = Writes::new();
            let before = Instant::now();
            begin(&writes, &Method::POST, target).unwrap().forget();
            assert!(writes.is_written_since(&object("/b/k"), before), "{target}");
            assert!(!writes.is_written_since(&object("/c/k"), before), "{target}");
        }
    }

    #[test]
    fn reads_are_no_writes() {
        let writes = Writes::new();
        for method in [Method::GET, Method::HEAD, Method::OPTIONS] {
            assert!(begin(&writes, &method, "/b/k").is_none());
        }
    }
}
