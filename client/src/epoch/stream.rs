//! What the consumer polls: an epoch that has not begun, is read, or has ended.

use std::{
    fmt,
    task::{Context, Poll},
};

use futures::{Stream, StreamExt as _};
use tokio::time::Instant;

use crate::{
    error::Result,
    stats::{Counters, add},
};

/// What a reader receives of an epoch. After the last item, and after an error, it has ended.
pub(crate) struct EpochStream<S> {
    state: State<S>,
    /// Since when the consumer waits.
    waiting_since: Option<Instant>,
}

enum State<S> {
    Idle,
    Reading(S),
    Ended,
}

impl<S> EpochStream<S> {
    /// An epoch that has not begun.
    pub(crate) const fn new() -> Self {
        Self {
            state: State::Idle,
            waiting_since: None,
        }
    }

    /// The next epoch, which has not begun. Drops what was prefetched.
    pub(crate) fn restart(&mut self) {
        self.state = State::Idle;
    }

    /// Whether the epoch has not begun.
    pub(crate) const fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle)
    }

    /// Begins to read what `arriving` delivers.
    pub(crate) fn begin(&mut self, arriving: S) {
        self.state = State::Reading(arriving);
    }

    /// The next item, as `accept` hands it over. Counts the time that the consumer waits.
    pub(crate) fn poll_next<T, B>(
        &mut self,
        context: &mut Context<'_>,
        counters: &Counters,
        accept: impl FnOnce(T) -> Result<B>,
    ) -> Poll<Option<Result<B>>>
    where
        S: Stream<Item = Result<T>> + Unpin,
    {
        let State::Reading(arriving) = &mut self.state else {
            return Poll::Ready(None);
        };
        let Poll::Ready(arrived) = arriving.poll_next_unpin(context) else {
            self.waiting_since.get_or_insert_with(Instant::now);
            return Poll::Pending;
        };
        if let Some(since) = self.waiting_since.take() {
            let nanos = u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX);
            add(&counters.waiting_nanos, nanos);
        }
        let handed_over = arrived.map(|arrived| arrived.and_then(accept));
        if !matches!(handed_over, Some(Ok(_))) {
            self.state = State::Ended;
        }
        Poll::Ready(handed_over)
    }
}

impl<S> fmt::Debug for EpochStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            State::Idle => "Idle",
            State::Reading(_) => "Reading",
            State::Ended => "Ended",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, sync::atomic::Ordering::Relaxed, time::Duration};

    use futures::stream::{self, BoxStream};
    use tokio::time::sleep;

    use super::*;
    use crate::error::Error;

    type Numbers = EpochStream<BoxStream<'static, Result<u32>>>;

    /// The next number; 2 is refused when it is handed over.
    async fn next(epoch: &mut Numbers, counters: &Counters) -> Option<Result<u32>> {
        if epoch.is_idle() {
            epoch.begin(stream::iter((0..5).map(Ok)).boxed());
        }
        let accept = |number| match number {
            2 => Err(Error::internal("two")),
            number => Ok(number),
        };
        poll_fn(|context| epoch.poll_next(context, counters, accept)).await
    }

    #[tokio::test]
    async fn an_error_ends_the_epoch_and_the_next_one_begins_anew() {
        let (mut epoch, counters) = (Numbers::new(), Counters::default());
        for _ in 0..2 {
            for expected in 0..2 {
                assert_eq!(next(&mut epoch, &counters).await.unwrap().unwrap(), expected);
            }
            assert!(next(&mut epoch, &counters).await.unwrap().is_err());
            assert!(next(&mut epoch, &counters).await.is_none());
            epoch.restart();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_that_the_consumer_waits_is_counted() {
        let (mut epoch, counters) = (Numbers::new(), Counters::default());
        let late = stream::once(async {
            sleep(Duration::from_secs(3)).await;
            Ok(7)
        });
        epoch.begin(late.boxed());
        let number = poll_fn(|context| epoch.poll_next(context, &counters, Ok)).await;
        assert_eq!(number.unwrap().unwrap(), 7);
        assert_eq!(counters.waiting_nanos.load(Relaxed), 3_000_000_000);
    }
}
