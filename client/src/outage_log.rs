//! Logs when an endpoint begins to fail, and when it answers again.
//!
//! An outage lasts from the first failed request that will be retried until no failed request is left. It is logged once,
//! independent of the number of requests, and at most once per [`QUIET`].

use std::{fmt, sync::Arc, time::Duration};

use pushdown_exec::sync::Mutex;
use pushdown_s3::{FailingRequest, RetriesLeft};
use tokio::time::Instant;

/// Minimum time between two logged outages, so that a link that drops a connection now and then does not fill the log.
const QUIET: Duration = Duration::from_secs(10);

/// The outages of one endpoint.
#[derive(Debug)]
pub(crate) struct Outages {
    endpoint: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Requests that have failed and have not succeeded since.
    failing: usize,
    /// When the first of them failed.
    since: Option<Instant>,
    /// Whether the current outage was logged.
    is_logged: bool,
    /// When the last outage was logged.
    last_logged: Option<Instant>,
}

/// A failed request that is being retried. Dropping it ends it without success.
#[derive(Debug)]
pub(crate) struct OutageEntry {
    outages: Arc<Outages>,
    succeeded: bool,
}

impl Outages {
    pub(crate) fn new(endpoint: String) -> Arc<Self> {
        Arc::new(Self {
            endpoint,
            state: Mutex::default(),
        })
    }

    /// Registers the first failure of a request.
    pub(crate) fn begin(self: &Arc<Self>) -> OutageEntry {
        let mut state = self.state.lock();
        state.failing += 1;
        state.since.get_or_insert_with(Instant::now);
        OutageEntry {
            outages: Arc::clone(self),
            succeeded: false,
        }
    }

    /// Removes one failing request. Returns the duration of the outage if it is over and was logged.
    fn end(&self) -> Option<Duration> {
        let mut state = self.state.lock();
        state.failing = state.failing.saturating_sub(1);
        if state.failing > 0 {
            return None;
        }
        let since = state.since.take();
        let is_logged = std::mem::take(&mut state.is_logged);
        since.filter(|_| is_logged).map(|since| since.elapsed())
    }
}

impl OutageEntry {
    /// Whether the outage is to be logged now: it has not been, and no other one was a short time ago.
    fn begin_logging(&self) -> bool {
        let mut state = self.outages.state.lock();
        if state.is_logged || state.last_logged.is_some_and(|last| last.elapsed() < QUIET) {
            return false;
        }
        state.is_logged = true;
        state.last_logged = Some(Instant::now());
        true
    }

    /// Logs what happens during an outage, if nothing of it has been logged.
    pub(crate) fn warn(&self, text: &dyn fmt::Display) {
        if self.begin_logging() {
            tracing::warn!("{text}");
        }
    }
}

impl FailingRequest for OutageEntry {
    /// Logs the first retry of an outage.
    fn retrying(&self, error: &dyn fmt::Display, left: RetriesLeft) {
        if !self.begin_logging() {
            return;
        }
        let RetriesLeft { attempts, pauses } = left;
        let times = if attempts == 1 {
            "once".to_owned()
        } else {
            format!("up to {attempts} times")
        };
        let seconds = pauses.as_secs_f64();
        tracing::warn!("{error}; retrying {times}, with pauses of up to {seconds:.1} s in all");
    }

    /// Logs the end of the outage if no other request is failing.
    fn recovered(mut self) {
        self.succeeded = true;
    }
}

impl Drop for OutageEntry {
    fn drop(&mut self) {
        if let Some(took) = self.outages.end()
            && self.succeeded
        {
            let seconds = took.as_secs_f64();
            tracing::info!("{} answers again, after {seconds:.1} s", self.outages.endpoint);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// The lines logged while `scene` runs, one per event.
    fn logged(scene: impl FnOnce()) -> Vec<String> {
        #[derive(Clone, Default)]
        struct Log(Arc<Mutex<Vec<u8>>>);
        impl io::Write for Log {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().extend_from_slice(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .without_time()
            .with_target(false)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, scene);
        let text = String::from_utf8(log.0.lock().clone()).unwrap();
        text.lines().map(|line| line.trim().to_owned()).collect()
    }

    const LEFT: RetriesLeft = RetriesLeft {
        attempts: 9,
        pauses: Duration::from_millis(45_500),
    };

    #[tokio::test(start_paused = true)]
    async fn an_outage_and_its_end_are_logged_once() {
        let outages = Outages::new("http://store".to_owned());
        let lines = logged(|| {
            let failing: Vec<_> = (0..3).map(|_| outages.begin()).collect();
            for failing in &failing {
                failing.retrying(&"refused", LEFT);
                failing.retrying(&"refused", LEFT);
            }
            failing.into_iter().for_each(OutageEntry::recovered);
        });
        assert_eq!(
            lines,
            [
                "WARN refused; retrying up to 9 times, with pauses of up to 45.5 s in all",
                "INFO http://store answers again, after 0.0 s"
            ]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn another_outage_is_logged_after_the_quiet_time() {
        let outages = Outages::new("http://store".to_owned());
        let fail = || {
            logged(|| {
                let failing = outages.begin();
                failing.retrying(&"refused", RetriesLeft { attempts: 1, ..LEFT });
                failing.recovered();
            })
        };
        assert_eq!(fail().len(), 2);
        assert_eq!(
            fail(),
            Vec::<String>::new(),
            "a connection is dropped now and then"
        );
        tokio::time::advance(QUIET).await;
        assert!(fail()[0].contains("retrying once"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_gives_up_does_not_end_an_outage_with_success() {
        let outages = Outages::new("http://store".to_owned());
        let lines = logged(|| {
            let (given_up, other) = (outages.begin(), outages.begin());
            given_up.retrying(&"refused", LEFT);
            other.retrying(&"refused", LEFT);
            drop(other);
            drop(given_up);
        });
        assert_eq!(lines.len(), 1, "{lines:?}");
    }
}
