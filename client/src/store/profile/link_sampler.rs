//! Measures the bandwidth of the link.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use bytes::Bytes;
use futures::future::join_all;
use pushdown::Limits;

use crate::{
    error::Result,
    measure::{LONG_OBJECT_BYTES, float},
    objects::Objects,
    store::Store,
};

/// Concurrent object reads, as in a reader.
pub(super) const MAX_CONCURRENT_READS: usize = 12;

/// Bytes received over the link, and the time that took. Objects are read concurrently: a single one fits into the link's
/// buffers and only measures latency.
#[derive(Debug, Default)]
pub(super) struct LinkSampler {
    bytes: usize,
    time: Duration,
}

impl LinkSampler {
    /// Reads the samples with these indices, at most [`MAX_CONCURRENT_READS`], and returns each with its index.
    pub(super) async fn read(
        &mut self,
        store: &Store,
        objects: &Objects,
        indices: Range<usize>,
    ) -> Vec<(usize, Result<Bytes>)> {
        let limits = Limits::default();
        let started = Instant::now();
        let reads = indices.map(async |index| {
            let object = objects.object(index);
            (index, store.get_sample(objects.bucket(), object, &limits).await)
        });
        let read = join_all(reads).await;
        let lengths = read.iter().flat_map(|(_, stored)| stored).map(Bytes::len);
        self.bytes += lengths.sum::<usize>();
        self.time += started.elapsed();
        read
    }

    /// Bytes per second: the link is at least this fast. `None` if too few bytes were read.
    pub(super) fn rate(&self) -> Option<f64> {
        (self.bytes >= LONG_OBJECT_BYTES).then(|| float(self.bytes as u64) / self.time.as_secs_f64())
    }
}
