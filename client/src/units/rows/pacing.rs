//! When the next row group is requested from the gateway.

use std::sync::Arc;

use pushdown_exec::sync::Mutex;
use tokio_util::sync::DropGuard;

use crate::planning::{BatchPacer, BatchProgress};

/// Spaces the reads of row groups that the gateway computes.
///
/// Row groups that are requested together arrive together, the first one as late as the last. So with N requests each one begins once the Nth
/// part of the one before has arrived. The gateway may compute each of them on one core, so N of them are in flight then.
#[derive(Debug)]
pub(super) struct RowGroupPacer {
    /// The most requests in flight.
    requests: u64,
    pacer: BatchPacer,
    /// The row group that was requested last.
    last: Mutex<Option<Arc<BatchProgress>>>,
}

/// A row group that the gateway computes. The next one may begin when this is dropped.
#[derive(Debug)]
pub(super) struct PacedRead {
    progress: Arc<BatchProgress>,
    /// Bytes that arrive before the next one begins.
    enough_bytes: u64,
    pacer: Arc<RowGroupPacer>,
    _guard: DropGuard,
}

impl RowGroupPacer {
    pub(super) fn new(requests: usize) -> Self {
        Self {
            requests: requests.max(1) as u64,
            pacer: BatchPacer::default(),
            last: Mutex::default(),
        }
    }

    /// Waits until the next row group may be requested.
    pub(super) async fn wait_for_next(&self) {
        let last = self.last.lock().clone();
        if let Some(last) = last {
            self.pacer.wait_for_next(&last).await;
        }
    }

    /// Begins to read a row group of about this many bytes.
    pub(super) fn begin(self: &Arc<Self>, expected_bytes: u64) -> PacedRead {
        let progress = Arc::new(BatchProgress::new());
        *self.last.lock() = Some(Arc::clone(&progress));
        PacedRead {
            _guard: progress.read_guard(),
            progress,
            enough_bytes: expected_bytes / self.requests,
            pacer: Arc::clone(self),
        }
    }
}

impl PacedRead {
    /// Records how many bytes have arrived so far.
    pub(super) fn arrived(&self, bytes: u64) {
        self.progress.mark_answered();
        if bytes >= self.enough_bytes {
            self.progress.allow_next();
        }
    }
}

impl Drop for PacedRead {
    fn drop(&mut self) {
        self.pacer.pacer.observe(&self.progress);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_row_group_begins_when_a_part_of_the_last_one_has_arrived_or_it_has_ended() {
        let pacer = Arc::new(RowGroupPacer::new(4));
        let may_begin = || pacer.wait_for_next().now_or_never().is_some();
        assert!(may_begin());
        let first = pacer.begin(100);
        assert!(!may_begin());
        first.arrived(24);
        assert!(!may_begin());
        first.arrived(25);
        assert!(may_begin(), "a quarter of it has arrived");
        let second = pacer.begin(100);
        assert!(!may_begin());
        drop(second);
        assert!(may_begin(), "it has ended");
    }
}
