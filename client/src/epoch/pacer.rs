//! Decides when reads begin, if more than one may be in flight: batches of objects, and row groups.

#[cfg(feature = "tables")]
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::{sync::Arc, time::Duration};

use pushdown_exec::sync::Mutex;
use tokio::time::timeout_at;
use tokio_util::sync::DropGuard;

use super::progress::{ArrivalTimes, BatchProgress};

/// Spaces reads in time.
///
/// Reads that begin together also end together, so the first one, which the consumer waits for, would be as late as the
/// last. At the end of an epoch the trainer would still have two steps to run with nothing left to read. So each read
/// begins once enough of the previous one has arrived. If answers take long to begin, as
/// over a long link, the link would be empty until then: the read begins earlier by that latency.
///
/// What is enough differs. A batch of objects has many requests that share link and gateway: half of its samples, or all of one of the
/// two routes, which is idle then. A row group is one request, which the gateway may compute on one core: with N requests the Nth part
/// of its bytes, so that N of them are in flight. Row groups that are read plainly share the link in the same way.
///
/// The gateway takes longer to answer than the store, so the times of each [`PaceClass`] say nothing of the other one.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    times: Mutex<ClassTimes>,
    /// The read that began last.
    last: Mutex<Option<(PaceClass, Arc<BatchProgress>)>>,
}

/// Which reads take about as long as each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum PaceClass {
    /// What is read plainly, and batches of objects: each of them has samples of both routes.
    #[default]
    Plain,
    /// What the gateway computes as a whole.
    #[cfg(feature = "tables")]
    Pushed,
}

/// A read in flight. When it is dropped, it has ended, and the next one may begin.
#[derive(Debug)]
pub(crate) struct PacedRead {
    class: PaceClass,
    progress: Arc<BatchProgress>,
    pacer: Arc<Pacer>,
    _guard: DropGuard,
}

/// The read of a row group in flight, whose progress is counted in bytes.
#[cfg(feature = "tables")]
#[derive(Debug)]
pub(crate) struct PacedBytes {
    read: PacedRead,
    /// Bytes that arrive before the next read begins.
    enough_bytes: u64,
    arrived_bytes: AtomicU64,
}

/// The times of each class, once one of its reads was measured.
#[derive(Debug, Clone, Copy, Default)]
struct ClassTimes {
    plain: Option<ReadTimes>,
    #[cfg(feature = "tables")]
    pushed: Option<ReadTimes>,
}

/// Times of completed reads of a class.
#[derive(Debug, Clone, Copy)]
struct ReadTimes {
    /// The shortest time until an answer began. Longer times include waiting for other reads.
    latency: Duration,
    /// Time until enough of the last read had arrived.
    enough: Duration,
}

impl Pacer {
    /// Begins a read.
    pub(crate) fn begin(self: &Arc<Self>, class: PaceClass) -> PacedRead {
        let progress = Arc::new(BatchProgress::new());
        *self.last.lock() = Some((class, Arc::clone(&progress)));
        PacedRead {
            class,
            _guard: progress.read_guard(),
            progress,
            pacer: Arc::clone(self),
        }
    }

    /// Waits until the read after the last one may begin.
    pub(crate) async fn wait_for_next(&self) {
        let Some((class, last)) = self.last.lock().clone() else {
            return;
        };
        let times = *self.times.lock().of(class);
        match times {
            None => last.until_next_is_allowed().await,
            Some(ReadTimes { latency, enough }) => {
                let early = last.began() + enough.saturating_sub(latency);
                // Both outcomes end the wait.
                drop(timeout_at(early, last.until_next_is_allowed()).await);
            }
        }
    }

    /// Records a read that has ended.
    fn observe(&self, class: PaceClass, read: &BatchProgress) {
        let Some(ArrivalTimes { first_answer, enough }) = read.arrival_times() else {
            return;
        };
        let mut classes = self.times.lock();
        let times = classes.of(class);
        let latency = times.map_or(first_answer, |times| times.latency.min(first_answer));
        *times = Some(ReadTimes { latency, enough });
    }
}

impl ClassTimes {
    const fn of(&mut self, class: PaceClass) -> &mut Option<ReadTimes> {
        match class {
            PaceClass::Plain => &mut self.plain,
            #[cfg(feature = "tables")]
            PaceClass::Pushed => &mut self.pushed,
        }
    }
}

impl PacedRead {
    /// Its progress.
    pub(crate) const fn progress(&self) -> &Arc<BatchProgress> {
        &self.progress
    }

    /// The same, of about `expected_bytes` bytes, as one of `requests` in flight.
    #[cfg(feature = "tables")]
    pub(crate) fn of_bytes(self, expected_bytes: u64, requests: usize) -> PacedBytes {
        PacedBytes {
            read: self,
            enough_bytes: expected_bytes / requests.max(1) as u64,
            arrived_bytes: AtomicU64::new(0),
        }
    }
}

impl Drop for PacedRead {
    fn drop(&mut self) {
        self.pacer.observe(self.class, &self.progress);
    }
}

