//! How long a gateway has sent nothing, and how long it may.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use pushdown_exec::sync::Mutex;
use tokio::time::Instant;

use crate::stats::Traffic;

/// The least silence after which a gateway is probed.
const MIN_LIMIT: Duration = Duration::from_secs(3);
/// A silence is long if it exceeds the median wait for rows by this factor.
const FACTOR: u32 = 10;
/// Waits for rows that are remembered.
const MAX_WAITS: usize = 63;

/// What a gateway has sent, over all connections, and when.
#[derive(Debug)]
pub(super) struct Silence {
    traffic: Arc<Traffic>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Bytes received when that was observed last.
    received_bytes: u64,
    /// When they were observed to have grown.
    grown: Instant,
    /// The latest waits for rows.
    waits: VecDeque<Duration>,
}

impl Silence {
    pub(super) fn new(traffic: Arc<Traffic>) -> Self {
        Self {
            traffic,
            state: Mutex::new(State {
                received_bytes: 0,
                grown: Instant::now(),
                waits: VecDeque::new(),
            }),
        }
    }

    /// Bytes that the gateway has sent so far.
    pub(super) fn received_bytes(&self) -> u64 {
        self.traffic.received_bytes()
    }

    /// How long it has sent nothing, since `began` at most.
    pub(super) fn since(&self, began: Instant) -> Duration {
        let mut state = self.state.lock();
        let received_bytes = self.received_bytes();
        if state.received_bytes != received_bytes {
            (state.received_bytes, state.grown) = (received_bytes, Instant::now());
        }
        state.grown.max(began).elapsed()
    }

    /// Records how long rows were waited for.
    pub(super) fn observe_rows(&self, wait: Duration) {
        let waits = &mut self.state.lock().waits;
        waits.truncate(MAX_WAITS - 1);
        waits.push_front(wait);
    }

    /// The silence after which the gateway is probed.
    pub(super) fn limit(&self) -> Duration {
        let mut waits: Vec<Duration> = self.state.lock().waits.iter().copied().collect();
        let middle = waits.len() / 2;
        let median = match waits.get(middle) {
            Some(_) => *waits.select_nth_unstable(middle).1,
            None => Duration::ZERO,
        };
        median.saturating_mul(FACTOR).max(MIN_LIMIT)
    }
}
