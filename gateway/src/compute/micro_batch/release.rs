//! Returns memory that batches have freed.

use std::time::Duration;

use parking_lot::Mutex;
use pushdown::step::model::trim_heap;
use tokio::time::Instant;

/// Interval at which freed memory is returned to the system. Long enough that allocating it again costs almost nothing.
const RELEASE_INTERVAL: Duration = Duration::from_millis(100);

/// Returns freed memory to the system, unless that was done recently or another thread does it now.
pub(super) fn release_memory(released_at: &Mutex<Instant>) {
    if let Some(mut last) = released_at.try_lock()
        && last.elapsed() >= RELEASE_INTERVAL
    {
        trim_heap();
        *last = Instant::now();
    }
}
