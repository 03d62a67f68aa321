//! How far a batch has come: what the next one waits for.

use std::{sync::OnceLock, time::Duration};

use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

/// What has come of a batch, from when it began.
#[derive(Debug)]
pub(crate) struct Progress {
    began: Instant,
    /// Until an answer began.
    answered: OnceLock<Duration>,
    /// Until half of the samples were there.
    half: OnceLock<Duration>,
    /// Cancelled with `half`, or once the batch is no longer read.
    past_half: CancellationToken,
}

impl Progress {
    /// Of a batch that begins now.
    pub(crate) fn new() -> Self {
        Self {
            began: Instant::now(),
            answered: OnceLock::new(),
            half: OnceLock::new(),
            past_half: CancellationToken::new(),
        }
    }

    /// When it began.
    pub(crate) const fn began(&self) -> Instant {
        self.began
    }

    /// An answer begins.
    pub(crate) fn answered(&self) {
        self.answered.get_or_init(|| self.began.elapsed());
    }

    /// Half of the samples are there, or all that one of the two sides brings, which has nothing to do then.
    pub(crate) fn half(&self) {
        self.half.get_or_init(|| self.began.elapsed());
        self.past_half.cancel();
    }

    /// How long the first answer took to begin, and half of the samples to come, where both have.
    pub(crate) fn took(&self) -> Option<(Duration, Duration)> {
        Some((*self.answered.get()?, *self.half.get()?))
    }

    /// Waits until half of it is there, or nobody reads it.
    pub(crate) async fn past_half(&self) {
        self.past_half.cancelled().await;
    }

    /// What is held as long as it is read.
    pub(crate) fn reading(&self) -> DropGuard {
        self.past_half.clone().drop_guard()
    }
}
