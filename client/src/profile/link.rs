//! How fast the link is.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::future::join_all;
use pushdown::Limits;

use super::{LONG, float};
use crate::{
    error::Result,
    store::{Object, Store},
};

/// Objects that are read at a time, as a reader does.
pub(super) const TOGETHER: usize = 12;

/// What came over the link, and how long that took. Objects are read together: one alone fits into what a link lets
/// through at once, and tells of its latency.
#[derive(Debug, Default)]
pub(super) struct Link {
    bytes: usize,
    time: Duration,
}

impl Link {
    /// Reads these objects, at most [`TOGETHER`], each with its key.
    pub(super) async fn read(
        &mut self,
        store: &Store,
        bucket: &str,
        objects: &[Object],
    ) -> Vec<(Arc<str>, Result<Bytes>)> {
        let limits = Limits::default();
        let started = Instant::now();
        let reads = objects.iter().map(async |object| {
            let stored = store.get(bucket, &object.key, &limits).await;
            (Arc::clone(&object.key), stored)
        });
        let read = join_all(reads).await;
        let lengths = read.iter().flat_map(|(_, stored)| stored).map(Bytes::len);
        self.bytes += lengths.sum::<usize>();
        self.time += started.elapsed();
        read
    }

    /// Bytes per second: the link is at least as fast. `None` where these were too few bytes to tell.
    pub(super) fn rate(&self) -> Option<f64> {
        (self.bytes >= LONG).then(|| float(self.bytes as u64) / self.time.as_secs_f64())
    }
}
