//! Progress of a batch, for the pacing of the next one.

use std::{sync::OnceLock, time::Duration};

use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Progress of a batch since it began.
#[derive(Debug)]
pub(crate) struct BatchProgress {
    began: Instant,
    /// Time until the first answer began.
    answered: OnceLock<Duration>,
    /// Time until half of the samples had arrived.
    half: OnceLock<Duration>,
    /// Cancelled with `half`, or when the batch is no longer read.
    past_half: CancellationToken,
}

/// Times since a batch began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArrivalTimes {
    /// Until the first answer began.
    pub(crate) first_answer: Duration,
    /// Until half of the samples had arrived.
    pub(crate) half: Duration,
}

impl BatchProgress {
    /// Progress of a batch that begins now.
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            answered: OnceLock::new(),
            half: OnceLock::new(),
            past_half: CancellationToken::new(),
        }
    }

    /// When the batch began.
    pub(crate) const fn began(&self) -> Instant {
        self.began
    }

    /// Records that an answer begins.
    pub(crate) fn mark_answered(&self) {
        self.answered.get_or_init(|| self.began.elapsed());
    }

    /// Records that half of the samples have arrived, or that one of the two routes is done and idle.
    pub(crate) fn mark_half(&self) {
        self.half.get_or_init(|| self.began.elapsed());
        self.past_half.cancel();
    }

    /// The times of this batch, if both events have happened.
    pub(crate) fn arrival_times(&self) -> Option<ArrivalTimes> {
        Some(ArrivalTimes {
            first_answer: *self.answered.get()?,
            half: *self.half.get()?,
        })
    }

    /// Waits until half of the batch has arrived, or the batch is no longer read.
    pub(crate) async fn wait_for_half(&self) {
        self.past_half.cancelled().await;
    }

    /// A guard to hold while the batch is read.
    pub(crate) fn read_guard(&self) -> DropGuard {
        self.past_half.clone().drop_guard()
    }
}
