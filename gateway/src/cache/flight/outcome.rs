//! The result of a flight, on its way to those who wait for it.

use std::sync::{Arc, Weak};

use tokio::sync::oneshot;

/// A result that is awaited, or that those who got it own.
#[derive(Debug)]
pub(super) enum Outcome<R> {
    /// The channels of those who wait.
    Awaited(Vec<oneshot::Sender<Arc<R>>>),
    /// The result, as long as somebody has it.
    Done(Weak<R>),
    /// The computation ended without a result.
    Missing,
}

/// Waits for a result.
#[derive(Debug)]
pub struct PendingResult<R>(oneshot::Receiver<Arc<R>>);

impl<R> Outcome<R> {
    /// A place among those who wait. `None` if there was a result, and nobody has it any more, or if there is none.
    pub(super) fn pending_result(&mut self) -> Option<PendingResult<R>> {
        let (sender, receiver) = oneshot::channel();
        match self {
            Self::Awaited(senders) => senders.push(sender),
            // The receiver exists.
            Self::Done(result) => drop(sender.send(result.upgrade()?)),
            Self::Missing => return None,
        }
        Some(PendingResult(receiver))
    }

    /// Ends without a result, if there is none yet. Returns whether that is so.
    pub(super) fn abandon(&mut self) -> bool {
        let is_awaited = matches!(self, Self::Awaited(_));
        if is_awaited {
            *self = Self::Missing;
        }
        is_awaited
    }

    /// Hands the result to all who wait.
    pub(super) fn done(&mut self, result: &Arc<R>) {
        if let Self::Awaited(senders) = std::mem::replace(self, Self::Done(Arc::downgrade(result))) {
            for sender in senders {
                // A receiver that is gone needs no result.
                drop(sender.send(Arc::clone(result)));
            }
        }
    }
}

impl<R> Default for Outcome<R> {
    fn default() -> Self {
        Self::Awaited(Vec::new())
    }
}

impl<R> PendingResult<R> {
    /// The result; `None` if the computation ended without one.
    pub async fn result(self) -> Option<Arc<R>> {
        self.0.await.ok()
    }
}
