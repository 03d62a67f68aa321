//! When to retry, and how long to wait before.

use std::{fmt, sync::Arc, time::Duration};

use http::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::{
    outage_log::{FailingRequest, Outages, RetriesLeft},
    store::seconds,
};

/// Upper limit on the pause that an endpoint may ask for.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// Exponential backoff with full jitter: the pause after the n-th consecutive failure is drawn uniformly from 0 to
/// `base * 2^(n-1)`, at most `cap`.
///
/// Only consecutive failures count: anything that arrives in between resets the count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetryPolicy {
    /// Consecutive attempts before giving up, including the first one. Default 10.
    pub attempts: u32,
    /// Longest pause after the first failure. Default 100 ms.
    #[serde(rename = "base_seconds", with = "seconds")]
    pub base: Duration,
    /// Longest pause after any failure, unless the endpoint asks for more. Default 20 s.
    #[serde(rename = "cap_seconds", with = "seconds")]
    pub cap: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 10,
            base: Duration::from_millis(100),
            cap: Duration::from_secs(20),
        }
    }
}

impl RetryPolicy {
    /// No retries: every failure is final.
    pub const NEVER: Self = Self {
        attempts: 1,
        base: Duration::ZERO,
        cap: Duration::ZERO,
    };

    /// The longest pause after this number of consecutive failures.
    pub fn ceiling(&self, failures: u32) -> Duration {
        let factor = 1u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        self.base.saturating_mul(factor).min(self.cap)
    }

    /// The retries left after this number of consecutive failures, if the endpoint now asks for a pause of `retry_after`.
    fn left(&self, failures: u32, retry_after: Duration) -> RetriesLeft {
        let now = self.ceiling(failures).max(retry_after);
        // Ceilings stop growing by then: a policy of a million attempts is not summed up term by term.
        let grown = self.attempts.min(u32::BITS + 2).max(failures + 1);
        let growing = (failures + 1..grown).map(|failures| self.ceiling(failures));
        let growing = growing.fold(now, Duration::saturating_add);
        let rest = self.ceiling(u32::MAX).saturating_mul(self.attempts - grown);
        RetriesLeft {
            attempts: self.attempts - failures,
            pauses: growing.saturating_add(rest),
        }
    }
}

/// Counts consecutive failures and pauses between attempts.
#[derive(Debug)]
pub(crate) struct Backoff {
    policy: RetryPolicy,
    failures: u32,
    outages: Arc<Outages>,
    /// Set from the first failure until the request succeeds.
    failing: Option<FailingRequest>,
}

impl Backoff {
    pub(crate) const fn new(policy: RetryPolicy, outages: Arc<Outages>) -> Self {
        Self {
            policy,
            failures: 0,
            outages,
            failing: None,
        }
    }

    /// Something arrived: resets the count of failures.
    pub(crate) fn progressed(&mut self) {
        self.failures = 0;
    }

    /// Everything requested has arrived: for this request the outage is over.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
        if let Some(failing) = self.failing.take() {
            failing.recovered();
        }
    }

    /// Waits before the next attempt, at least as long as the endpoint asked for. Returns `false` at once if no attempt
    /// is left. Logs the outage if `error` begins one.
    pub(crate) async fn pause(
        &mut self,
        error: &(dyn fmt::Display + Sync),
        retry_after: Option<Duration>,
    ) -> bool {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= self.policy.attempts {
            return false;
        }
        let retry_after = retry_after.unwrap_or_default().min(LONGEST_PAUSE);
        let failing = self.failing.get_or_insert_with(|| self.outages.begin());
        failing.retrying(error, self.policy.left(self.failures, retry_after));
        let jitter = self.policy.ceiling(self.failures).mul_f64(rand::random::<f64>());
        sleep(jitter.max(retry_after)).await;
        true
    }
}

/// Whether a later answer to the same request may have another status.
pub(crate) fn is_transient(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504)
}

