//! Decides when batches begin, if more than one may be in flight.

use std::time::Duration;

use pushdown_exec::sync::Mutex;
use tokio::time::timeout_at;

use super::progress::{ArrivalTimes, BatchProgress};

/// Spaces batches in time.
///
/// Batches that begin together also end together, so the first one, which the consumer waits for, would be as late as the
/// last. At the end of an epoch the trainer would still have two steps to run with nothing left to read. So each batch
/// begins once half of the previous one has arrived, or one of the two routes is idle. If answers take long to begin, as
/// over a long link, the link would be empty until then: the batch begins earlier by that latency.
#[derive(Debug, Default)]
pub(crate) struct BatchPacer(Mutex<Option<BatchTimes>>);

/// Times of completed batches.
#[derive(Debug, Clone, Copy)]
struct BatchTimes {
    /// The shortest time until an answer began. Longer times include waiting for other batches.
    latency: Duration,
    /// Time until enough of the last batch had arrived.
    enough: Duration,
}

impl BatchPacer {
    /// Records a batch that was read.
    pub(crate) fn observe(&self, batch: &BatchProgress) {
        let Some(ArrivalTimes { first_answer, enough }) = batch.arrival_times() else {
            return;
        };
        let mut times = self.0.lock();
        let latency = times.map_or(first_answer, |times| times.latency.min(first_answer));
        *times = Some(BatchTimes { latency, enough });
    }

    /// Waits until the batch after this one may begin.
    pub(crate) async fn wait_for_next(&self, batch: &BatchProgress) {
        let times = *self.0.lock();
        match times {
            None => batch.until_next_is_allowed().await,
            Some(BatchTimes { latency, enough }) => {
                let early = batch.began() + enough.saturating_sub(latency);
                // Both outcomes end the wait.
                drop(timeout_at(early, batch.until_next_is_allowed()).await);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::time::{Instant, sleep};

    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A batch that begins now, with its answer and half of its samples after these times in seconds.
    fn batch(answered: u64, half: u64) -> Arc<BatchProgress> {
        let progress = Arc::new(BatchProgress::new());
        let arriving = Arc::clone(&progress);
        tokio::spawn(async move {
            sleep(seconds(answered)).await;
            arriving.mark_answered();
            sleep(seconds(half - answered)).await;
            arriving.allow_next();
        });
        progress
    }

    /// How long the next batch waits after a batch that begins now.
    async fn waits(pacer: &BatchPacer, batch: &BatchProgress) -> Duration {
        let now = Instant::now();
        pacer.wait_for_next(batch).await;
        now.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_batch_begins_after_half_of_this_one_or_earlier_by_its_latency() {
        let pacer = BatchPacer::default();
        let first = batch(3, 10);
        assert_eq!(waits(&pacer, &first).await, seconds(10), "nothing is known yet");
        pacer.observe(&first);
        let second = batch(9, 20);
        assert_eq!(
            waits(&pacer, &second).await,
            seconds(10 - 3),
            "its answer begins when half of this one has arrived"
        );
        assert_eq!(
            waits(&pacer, &batch(1, 2)).await,
            seconds(2),
            "half has arrived earlier"
        );
        sleep(seconds(20)).await;
        pacer.observe(&second);
        assert_eq!(
            waits(&pacer, &batch(40, 50)).await,
            seconds(20 - 3),
            "a batch that waits for others does not measure the link"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn batches_that_arrive_at_once_do_not_wait() {
        let pacer = BatchPacer::default();
        let first = batch(5, 5);
        pacer.wait_for_next(&first).await;
        pacer.observe(&first);
        assert_eq!(waits(&pacer, &batch(5, 5)).await, seconds(0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_batch_does_not_delay_the_next() {
        let pacer = BatchPacer::default();
        let gone = batch(50, 100);
        drop(gone.read_guard());
        assert_eq!(waits(&pacer, &gone).await, seconds(0));
        pacer.observe(&gone);
        assert_eq!(
            waits(&pacer, &batch(1, 2)).await,
            seconds(2),
            "it was not measured"
        );
    }
}
