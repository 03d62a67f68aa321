//! What a store sends: counted, and held back as long as a test wants.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use parking_lot::{Condvar, Mutex};

use crate::Exchange;

/// Longest wait of a test for what a store sends.
const LIMIT: Duration = Duration::from_mins(1);

/// What a store has sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Answers with the status 200 or 206.
    pub objects: usize,
    /// Answers with the status 304.
    pub not_modified: usize,
    /// Refusals.
    pub refused: usize,
    /// Bytes of objects.
    pub bytes: usize,
}

/// Counts answers, and can hold back the end of objects. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sending(Arc<(Mutex<State>, Condvar)>);

#[derive(Debug, Default)]
struct State {
    /// Objects are sent up to their half while this is set.
    is_stalled: bool,
    sent: Sent,
}

impl Sending {
    /// Stops sending objects at their half, or goes on.
    pub(crate) fn set_stalled(&self, is_stalled: bool) {
        self.0.0.lock().is_stalled = is_stalled;
        self.0.1.notify_all();
    }

    /// What has been sent so far.
    pub(crate) fn sent(&self) -> Sent {
        self.0.0.lock().sent
    }

    /// Waits until what has been sent fulfils a condition.
    pub(crate) fn wait_until(&self, is_fulfilled: impl Fn(Sent) -> bool) -> Result<()> {
        let (deadline, mut state) = (Instant::now() + LIMIT, self.0.0.lock());
        while !is_fulfilled(state.sent) {
            let has_timed_out = self.0.1.wait_until(&mut state, deadline).timed_out();
            ensure!(!has_timed_out, "the store has sent {:?}", state.sent);
        }
        Ok(())
    }

    /// Counts an answer with this status.
    pub(crate) fn count(&self, status: u16) {
        let sent = &mut self.0.0.lock().sent;
        match status {
            200 | 206 => sent.objects += 1,
            304 => sent.not_modified += 1,
            _ => sent.refused += 1,
        }
        self.0.1.notify_all();
    }

    /// Sends the body of an object, its second half only when it is not held back.
    pub(crate) fn send(&self, exchange: &mut Exchange, body: &[u8]) -> io::Result<()> {
        let (first, rest) = body.split_at(body.len() / 2);
        exchange.send(first)?;
        let mut state = self.0.0.lock();
        while state.is_stalled {
            self.0.1.wait(&mut state);
        }
        drop(state);
        exchange.send(rest)?;
        self.0.0.lock().sent.bytes += body.len();
        self.0.1.notify_all();
        Ok(())
    }
}
