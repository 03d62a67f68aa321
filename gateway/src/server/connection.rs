//! A handle on the client's connection, found in the extensions of each of its requests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// One client connection. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Connection {
    peer: SocketAddr,
    abort: CancellationToken,
    patience: Arc<Patience>,
}

/// How long a write may make no progress.
#[derive(Debug)]
pub(super) struct Patience {
    usual: Duration,
    guarded: Mutex<Option<Duration>>,
}

/// While it lives, a client that takes no byte for a time loses its connection. Keep it in the answer's body.
#[derive(Debug)]
#[must_use = "the connection is guarded only as long as this lives"]
pub struct StallGuard(Arc<Patience>);

// === impl Connection ===

impl Connection {
    pub(super) fn new(peer: SocketAddr, abort: CancellationToken, patience: Duration) -> Self {
        let patience = Arc::new(Patience {
            usual: patience,
            guarded: Mutex::new(None),
        });
        Self {
            peer,
            abort,
            patience,
        }
    }

    /// The client's address.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Cuts the connection now, whatever is in flight on it.
    pub fn abort(&self) {
        self.abort.cancel();
    }

    /// Cuts the connection once the answer makes no write progress for `limit`, which also frees what its body
    /// holds. A connection carries one answer at a time.
    pub fn cut_when_stalled(&self, limit: Duration) -> StallGuard {
        *self.patience.guarded.lock() = Some(limit);
        StallGuard(Arc::clone(&self.patience))
    }

    pub(super) fn aborted(&self) -> WaitForCancellationFuture<'_> {
        self.abort.cancelled()
    }

    pub(super) fn patience(&self) -> Arc<Patience> {
        Arc::clone(&self.patience)
    }
}

impl Patience {
    pub(super) fn now(&self) -> Duration {
        self.guarded.lock().unwrap_or(self.usual)
    }
}

impl Drop for StallGuard {
    fn drop(&mut self) {
        *self.0.guarded.lock() = None;
    }
}
