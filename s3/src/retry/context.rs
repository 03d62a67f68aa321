//! One request and its repetitions.

use std::{fmt, time::Duration};

use super::{RetriesLeft, RetryPolicy};

/// Upper limit on the pause that an endpoint may ask for.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// What retries need of the program: a timer, random numbers, and a place to report failures.
pub trait RetryEnvironment {
    /// A failed request that is being retried.
    type Failing: FailingRequest + fmt::Debug;

    /// Registers the first failure of a request.
    fn begin_failing(&self) -> Self::Failing;

    /// A request is repeated now.
    fn on_retry(&self);

    /// A random number, uniform in 0 to 1.
    fn random(&self) -> f64;

    /// Waits.
    fn sleep(&self, pause: Duration) -> impl Future<Output = ()> + Send;
}

/// A failed request that is being retried. Dropping it ends it without success.
pub trait FailingRequest {
    /// The request will be retried after `error`.
    fn retrying(&self, error: &dyn fmt::Display, left: RetriesLeft);

    /// The request succeeded.
    fn recovered(self);
}

/// What is repeated: a request for what is missing. Closures that return a future are attempts, too.
pub trait Attempt {
    /// What an attempt delivers: the answer or a part of it.
    type Output;
    /// Why an attempt failed.
    type Error: AttemptError;

    /// Makes one attempt. What arrived before a failure may be kept for the next one.
    fn run(&mut self) -> impl Future<Output = Result<Self::Output, Self::Error>> + Send;
}

impl<F, A, T, E> Attempt for F
where
    F: FnMut() -> A,
    A: Future<Output = Result<T, E>> + Send,
    E: AttemptError,
{
    type Output = T;
    type Error = E;

    fn run(&mut self) -> impl Future<Output = Result<T, E>> + Send {
        self()
    }
}

/// Why an attempt failed. It displays as the text that is logged.
pub trait AttemptError: fmt::Display {
    /// Whether another attempt may succeed.
    fn is_retryable(&self) -> bool;

    /// The pause before another attempt that the endpoint asks for.
    fn retry_after(&self) -> Option<Duration>;

    /// Whether something arrived before the failure, which is then the first one again.
    fn has_progressed(&self) -> bool {
        false
    }
}

/// The retry budget of one request: its policy, and the consecutive failures so far. It belongs to the request until the last byte of its answer has
/// arrived, over all attempts.
#[derive(Debug)]
pub struct RetryContext<E: RetryEnvironment> {
    policy: RetryPolicy,
    failures: u32,
    environment: E,
    /// Set from the first failure until the request succeeds.
    failing: Option<E::Failing>,
}

impl<E: RetryEnvironment> RetryContext<E> {
    /// The retry budget of a request that has not been sent.
    pub const fn new(policy: RetryPolicy, environment: E) -> Self {
        Self {
            policy,
            failures: 0,
            environment,
            failing: None,
        }
    }

    /// Repeats `attempt` until it delivers a part of the answer. Failures before the next part count from 0 again.
    ///
    /// # Errors
    /// The error of the last attempt, if it is permanent or no attempt is left.
    pub async fn advance<A: Attempt>(&mut self, attempt: &mut A) -> Result<A::Output, A::Error> {
        loop {
            match attempt.run().await {
                Ok(part) => {
                    self.failures = 0;
                    return Ok(part);
                }
                Err(error) => self.pause(error).await?,
            }
        }
    }

    /// As [`advance`](Self::advance), for the rest of the answer: then the request has [succeeded](Self::succeeded).
    ///
    /// # Errors
    /// As [`advance`](Self::advance).
    pub async fn complete<A: Attempt>(&mut self, attempt: &mut A) -> Result<A::Output, A::Error> {
        let answer = self.advance(attempt).await?;
        self.succeeded();
        Ok(answer)
    }

    /// Everything requested has arrived: for this request the outage is over.
    pub fn succeeded(&mut self) {
        self.failures = 0;
        if let Some(failing) = self.failing.take() {
            failing.recovered();
        }
    }

    /// Waits before the next attempt, at least as long as the endpoint asks for. Reports the outage if `error` begins one. Returns the
    /// error at once if it is permanent or no attempt is left.
    async fn pause<F: AttemptError>(&mut self, error: F) -> Result<(), F> {
        if error.has_progressed() {
            self.failures = 0;
        }
        if !error.is_retryable() {
            return Err(error);
        }
        self.failures = self.failures.saturating_add(1);
        if self.failures >= self.policy.attempts {
            return Err(error);
        }
        let retry_after = error.retry_after().unwrap_or_default().min(LONGEST_PAUSE);
        let failing = self
            .failing
            .get_or_insert_with(|| self.environment.begin_failing());
        failing.retrying(&error, self.policy.left(self.failures, retry_after));
        drop(error);
        let jitter = self
            .policy
            .ceiling(self.failures)
            .mul_f64(self.environment.random());
        self.environment.sleep(jitter.max(retry_after)).await;
        self.environment.on_retry();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