/// Whether a later answer may have another error code for this row. Covers the codes of the gateway, of S3, and of
/// statuses without a code.
pub(crate) fn is_transient_code(code: &str) -> bool {
    match code {
        "SlowDown"
        | "ServiceUnavailable"
        | "InternalError"
        | "RequestTimeout"
        | "OriginUnavailable"
        | "OriginTimeout"
        | "TooManyRequests"
        | "ThrottlingException"
        | "ExpiredToken" => true,
        _ => code
            .strip_prefix("Http")
            .and_then(|status| status.parse().ok())
            .is_some_and(is_transient),
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    fn backoff(policy: RetryPolicy) -> Backoff {
        Backoff::new(policy, Outages::new("http://store".to_owned()))
    }

    #[test]
    fn retries_left_are_the_sum_of_the_pauses() {
        let left = |policy: RetryPolicy, failures, retry_after| {
            let RetriesLeft { attempts, pauses } = policy.left(failures, Duration::from_secs(retry_after));
            (attempts, pauses.as_secs_f64())
        };
        let policy = RetryPolicy::default();
        assert_eq!(left(policy, 1, 0), (9, 45.5), "0.1 + 0.2 + ... + 12.8 + 20");
        assert_eq!(left(policy, 1, 7), (9, 52.4), "the first one is 7 s");
        assert_eq!(left(policy, 9, 0), (1, 20.0));
        assert_eq!(left(policy, 9, 60), (1, 60.0));
        let patient = RetryPolicy {
            attempts: u32::MAX,
            ..policy
        };
        assert_eq!(
            left(patient, 12, 0),
            (u32::MAX - 12, 20.0 * f64::from(u32::MAX - 12))
        );
        let steady = RetryPolicy {
            attempts: 4,
            base: Duration::from_secs(3),
            cap: Duration::from_secs(1),
        };
        assert_eq!(left(steady, 1, 0), (3, 3.0));
    }

    #[test]
    fn ceilings_double_up_to_the_cap() {
        let policy = RetryPolicy::default();
        let seconds: Vec<_> = (1..=10)
            .map(|failures| policy.ceiling(failures).as_secs_f64())
            .collect();
        assert_eq!(seconds, [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 20.0, 20.0]);
        assert_eq!(policy.ceiling(u32::MAX), policy.cap);
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_stay_below_the_ceiling_and_attempts_end() {
        let policy = RetryPolicy {
            attempts: 6,
            ..RetryPolicy::default()
        };
        let mut waits = backoff(policy);
        for failures in 1..6 {
            let start = Instant::now();
            assert!(waits.pause(&"why", None).await);
            // The timer counts in whole milliseconds.
            assert!(
                start.elapsed() <= policy.ceiling(failures) + Duration::from_millis(1),
                "{failures}"
            );
        }
        let start = Instant::now();
        assert!(!waits.pause(&"why", Some(Duration::from_secs(9))).await);
        assert_eq!(
            start.elapsed(),
            Duration::ZERO,
            "the last failure is reported at once"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_that_the_endpoint_asks_for_is_observed() {
        let mut waits = backoff(RetryPolicy::default());
        for (retry_after, expected) in [(7, 7), (4_000, 300)] {
            let start = Instant::now();
            assert!(waits.pause(&"why", Some(Duration::from_secs(retry_after))).await);
            assert_eq!(start.elapsed().as_secs(), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn progress_resets_the_count() {
        let mut waits = backoff(RetryPolicy {
            attempts: 2,
            ..RetryPolicy::default()
        });
        for _ in 0..20 {
            assert!(waits.pause(&"why", None).await);
            waits.progressed();
        }
        assert!(!backoff(RetryPolicy::NEVER).pause(&"why", None).await);
    }

    #[test]
    fn refusals_are_final_and_overload_is_not() {
        for (code, expected) in [
            ("SlowDown", true),
            ("Http503", true),
            ("NoSuchKey", false),
            ("Http404", false),
            ("ShardReplaced", false),
            ("InvalidShard", false),
            ("Http", false),
        ] {
            assert_eq!(is_transient_code(code), expected, "{code}");
        }
        assert!(is_transient(StatusCode::TOO_MANY_REQUESTS) && !is_transient(StatusCode::FORBIDDEN));
    }
}
