//! The part of the budget for callers that nobody has verified.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use tokio::sync::Semaphore;

use super::semaphore;
use crate::{compute::BodySize, config::UnverifiedBytes};

/// The memory of unverified bodies. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct UnverifiedBudget {
    small: SizeBudget,
    large: SizeBudget,
}

/// The memory of unverified bodies of one size. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct SizeBudget {
    pub(super) units: Arc<Semaphore>,
    pub(super) total_bytes: u64,
    waiting: Arc<AtomicUsize>,
}

/// Counts a caller that waits, until it is dropped.
#[must_use = "the wait ends when this is dropped"]
pub(super) struct Waiting<'a>(&'a AtomicUsize);

impl UnverifiedBudget {
    pub(super) fn new(bytes: UnverifiedBytes) -> Self {
        Self {
            small: SizeBudget::new(bytes.small),
            large: SizeBudget::new(bytes.large),
        }
    }

    pub(super) const fn of(&self, size: BodySize) -> &SizeBudget {
        match size {
            BodySize::Small => &self.small,
            BodySize::Large => &self.large,
        }
    }
}

impl SizeBudget {
    fn new(bytes: u64) -> Self {
        Self {
            units: semaphore(bytes),
            total_bytes: bytes,
            waiting: Arc::default(),
        }
    }

    /// Counts a caller that waits for these units.
    pub(super) fn wait(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, Relaxed);
        Waiting(&self.waiting)
    }

    /// Whether a caller waits for these units.
    pub(super) fn is_awaited(&self) -> bool {
        self.waiting.load(Relaxed) > 0
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
