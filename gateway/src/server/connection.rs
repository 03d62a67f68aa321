//! A handle to the client's connection, in the extensions of each request.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use super::entrance::NoSlot;

/// One client connection. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Connection {
    peer: SocketAddr,
    is_encrypted: bool,
    has_ambiguous_framing: bool,
    no_slot: Option<NoSlot>,
    abort: CancellationToken,
    stall_limit: Arc<StallLimit>,
}

/// How long a write may make no progress.
#[derive(Debug)]
pub(super) struct StallLimit {
    default: Duration,
    guarded: Mutex<Option<Duration>>,
}

/// Until it is dropped, the connection is cut if the client reads no byte for a time. Keep it in the answer's body.
#[derive(Debug)]
#[must_use = "the connection is guarded only until this is dropped"]
pub struct StallGuard(Arc<StallLimit>);

impl Connection {
    pub(super) fn new(
        peer: SocketAddr,
        is_encrypted: bool,
        abort: CancellationToken,
        stall_limit: Duration,
    ) -> Self {
        let stall_limit = Arc::new(StallLimit {
            default: stall_limit,
            guarded: Mutex::new(None),
        });
        Self {
            peer,
            is_encrypted,
            has_ambiguous_framing: false,
            no_slot: None,
            abort,
            stall_limit,
        }
    }

    /// The handle of a connection without a slot, on which only a probe is answered.
    pub(super) fn without_slot(self, no_slot: NoSlot) -> Self {
        Self {
            no_slot: Some(no_slot),
            ..self
        }
    }

    /// The handle in a request.
    pub(super) fn for_request(&self, has_ambiguous_framing: bool) -> Self {
        Self {
            has_ambiguous_framing,
            ..self.clone()
        }
    }

    /// The client's address.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Whether the client speaks TLS with this gateway, rather than with a proxy in front of it.
    pub fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    /// Whether the request was sent with two lengths, or with a length and an encoding: hyper keeps one of them.
    pub fn has_ambiguous_framing(&self) -> bool {
        self.has_ambiguous_framing
    }

    /// Why the connection has no slot, if it has none: then only a probe may be answered.
    pub fn no_slot(&self) -> Option<NoSlot> {
        self.no_slot
    }

    /// Cuts the connection when the answer makes no write progress for `limit`. This also frees the memory of its body. A
    /// connection carries one answer at a time.
    pub fn cut_when_stalled(&self, limit: Duration) -> StallGuard {
        *self.stall_limit.guarded.lock() = Some(limit);
        StallGuard(Arc::clone(&self.stall_limit))
    }

    pub(super) fn aborted(&self) -> WaitForCancellationFuture<'_> {
        self.abort.cancelled()
    }

    pub(super) fn stall_limit(&self) -> Arc<StallLimit> {
        Arc::clone(&self.stall_limit)
    }
}

impl StallLimit {
    pub(super) fn current(&self) -> Duration {
        self.guarded.lock().unwrap_or(self.default)
    }
}

impl Drop for StallGuard {
    fn drop(&mut self) {
        *self.0.guarded.lock() = None;
    }
}
