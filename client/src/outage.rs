//! Says when an endpoint begins to fail, and when it answers again.
//!
//! An outage lasts from the first request that is to be tried again until none is left that failed. It is said once, whatever
//! the number of requests, and no two within [`QUIET`].

use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// After an outage was said, another one is said no sooner: a link that drops a connection now and then fills no log.
const QUIET: Duration = Duration::from_secs(10);

/// The outages of one endpoint.
#[derive(Debug)]
pub(crate) struct Outages {
    endpoint: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Requests that failed and have not succeeded since.
    failing: usize,
    /// When the first of them failed.
    since: Option<Instant>,
    /// Whether this outage was said.
    said: bool,
    /// When the last outage was said.
    last_said: Option<Instant>,
}

/// A request that failed and is tried again. Dropping it ends it without success.
#[derive(Debug)]
pub(crate) struct Failing {
    outages: Arc<Outages>,
    succeeded: bool,
}

/// How long a request goes on being tried.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Left {
    /// Attempts that are left.
    pub(crate) attempts: u32,
    /// The longest that it pauses before them, all pauses together.
    pub(crate) pauses: Duration,
}

impl Outages {
    pub(crate) fn of(endpoint: String) -> Arc<Self> {
        Arc::new(Self {
            endpoint,
            state: Mutex::default(),
        })
    }

    /// A request failed for the first time.
    pub(crate) fn begin(self: &Arc<Self>) -> Failing {
        let mut state = self.state.lock();
        state.failing += 1;
        state.since.get_or_insert_with(Instant::now);
        Failing {
            outages: Arc::clone(self),
            succeeded: false,
        }
    }

    /// One request less fails. Gives how long the outage took, where it is over and was said.
    fn end(&self) -> Option<Duration> {
        let mut state = self.state.lock();
        state.failing = state.failing.saturating_sub(1);
        if state.failing > 0 {
            return None;
        }
        let since = state.since.take();
        let said = std::mem::take(&mut state.said);
        since.filter(|_| said).map(|since| since.elapsed())
    }
}

impl Failing {
    /// The request is to be tried again after `error`: said at the first one of an outage.
    pub(crate) fn retrying(&self, error: &dyn fmt::Display, left: Left) {
        let mut state = self.outages.state.lock();
        if state.said || state.last_said.is_some_and(|last| last.elapsed() < QUIET) {
            return;
        }
        state.said = true;
        state.last_said = Some(Instant::now());
        drop(state);
        let Left { attempts, pauses } = left;
        let times = if attempts == 1 {
            "once".to_owned()
        } else {
            format!("up to {attempts} times")
        };
        let seconds = pauses.as_secs_f64();
        tracing::warn!("{error}; retrying {times}, with pauses of up to {seconds:.1} s in all");
    }

    /// The request succeeded: said when no other one fails any more.
    pub(crate) fn recovered(mut self) {
        self.succeeded = true;
    }
}

impl Drop for Failing {
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

    /// What is logged while `scene` runs, one line an event.
    fn said(scene: impl FnOnce()) -> Vec<String> {
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

    const LEFT: Left = Left {
        attempts: 9,
        pauses: Duration::from_millis(45_500),
    };

    #[tokio::test(start_paused = true)]
    async fn an_outage_is_said_once_and_so_is_its_end() {
        let outages = Outages::of("http://store".to_owned());
        let lines = said(|| {
            let failing: Vec<_> = (0..3).map(|_| outages.begin()).collect();
            for failing in &failing {
                failing.retrying(&"refused", LEFT);
                failing.retrying(&"refused", LEFT);
            }
            failing.into_iter().for_each(Failing::recovered);
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
    async fn another_outage_is_said_after_a_while() {
        let outages = Outages::of("http://store".to_owned());
        let fail = || {
            said(|| {
                let failing = outages.begin();
                failing.retrying(&"refused", Left { attempts: 1, ..LEFT });
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
    async fn what_is_given_up_does_not_answer_again() {
        let outages = Outages::of("http://store".to_owned());
        let lines = said(|| {
            let (given_up, other) = (outages.begin(), outages.begin());
            given_up.retrying(&"refused", LEFT);
            other.retrying(&"refused", LEFT);
            drop(other);
            drop(given_up);
        });
        assert_eq!(lines.len(), 1, "{lines:?}");
    }
}
