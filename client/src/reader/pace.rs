//! When batches begin, where more than one may be on its way.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::timeout_at;

use crate::session::Progress;

/// Keeps batches apart.
///
/// Those that begin at once come at once, and the first, which is waited for, as late as the last; at the end of an epoch a trainer
/// has two steps before it then, and nothing is left to come meanwhile. So each begins once half of the one before is there, or
/// one side has nothing left to do. Where answers take long to begin, as over a long link, the link would be empty until then: it
/// begins so much earlier.
#[derive(Debug, Default)]
pub(super) struct Pace(Mutex<Option<Seen>>);

/// What is known from batches that came.
#[derive(Debug, Clone, Copy)]
struct Seen {
    /// The shortest time until an answer began: what took longer had others before it.
    latency: Duration,
    /// How long half of the last batch took.
    half: Duration,
}

impl Pace {
    /// A batch has come.
    pub(super) fn came(&self, batch: &Progress) {
        let Some((answered, half)) = batch.took() else {
            return;
        };
        let mut seen = self.0.lock();
        let latency = seen.map_or(answered, |seen| seen.latency.min(answered));
        *seen = Some(Seen { latency, half });
    }

    /// Waits until the batch behind this one may begin.
    pub(super) async fn next(&self, batch: &Progress) {
        let seen = *self.0.lock();
        match seen {
            None => batch.past_half().await,
            Some(Seen { latency, half }) => {
                let early = batch.began() + half.saturating_sub(latency);
                // It may either way.
                drop(timeout_at(early, batch.past_half()).await);
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

    /// A batch that begins now, its answer and half of its samples after so many seconds.
    fn batch(answered: u64, half: u64) -> Arc<Progress> {
        let progress = Arc::new(Progress::new());
        let comes = Arc::clone(&progress);
        tokio::spawn(async move {
            sleep(seconds(answered)).await;
            comes.answered();
            sleep(seconds(half - answered)).await;
            comes.half();
        });
        progress
    }

    /// How long the next waits behind a batch that begins now.
    async fn waits(pace: &Pace, batch: &Progress) -> Duration {
        let now = Instant::now();
        pace.next(batch).await;
        now.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_begins_behind_half_of_a_batch_or_by_its_latency_earlier() {
        let pace = Pace::default();
        let first = batch(3, 10);
        assert_eq!(waits(&pace, &first).await, seconds(10), "nothing is known yet");
        pace.came(&first);
        let second = batch(9, 20);
        assert_eq!(
            waits(&pace, &second).await,
            seconds(10 - 3),
            "its answer begins with half of this one"
        );
        assert_eq!(
            waits(&pace, &batch(1, 2)).await,
            seconds(2),
            "half is there sooner"
        );
        sleep(seconds(20)).await;
        pace.came(&second);
        assert_eq!(
            waits(&pace, &batch(40, 50)).await,
            seconds(20 - 3),
            "a batch that waits behind others tells nothing of the link"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn where_all_comes_as_answers_begin_nobody_waits() {
        let pace = Pace::default();
        let first = batch(5, 5);
        pace.next(&first).await;
        pace.came(&first);
        assert_eq!(waits(&pace, &batch(5, 5)).await, seconds(0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_batch_that_is_given_up_holds_nobody_up() {
        let pace = Pace::default();
        let gone = batch(50, 100);
        drop(gone.reading());
        assert_eq!(waits(&pace, &gone).await, seconds(0));
        pace.came(&gone);
        assert_eq!(waits(&pace, &batch(1, 2)).await, seconds(2), "it tells nothing");
    }
}
