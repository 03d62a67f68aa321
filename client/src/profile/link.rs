//! How fast the link is, where no object is long enough to tell alone.

use std::time::Instant;

use futures::future::join_all;
use pushdown::Limits;

use super::{LONG, float};
use crate::store::{Object, Store};

/// Objects that are read at a time, as a reader does.
const TOGETHER: usize = 12;

/// Bytes per second of short objects that are read together: the link is at least as fast. One short object fits into
/// what a link lets through at once, and tells of its latency. `None` where all of them are too few bytes to tell.
pub(super) async fn of_many(store: &Store, bucket: &str, objects: &[Object]) -> Option<f64> {
    let limits = Limits::default();
    let started = Instant::now();
    let some = objects.iter().take(TOGETHER);
    let reads = some.map(|object| store.get(bucket, &object.key, &limits));
    let read: usize = join_all(reads)
        .await
        .iter()
        .flatten()
        .map(bytes::Bytes::len)
        .sum();
    (read >= LONG).then(|| float(read as u64) / started.elapsed().as_secs_f64())
}
