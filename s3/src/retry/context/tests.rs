//! Requests that fail by a script, in an environment that records what it is asked for.

use std::{future::ready, sync::Arc};

use futures::FutureExt as _;
use parking_lot::Mutex;

use super::*;

/// What the environment was asked for.
#[derive(Debug, Clone, PartialEq)]
enum Event {
    Failing,
    Retrying(String, RetriesLeft),
    Pause(Duration),
    Retry,
    Recovered,
    /// A failing request ended without success.
    GivenUp,
}

#[derive(Debug, Clone, Default)]
struct Environment(Arc<Mutex<Vec<Event>>>);

#[derive(Debug)]
struct Failing {
    events: Environment,
    recovered: bool,
}

impl Environment {
    fn push(&self, event: Event) {
        self.0.lock().push(event);
    }

    fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.0.lock())
    }

    fn pauses(&self) -> Vec<Duration> {
        let pauses = self.take().into_iter().filter_map(|event| match event {
            Event::Pause(pause) => Some(pause),
            _ => None,
        });
        pauses.collect()
    }
}

impl RetryEnvironment for Environment {
    type Failing = Failing;

    fn begin_failing(&self) -> Failing {
        self.push(Event::Failing);
        Failing {
            events: self.clone(),
            recovered: false,
        }
    }

    fn on_retry(&self) {
        self.push(Event::Retry);
    }

    fn random(&self) -> f64 {
        0.5
    }

    async fn sleep(&self, pause: Duration) {
        self.push(Event::Pause(pause));
    }
}

impl FailingRequest for Failing {
    fn retrying(&self, error: &dyn fmt::Display, left: RetriesLeft) {
        self.events.push(Event::Retrying(error.to_string(), left));
    }

    fn recovered(mut self) {
        self.recovered = true;
    }
}

impl Drop for Failing {
    fn drop(&mut self) {
        self.events.push(if self.recovered {
            Event::Recovered
        } else {
            Event::GivenUp
        });
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Lost {
    is_retryable: bool,
    retry_after: Option<Duration>,
    has_progressed: bool,
}

const LOST: Lost = Lost {
    is_retryable: true,
    retry_after: None,
    has_progressed: false,
};

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("lost")
    }
}

impl AttemptError for Lost {
    fn is_retryable(&self) -> bool {
        self.is_retryable
    }

    fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }

    fn has_progressed(&self) -> bool {
        self.has_progressed
    }
}

const POLICY: RetryPolicy = RetryPolicy {
    attempts: 3,
    base: Duration::from_secs(2),
    cap: Duration::from_secs(20),
};

/// A request in a new environment.
fn request(policy: RetryPolicy) -> (RetryContext<Environment>, Environment) {
    let environment = Environment::default();
    (RetryContext::new(policy, environment.clone()), environment)
}

/// Fails as often as there are errors, and then succeeds.
fn script(errors: impl IntoIterator<Item = Lost>) -> impl Attempt<Output = (), Error = Lost> {
    let mut errors = errors.into_iter();
    move || ready(errors.next().map_or(Ok(()), Err))
}

fn seconds(pauses: &[u64]) -> Vec<Duration> {
    pauses.iter().map(|pause| Duration::from_secs(*pause)).collect()
}

#[test]
fn an_outage_is_reported_from_the_first_failure_to_the_success() {
    let (mut request, environment) = request(POLICY);
    let done = request.complete(&mut script([LOST, LOST])).now_or_never();
    assert_eq!(done, Some(Ok(())));
    let left = |attempts, seconds| RetriesLeft {
        attempts,
        pauses: Duration::from_secs(seconds),
    };
    assert_eq!(
        environment.take(),
        [
            Event::Failing,
            Event::Retrying("lost".to_owned(), left(2, 6)),
            Event::Pause(Duration::from_secs(1)),
            Event::Retry,
            Event::Retrying("lost".to_owned(), left(1, 4)),
            Event::Pause(Duration::from_secs(2)),
            Event::Retry,
            Event::Recovered,
        ]
    );
}

#[test]
fn attempts_end_and_permanent_errors_are_not_retried() {
    let (mut given_up, environment) = request(POLICY);
    let error = given_up.complete(&mut script([LOST; 9])).now_or_never();
    assert_eq!(error, Some(Err(LOST)));
    assert_eq!(environment.pauses().len(), 2);
    // The budget is used up, and no success is reported.
    let error = given_up.complete(&mut script([LOST])).now_or_never();
    assert_eq!(error, Some(Err(LOST)));
    drop(given_up);
    assert_eq!(environment.take(), [Event::GivenUp]);
    let (mut request, environment) = request(POLICY);
    let permanent = Lost {
        is_retryable: false,
        ..LOST
    };
    let error = request.complete(&mut script([permanent])).now_or_never();
    assert_eq!(error, Some(Err(permanent)));
    assert_eq!(environment.take(), []);
}

#[test]
fn a_part_of_the_answer_resets_the_count_and_the_outage_goes_on() {
    let (mut request, environment) = request(POLICY);
    for _ in 0..5 {
        let part = request.advance(&mut script([LOST, LOST])).now_or_never();
        assert_eq!(part, Some(Ok(())));
    }
    assert_eq!(environment.pauses(), seconds(&[1, 2].repeat(5)));
    request.succeeded();
    assert_eq!(environment.take(), [Event::Recovered]);
    let progressed = Lost {
        has_progressed: true,
        ..LOST
    };
    let done = request.complete(&mut script([progressed; 20])).now_or_never();
    assert_eq!(done, Some(Ok(())));
    assert_eq!(environment.pauses(), seconds(&[1; 20]));
}

#[test]
fn the_endpoint_may_ask_for_a_longer_pause_of_five_minutes_at_most() {
    let (mut request, environment) = request(POLICY);
    let errors = [7, 4_000].map(|seconds| Lost {
        retry_after: Some(Duration::from_secs(seconds)),
        ..LOST
    });
    assert_eq!(request.complete(&mut script(errors)).now_or_never(), Some(Ok(())));
    assert_eq!(environment.pauses(), seconds(&[7, 300]));
}
