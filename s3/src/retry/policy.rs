//! How often a request is repeated.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::seconds;

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

/// How long a request will still be retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetriesLeft {
    /// Attempts that are left.
    pub attempts: u32,
    /// The longest total of all pauses before these attempts.
    pub pauses: Duration,
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
    pub(super) fn left(&self, failures: u32, retry_after: Duration) -> RetriesLeft {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
