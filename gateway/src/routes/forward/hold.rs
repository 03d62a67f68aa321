//! Delays a body until the store accepts it (`Expect: 100-continue`).
//!
//! hyper sends 100 Continue to the client when the body is first polled. The body is therefore not polled before the
//! store has sent 100, or has been silent for a second. If the store refuses at once, its answer is forwarded
//! without a 100.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::task::AtomicWaker;
use http::StatusCode;
use tokio::time::Sleep;

/// How long to wait for 100. A store that ignores `Expect` sends nothing and waits for the body.
const CONTINUE_TIMEOUT: Duration = Duration::from_secs(1);

const HELD: u8 = 0;
/// The store accepts the body.
const RELEASED: u8 = 1;
/// The store answered without the body: the client must no longer get a 100.
const ANSWERED: u8 = 2;
/// That answer has ended: the body will never be sent, and the connection cannot be reused.
const DISCARDED: u8 = 3;

#[derive(Debug, Default)]
struct HoldState {
    state: AtomicU8,
    waker: AtomicWaker,
}

impl HoldState {
    fn advance(&self, to: u8, is_allowed_from: impl Fn(u8) -> bool) {
        let advanced = self
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
                is_allowed_from(now).then_some(to)
            })
            .is_ok();
        if advanced {
            self.waker.wake();
        }
    }
}

/// The half that the body polls.
#[derive(Debug)]
pub(super) struct Hold {
    shared: Arc<HoldState>,
    clock: Option<Pin<Box<Sleep>>>,
}

/// The half that is notified of the store's answers.
#[derive(Debug, Clone)]
pub(super) struct Release(Arc<HoldState>);

/// Discards the body on drop, if the store answered without it.
#[derive(Debug)]
pub(super) struct DiscardOnDrop(Arc<HoldState>);

/// What to do with the body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HoldOutcome {
    /// Send the body.
    Send,
    /// The body will never be sent.
    Discard,
}

impl Hold {
    pub(super) fn new() -> (Self, Release) {
        let shared = Arc::new(HoldState::default());
        (
            Self {
                shared: Arc::clone(&shared),
                clock: None,
            },
            Release(shared),
        )
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<HoldOutcome> {
        self.shared.waker.register(cx.waker());
        match self.shared.state.load(Ordering::Acquire) {
            RELEASED => return Poll::Ready(HoldOutcome::Send),
            DISCARDED => return Poll::Ready(HoldOutcome::Discard),
            ANSWERED => return Poll::Pending,
            _held => {}
        }
        let clock = self
            .clock
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(CONTINUE_TIMEOUT)));
        if clock.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.shared.advance(RELEASED, |now| now == HELD);
        match self.shared.state.load(Ordering::Acquire) {
            RELEASED => Poll::Ready(HoldOutcome::Send),
            DISCARDED => Poll::Ready(HoldOutcome::Discard),
            _answered => Poll::Pending,
        }
    }
}

impl Release {
    /// Handles an informational (1xx) answer of the store.
    pub(super) fn on_informational(&self, status: StatusCode) {
        if status == StatusCode::CONTINUE {
            self.0.advance(RELEASED, |now| now == HELD);
        }
    }

    /// Handles the start of the store's final answer.
    pub(super) fn on_answer(&self) {
        self.0.advance(ANSWERED, |now| now == HELD);
    }

    /// A guard to keep as long as the answer's body.
    pub(super) fn discard_on_drop(&self) -> DiscardOnDrop {
        DiscardOnDrop(Arc::clone(&self.0))
    }
}

impl Drop for DiscardOnDrop {
    fn drop(&mut self) {
        self.0.advance(DISCARDED, |now| now == HELD || now == ANSWERED);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_is_sent_after_a_second_of_silence() {
        let start = Instant::now();
        let (mut hold, _release) = Hold::new();
        assert_eq!(poll_fn(|cx| hold.poll(cx)).await, HoldOutcome::Send);
        assert_eq!(start.elapsed(), CONTINUE_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_is_discarded_after_a_refusal() {
        let (mut hold, release) = Hold::new();
        let guard = release.discard_on_drop();
        release.on_answer();
        let held = tokio::time::timeout(Duration::from_mins(1), poll_fn(|cx| hold.poll(cx))).await;
        assert!(held.is_err(), "not polled before the answer has ended");
        drop(guard);
        assert_eq!(poll_fn(|cx| hold.poll(cx)).await, HoldOutcome::Discard);
    }

    #[tokio::test(start_paused = true)]
    async fn a_released_body_stays_released() {
        let (mut hold, release) = Hold::new();
        release.on_informational(StatusCode::PROCESSING);
        assert!(futures::poll!(poll_fn(|cx| hold.poll(cx))).is_pending());
        release.on_informational(StatusCode::CONTINUE);
        release.on_answer();
        drop(release.discard_on_drop());
        assert_eq!(poll_fn(|cx| hold.poll(cx)).await, HoldOutcome::Send);
    }
}
