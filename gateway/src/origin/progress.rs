//! Progress of an upload, so that a timeout names the end that stalls: the client or the store.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::{Error, ErrorKind};

/// Shared between a request's body and the wait for the answer. The body records progress.
#[derive(Debug)]
pub struct Progress {
    start: Instant,
    /// Milliseconds from `start` to the last progress.
    last_progress_ms: AtomicU64,
    is_waiting_for_client: AtomicBool,
}

/// The longest time without progress, by the end that has to act.
#[derive(Debug, Clone, Copy)]
pub struct StallTimeouts {
    /// While the client has to send.
    pub client: Duration,
    /// While the store has to read or answer.
    pub store: Duration,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            last_progress_ms: AtomicU64::new(0),
            is_waiting_for_client: AtomicBool::new(false),
        }
    }
}

impl Progress {
    /// The client sent bytes, or the end of the body: the store has to read them.
    pub fn on_client_sent(&self) {
        self.is_waiting_for_client.store(false, Ordering::Relaxed);
        self.touch();
    }

    /// The store read all bytes so far: the client has to send more.
    pub fn on_store_read(&self) {
        if !self.is_waiting_for_client.swap(true, Ordering::Relaxed) {
            self.touch();
        }
    }

    fn touch(&self) {
        let elapsed = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_progress_ms.store(elapsed, Ordering::Relaxed);
    }

    /// Resolves after a stall, with an error that names the stalled end.
    pub async fn wait_for_stall(&self, timeouts: StallTimeouts) -> Error {
        loop {
            let (limit, kind, message) = if self.is_waiting_for_client.load(Ordering::Relaxed) {
                (
                    timeouts.client,
                    ErrorKind::RequestTimeout,
                    "the client stopped sending the request's body",
                )
            } else {
                (
                    timeouts.store,
                    ErrorKind::OriginTimeout,
                    "the store did not answer in time",
                )
            };
            let elapsed = Duration::from_millis(self.last_progress_ms.load(Ordering::Relaxed));
            let deadline = self.start + elapsed + limit;
            if deadline <= Instant::now() {
                return Error::new(kind, message);
            }
            // Wakes at least after the shorter timeout, because the end that has to act may change.
            let shorter = Instant::now() + timeouts.client.min(timeouts.store);
            tokio::time::sleep_until(deadline.min(shorter)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUTS: StallTimeouts = StallTimeouts {
        client: Duration::from_mins(5),
        store: Duration::from_secs(30),
    };

    #[tokio::test(start_paused = true)]
    async fn a_stalled_store_times_out_after_its_limit() {
        let start = Instant::now();
        let progress = Progress::default();
        let error = progress.wait_for_stall(TIMEOUTS).await;
        assert_eq!(error.kind(), ErrorKind::OriginTimeout);
        assert_eq!(start.elapsed().as_secs(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_client_times_out_after_its_longer_limit() {
        let start = Instant::now();
        let progress = Progress::default();
        progress.on_store_read();
        assert_eq!(
            progress.wait_for_stall(TIMEOUTS).await.kind(),
            ErrorKind::RequestTimeout
        );
        assert_eq!(start.elapsed().as_secs(), 300);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_upload_continues_while_it_makes_progress() {
        let start = Instant::now();
        let progress = Progress::default();
        let upload = async {
            for _ in 0..100 {
                progress.on_store_read();
                tokio::time::sleep(Duration::from_secs(20)).await;
                progress.on_client_sent();
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            error = progress.wait_for_stall(TIMEOUTS) => assert_eq!(error.kind(), ErrorKind::OriginTimeout),
            () = upload => unreachable!(),
        }
        assert_eq!(start.elapsed().as_secs(), 2030);
    }
}
