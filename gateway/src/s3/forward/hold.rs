//! Holds a body back until the store wants it (`Expect: 100-continue`).
//!
//! hyper tells the client to continue when its body is first polled. So the body is not polled before the
//! store said 100, or said nothing for a second; a store that refuses at once is passed on without any 100.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::task::AtomicWaker;
use http::StatusCode;
use tokio::time::Sleep;

/// A store that knows nothing of `Expect` just waits for the body.
const SILENCE: Duration = Duration::from_secs(1);

const HELD: u8 = 0;
/// The store wants the body.
const WANTED: u8 = 1;
/// The store answered without it: the client must not be told to continue any more.
const ANSWERED: u8 = 2;
/// That answer has ended: the body will never be sent, and its connection is of no further use.
const OVER: u8 = 3;

#[derive(Debug, Default)]
struct State {
    state: AtomicU8,
    waker: AtomicWaker,
}

impl State {
    fn advance(&self, to: u8, only_from: impl Fn(u8) -> bool) {
        let advanced = self
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
                only_from(now).then_some(to)
            })
            .is_ok();
        if advanced {
            self.waker.wake();
        }
    }
}

/// The body's side.
#[derive(Debug)]
pub(super) struct Hold {
    shared: Arc<State>,
    clock: Option<Pin<Box<Sleep>>>,
}

/// The side that knows what the store says.
#[derive(Debug, Clone)]
pub(super) struct Release(Arc<State>);

/// Ends the held request when dropped, if the store answered without its body.
#[derive(Debug)]
pub(super) struct Refusal(Arc<State>);

/// What a held body does when it is polled.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Send it.
    Send,
    /// It will never be sent.
    Never,
}

// === impl Hold ===

impl Hold {
    pub(super) fn new() -> (Self, Release) {
        let shared = Arc::new(State::default());
        (
            Self {
                shared: Arc::clone(&shared),
                clock: None,
            },
            Release(shared),
        )
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Verdict> {
        self.shared.waker.register(cx.waker());
        match self.shared.state.load(Ordering::Acquire) {
            WANTED => return Poll::Ready(Verdict::Send),
            OVER => return Poll::Ready(Verdict::Never),
            ANSWERED => return Poll::Pending,
            _held => {}
        }
        let clock = self
            .clock
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(SILENCE)));
        if clock.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.shared.advance(WANTED, |now| now == HELD);
        match self.shared.state.load(Ordering::Acquire) {
            WANTED => Poll::Ready(Verdict::Send),
            OVER => Poll::Ready(Verdict::Never),
            _answered => Poll::Pending,
        }
    }
}

// === impl Release ===

impl Release {
    /// The store said something before its answer.
    pub(super) fn informed(&self, status: StatusCode) {
        if status == StatusCode::CONTINUE {
            self.0.advance(WANTED, |now| now == HELD);
        }
    }

    /// The store's answer has begun.
    pub(super) fn answered(&self) {
        self.0.advance(ANSWERED, |now| now == HELD);
    }

    /// To be kept as long as the answer's body.
    pub(super) fn refuse_at_the_end(&self) -> Refusal {
        Refusal(Arc::clone(&self.0))
    }
}

impl Drop for Refusal {
    fn drop(&mut self) {
        self.0.advance(OVER, |now| now == HELD || now == ANSWERED);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn silence_lets_the_body_go_after_a_second() {
        let start = Instant::now();
        let (mut hold, _release) = Hold::new();
        assert_eq!(poll_fn(|cx| hold.poll(cx)).await, Verdict::Send);
        assert_eq!(start.elapsed(), SILENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_body_is_never_sent() {
        let (mut hold, release) = Hold::new();
        let refusal = release.refuse_at_the_end();
        release.answered();
        let held = tokio::time::timeout(Duration::from_mins(1), poll_fn(|cx| hold.poll(cx))).await;
        assert!(held.is_err(), "not polled while the answer is under way");
        drop(refusal);
        assert_eq!(poll_fn(|cx| hold.poll(cx)).await, Verdict::Never);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_once_wanted_stays_wanted() {
        let (mut hold, release) = Hold::new();
        release.informed(StatusCode::PROCESSING);
        assert!(futures::poll!(poll_fn(|cx| hold.poll(cx))).is_pending());
        release.informed(StatusCode::CONTINUE);
        release.answered();
        drop(release.refuse_at_the_end());
        assert_eq!(poll_fn(|cx| hold.poll(cx)).await, Verdict::Send);
    }
}
