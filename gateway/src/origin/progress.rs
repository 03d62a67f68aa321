//! Whose turn it is while a request's body travels, so that a deadline blames the side that is silent.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::{Error, ErrorKind};

/// Shared between a request's body, which notes each movement, and the wait for the answer.
#[derive(Debug)]
pub struct Progress {
    start: Instant,
    /// Milliseconds from `start` to the last movement.
    moved: AtomicU64,
    clients_turn: AtomicBool,
}

/// The longest silences, by whose turn it is.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// With the client, which should be sending.
    pub client: Duration,
    /// With the store, which should be reading, or answering.
    pub store: Duration,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            moved: AtomicU64::new(0),
            clients_turn: AtomicBool::new(false),
        }
    }
}

impl Progress {
    /// The client sent a piece, or all of it: now the store should take it.
    pub fn client_sent(&self) {
        self.clients_turn.store(false, Ordering::Relaxed);
        self.touch();
    }

    /// The store took everything so far: now the client should send.
    pub fn store_took(&self) {
        if !self.clients_turn.swap(true, Ordering::Relaxed) {
            self.touch();
        }
    }

    fn touch(&self) {
        let elapsed = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved.store(elapsed, Ordering::Relaxed);
    }

    /// Resolves, with the error that names the silent side, once nothing has moved for too long.
    pub async fn stalled(&self, patience: Patience) -> Error {
        loop {
            let (limit, kind, message) = if self.clients_turn.load(Ordering::Relaxed) {
                (
                    patience.client,
                    ErrorKind::RequestTimeout,
                    "the request's body stopped arriving",
                )
            } else {
                (
                    patience.store,
                    ErrorKind::OriginTimeout,
                    "the store did not answer in time",
                )
            };
            let moved = self.start + Duration::from_millis(self.moved.load(Ordering::Relaxed));
            let deadline = moved + limit;
            if deadline <= Instant::now() {
                return Error::new(kind, message);
            }
            // Wakes at least as often as the shorter limit, because the turn may change meanwhile.
            let shorter = Instant::now() + patience.client.min(patience.store);
            tokio::time::sleep_until(deadline.min(shorter)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience {
        client: Duration::from_mins(5),
        store: Duration::from_secs(30),
    };

    #[tokio::test(start_paused = true)]
    async fn a_silent_store_is_blamed_after_its_own_limit() {
        let start = Instant::now();
        let progress = Progress::default();
        let error = progress.stalled(PATIENCE).await;
        assert_eq!(error.kind(), ErrorKind::OriginTimeout);
        assert_eq!(start.elapsed().as_secs(), 30);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_client_is_blamed_after_the_longer_limit() {
        let start = Instant::now();
        let progress = Progress::default();
        progress.store_took();
        assert_eq!(progress.stalled(PATIENCE).await.kind(), ErrorKind::RequestTimeout);
        assert_eq!(start.elapsed().as_secs(), 300);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_upload_lives_as_long_as_it_moves() {
        let start = Instant::now();
        let progress = Progress::default();
        let upload = async {
            for _ in 0..100 {
                progress.store_took();
                tokio::time::sleep(Duration::from_secs(20)).await;
                progress.client_sent();
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            error = progress.stalled(PATIENCE) => assert_eq!(error.kind(), ErrorKind::OriginTimeout),
            () = upload => unreachable!(),
        }
        assert_eq!(start.elapsed().as_secs(), 2030);
    }
}