#[cfg(feature = "tables")]
impl PacedBytes {
    /// Records that more bytes have arrived.
    pub(crate) fn add(&self, bytes: u64) {
        self.read.progress.mark_answered();
        self.add_known(bytes);
    }

    /// Records bytes that were known: they say nothing of how long an answer takes.
    pub(crate) fn add_known(&self, bytes: u64) {
        let arrived = self.arrived_bytes.fetch_add(bytes, Relaxed).saturating_add(bytes);
        if arrived >= self.enough_bytes {
            self.read.progress.allow_next();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use tokio::time::{Instant, sleep};

    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A batch that begins now, with its answer and half of its samples after these times in seconds.
    fn batch(pacer: &Arc<Pacer>, answered: u64, half: u64) -> PacedRead {
        read_of(pacer, PaceClass::Plain, answered, half)
    }

    /// The same for a read of a class.
    fn read_of(pacer: &Arc<Pacer>, class: PaceClass, answered: u64, half: u64) -> PacedRead {
        let read = pacer.begin(class);
        let arriving = Arc::clone(read.progress());
        tokio::spawn(async move {
            sleep(seconds(answered)).await;
            arriving.mark_answered();
            sleep(seconds(half - answered)).await;
            arriving.allow_next();
        });
        read
    }

    /// How long the next batch waits after the last one, if that begins now.
    async fn waits(pacer: &Pacer) -> Duration {
        let now = Instant::now();
        pacer.wait_for_next().await;
        now.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_batch_begins_after_half_of_this_one_or_earlier_by_its_latency() {
        let pacer = Arc::new(Pacer::default());
        assert_eq!(waits(&pacer).await, seconds(0), "there is no other batch");
        let first = batch(&pacer, 3, 10);
        assert_eq!(waits(&pacer).await, seconds(10), "nothing is known yet");
        drop(first);
        let second = batch(&pacer, 9, 20);
        assert_eq!(
            waits(&pacer).await,
            seconds(10 - 3),
            "its answer begins when half of this one has arrived"
        );
        let _third = batch(&pacer, 1, 2);
        assert_eq!(waits(&pacer).await, seconds(2), "half has arrived earlier");
        sleep(seconds(20)).await;
        drop(second);
        let _fourth = batch(&pacer, 40, 50);
        assert_eq!(
            waits(&pacer).await,
            seconds(20 - 3),
            "a batch that waits for others does not measure the link"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn batches_that_arrive_at_once_do_not_wait() {
        let pacer = Arc::new(Pacer::default());
        let first = batch(&pacer, 5, 5);
        pacer.wait_for_next().await;
        drop(first);
        let _second = batch(&pacer, 5, 5);
        assert_eq!(waits(&pacer).await, seconds(0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_cancelled_batch_does_not_delay_the_next() {
        let pacer = Arc::new(Pacer::default());
        drop(batch(&pacer, 50, 100));
        assert_eq!(waits(&pacer).await, seconds(0));
        let _next = batch(&pacer, 1, 2);
        assert_eq!(waits(&pacer).await, seconds(2), "it was not measured");
    }

    #[cfg(feature = "tables")]
    #[tokio::test(start_paused = true)]
    async fn plain_and_pushed_row_groups_have_times_of_their_own() {
        let pacer = Arc::new(Pacer::default());
        let plain = batch(&pacer, 1, 4);
        pacer.wait_for_next().await;
        drop(plain);
        let pushed = read_of(&pacer, PaceClass::Pushed, 20, 30);
        assert_eq!(
            waits(&pacer).await,
            seconds(30),
            "nothing is known of what the gateway computes"
        );
        drop(pushed);
        let _plain = batch(&pacer, 50, 100);
        assert_eq!(waits(&pacer).await, seconds(4 - 1));
        let _pushed = read_of(&pacer, PaceClass::Pushed, 50, 100);
        assert_eq!(waits(&pacer).await, seconds(30 - 20));
    }

    #[cfg(feature = "tables")]
    #[tokio::test(start_paused = true)]
    async fn a_row_group_begins_when_a_part_of_the_last_one_has_arrived_or_it_has_ended() {
        let pacer = Arc::new(Pacer::default());
        let may_begin = || pacer.wait_for_next().now_or_never().is_some();
        assert!(may_begin());
        let first = pacer.begin(PaceClass::Pushed).of_bytes(100, 4);
        assert!(!may_begin());
        first.add(24);
        assert!(!may_begin());
        first.add(1);
        assert!(may_begin(), "a quarter of it has arrived");
        let second = pacer.begin(PaceClass::Pushed).of_bytes(100, 4);
        assert!(!may_begin());
        drop(second);
        assert!(may_begin(), "it has ended");
        let third = pacer.begin(PaceClass::Pushed).of_bytes(100, 4);
        third.add_known(25);
        assert!(may_begin(), "a quarter of it was known");
        assert!(
            third.read.progress.arrival_times().is_none(),
            "nothing was measured"
        );
    }
}
