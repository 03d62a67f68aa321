//! Progress of a read, a batch or a row group, for the pacing of the next one.

use std::{sync::OnceLock, time::Duration};

use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Progress of a read since it began.
#[derive(Debug)]
pub(crate) struct BatchProgress {
    began: Instant,
    /// Time until the first answer began.
    answered: OnceLock<Duration>,
    /// Time until enough had arrived for the next read to begin.
    enough: OnceLock<Duration>,
    /// Cancelled with `enough`, or when nothing more is read.
    next_allowed: CancellationToken,
}

/// Times since a read began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArrivalTimes {
    /// Until the first answer began.
    pub(crate) first_answer: Duration,
    /// Until enough had arrived for the next one to begin.
    pub(crate) enough: Duration,
}

impl BatchProgress {
    /// Progress of a read that begins now.
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            answered: OnceLock::new(),
            enough: OnceLock::new(),
            next_allowed: CancellationToken::new(),
        }
    }

    /// When the read began.
    pub(crate) const fn began(&self) -> Instant {
        self.began
    }

    /// Records that an answer begins.
    pub(crate) fn mark_answered(&self) {
        self.answered.get_or_init(|| self.began.elapsed());
    }

    /// Lets the next read begin: enough has arrived, or one of the two routes of a batch is done and idle.
    pub(crate) fn allow_next(&self) {
        self.enough.get_or_init(|| self.began.elapsed());
        self.next_allowed.cancel();
    }

    /// Lets the next read begin although not enough has arrived, which says nothing of the time that takes.
    pub(crate) fn allow_next_early(&self) {
        self.next_allowed.cancel();
    }

    /// The times of this read, if both events have happened.
    pub(crate) fn arrival_times(&self) -> Option<ArrivalTimes> {
        Some(ArrivalTimes {
            first_answer: *self.answered.get()?,
            enough: *self.enough.get()?,
        })
    }

    /// Waits until enough has arrived, or nothing more is read.
    pub(crate) async fn until_next_is_allowed(&self) {
        self.next_allowed.cancelled().await;
    }

    /// A guard to hold while it is read.
    pub(crate) fn read_guard(&self) -> DropGuard {
        self.next_allowed.clone().drop_guard()
    }
}
