//! Retries of this crate's requests: pauses by tokio's timer, outages in the log, and a counter.

use std::{sync::Arc, time::Duration};

pub use pushdown_s3::RetryPolicy;
use pushdown_s3::{RetryContext, RetryEnvironment};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};

use crate::{
    outage_log::{OutageEntry, Outages},
    stats::{Counters, add},
};

/// The retry budget of one request.
pub(crate) type Retries<'a> = RetryContext<ClientEnvironment<'a>>;

/// What retries of this crate use: tokio's timer, random numbers, the log of outages and a counter.
#[derive(Debug)]
pub(crate) struct ClientEnvironment<'a> {
    pub(crate) outages: Arc<Outages>,
    /// Where retries are counted, if they are.
    pub(crate) counters: Option<&'a Counters>,
    /// Whether the gateway that is asked again serves, if its caller can do without it: pauses end once it does not.
    pub(crate) serves: Option<watch::Receiver<bool>>,
}

impl RetryEnvironment for ClientEnvironment<'_> {
    type Failing = OutageEntry;

    fn begin_failing(&self) -> OutageEntry {
        self.outages.begin()
    }

    fn on_retry(&self) {
        if let Some(counters) = self.counters {
            add(&counters.retries, 1);
        }
    }

    fn random(&self) -> f64 {
        rand::random()
    }

    async fn sleep(&self, pause: Duration) {
        match self.serves.clone() {
            // Which of both ends it makes no difference: the next attempt looks whether the gateway serves.
            Some(mut serves) => drop(timeout(pause, serves.wait_for(|serves| !serves)).await),
            None => sleep(pause).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fmt, future::ready, sync::atomic::Ordering::Relaxed};

    use pushdown_s3::AttemptError;
    use tokio::time::Instant;

    use super::*;

    #[derive(Debug)]
    struct Failure(Option<Duration>);

    impl fmt::Display for Failure {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("why")
        }
    }

    impl AttemptError for Failure {
        fn is_retryable(&self) -> bool {
            true
        }

        fn retry_after(&self) -> Option<Duration> {
            self.0
        }
    }

    fn retries(policy: RetryPolicy, counters: Option<&Counters>) -> Retries<'_> {
        let outages = Outages::new("http://store".to_owned());
        let environment = ClientEnvironment {
            outages,
            counters,
            serves: None,
        };
        RetryContext::new(policy, environment)
    }

    /// Fails, and succeeds in the next attempt. Returns when each attempt began.
    async fn fail_once(retries: &mut Retries<'_>, retry_after: Option<Duration>) -> Vec<Instant> {
        let mut attempts = Vec::new();
        let mut attempt = || {
            attempts.push(Instant::now());
            ready(if attempts.len() == 1 {
                Err(Failure(retry_after))
            } else {
                Ok(())
            })
        };
        // No attempt may be left.
        drop(retries.advance(&mut attempt).await);
        attempts
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_stay_below_the_ceiling_and_attempts_end() {
        let policy = RetryPolicy {
            attempts: 6,
            ..RetryPolicy::default()
        };
        let mut starts = Vec::new();
        let mut attempt = || {
            starts.push(Instant::now());
            let retry_after = (starts.len() == 6).then_some(Duration::from_secs(9));
            ready(Err::<(), Failure>(Failure(retry_after)))
        };
        let ended = retries(policy, None).complete(&mut attempt).await;
        assert!(ended.is_err());
        assert_eq!(starts.len(), 6);
        for (failures, pair) in (1..).zip(starts.windows(2)) {
            // The timer counts in whole milliseconds.
            assert!(
                pair[1] - pair[0] <= policy.ceiling(failures) + Duration::from_millis(1),
                "{failures}"
            );
        }
        let last = starts[5];
        assert_eq!(
            last.elapsed(),
            Duration::ZERO,
            "the last failure is reported at once"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_that_the_endpoint_asks_for_is_observed() {
        let mut retries = retries(RetryPolicy::default(), None);
        for (retry_after, expected) in [(7, 7), (4_000, 300)] {
            let starts = fail_once(&mut retries, Some(Duration::from_secs(retry_after))).await;
            assert_eq!((starts[1] - starts[0]).as_secs(), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn progress_resets_the_count() {
        let counters = Counters::default();
        let policy = RetryPolicy {
            attempts: 2,
            ..RetryPolicy::default()
        };
        let mut counted = retries(policy, Some(&counters));
        for _ in 0..20 {
            assert_eq!(fail_once(&mut counted, None).await.len(), 2);
        }
        assert_eq!(counters.retries.load(Relaxed), 20);
        assert_eq!(
            fail_once(&mut retries(RetryPolicy::NEVER, None), None)
                .await
                .len(),
            1
        );
    }
}
