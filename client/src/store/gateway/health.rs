//! Whether a replica of a gateway answers. While it does not, other replicas take over, or a reader that can do without reads plainly from
//! the store.
//!
//! A request that fails, or waits in silence, leads to a probe: one HEAD request on a separate connection, which an overloaded gateway
//! answers as well. Requests that fail at the same time share one. While the gateway does not serve, the probe is repeated in the
//! background, ever more rarely and at random times, so that many readers do not come back at once.

mod silence;

use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use futures::{
    FutureExt as _,
    future::{BoxFuture, Either, Shared, WeakShared, select},
};
use http::HeaderMap;
use pushdown::wire::header::{DRAINING, STATE, VERSION_PATH};
use pushdown_exec::sync::Mutex;
use pushdown_s3::{FailingRequest as _, RetryPolicy};
use tokio::{
    runtime::{Handle, Id},
    sync::watch,
    time::{Instant, sleep},
};
use tokio_util::task::AbortOnDropHandle;

use self::silence::Silence;
use crate::{
    error::{Error, ErrorKind, Result},
    outage_log::{OutageEntry, Outages},
    stats::Traffic,
    transport::{Answer, Prober, listed_features},
};

/// Longest wait for the answer to a probe.
pub(super) const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// How often a wait for the gateway looks at what is known of it.
const TICK: Duration = Duration::from_millis(250);
/// The pauses between probes of a gateway that does not serve, before jitter.
const PROBE_PAUSES: RetryPolicy = RetryPolicy {
    attempts: u32::MAX,
    base: Duration::from_secs(1),
    cap: Duration::from_secs(30),
};
/// The least part of a pause that remains after jitter.
const LEAST_PAUSE: f64 = 0.5;

/// What the last probe of a gateway has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GatewayState {
    /// It serves, or has not been probed.
    Serving,
    /// It ends once its answers in flight are complete: batches that have not begun go elsewhere.
    Draining,
    /// It does not answer: everything goes elsewhere.
    Gone,
}

/// What is known of a replica, for all readers of the store.
#[derive(Debug)]
pub(crate) struct GatewayHealth {
    probe: Probe,
    /// URL of the gateway, with the replica's address if the gateway has a name.
    name: String,
    /// Whether other replicas can take over.
    has_others: Arc<AtomicBool>,
    /// How often it has served again: it may be another version then.
    recoveries: AtomicU64,
    outages: Arc<Outages>,
    silence: Silence,
    known: Mutex<Known>,
    /// Whether the known state is that it serves, for those who wait for the end of that.
    serving: watch::Sender<bool>,
}

#[derive(Debug)]
struct Known {
    state: GatewayState,
    /// When a probe was answered last.
    answered: Option<Instant>,
    /// The probe in flight, whose answer is that of all who wait for one in this runtime: that of another one may never end.
    in_flight: Option<(Id, WeakShared<BoxFuture<'static, GatewayState>>)>,
    /// Set while the gateway does not serve.
    outage: Option<OutageEntry>,
    /// Repeats the probe while the gateway does not serve.
    repetition: Option<AbortOnDropHandle<()>>,
}

/// Asks the gateway for its state.
struct Probe(Box<dyn Fn() -> BoxFuture<'static, Result<GatewayState>> + Send + Sync>);

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Probe").finish_non_exhaustive()
    }
}

impl GatewayHealth {
    /// The health of the replica `name` that `prober` asks. `traffic` counts what requests exchange with it, without probes; `has_others` is
    /// whether other replicas can take over. `note` gets the headers of each answer to a probe.
    pub(super) fn new(
        prober: Arc<Prober>,
        name: String,
        traffic: Arc<Traffic>,
        has_others: Arc<AtomicBool>,
        note: impl Fn(&HeaderMap) + Send + Sync + 'static,
    ) -> Arc<Self> {
        let note = Arc::new(note);
        let ask = move || {
            let (prober, note) = (Arc::clone(&prober), Arc::clone(&note));
            let asked = async move {
                let answer = prober.head(VERSION_PATH, PROBE_TIMEOUT).await?;
                note(&answer.headers);
                state_in(answer).await
            };
            asked.boxed()
        };
        Self::with_probe(name, Probe(Box::new(ask)), traffic, has_others)
    }

    fn with_probe(
        name: String,
        probe: Probe,
        traffic: Arc<Traffic>,
        has_others: Arc<AtomicBool>,
    ) -> Arc<Self> {
        Arc::new(Self {
            probe,
            outages: Outages::new(format!("the gateway {name}")),
            name,
            has_others,
            recoveries: AtomicU64::new(0),
            silence: Silence::new(traffic),
            known: Mutex::new(Known {
                state: GatewayState::Serving,
                answered: None,
                in_flight: None,
                outage: None,
                repetition: None,
            }),
            serving: watch::Sender::new(true),
        })
    }

    /// What the last probe has found.
    pub(crate) fn state(&self) -> GatewayState {
        self.known.lock().state
    }

    /// How often it has served again after it did not.
    pub(crate) fn recoveries(&self) -> u64 {
        self.recoveries.load(Relaxed)
    }

    /// Whether a request that begins now goes to the gateway.
    pub(crate) fn serves(self: &Arc<Self>) -> bool {
        let is_serving = self.state() == GatewayState::Serving;
        if !is_serving {
            // The runtime that repeated the probe may have ended.
            self.repeat_probe();
        }
        is_serving
    }

    /// The state of the gateway after a request has failed. It is probed, unless it is known that it does not serve.
    pub(crate) async fn after_failure(self: &Arc<Self>) -> GatewayState {
        match self.state() {
            GatewayState::Serving => self.probe().await,
            known => known,
        }
    }

    /// Waits for an answer of the gateway, or a part of one. Probes the gateway if it is silent for long.
    ///
    /// # Errors
    /// [`ErrorKind::Unreachable`] once the gateway is gone; those of `answer`.
    pub(crate) async fn wait_for<T, E: From<Error>>(
        self: &Arc<Self>,
        answer: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let answer = std::pin::pin!(answer);
        let gone = std::pin::pin!(self.until_gone());
        match select(answer, gone).await {
            Either::Left((answer, _)) => answer,
            Either::Right(((), _)) => {
                let text = format!("the gateway {} does not answer", self.name);
                Err(Error::new(ErrorKind::Unreachable, text).into())
            }
        }
    }

    /// Records how long rows of an answer were waited for.
    pub(crate) fn observe_rows(&self, wait: Duration) {
        self.silence.observe_rows(wait);
    }

    /// Waits until the gateway is gone, and has sent nothing since the last probe began or for as long as a probe takes: what a gateway that
    /// has ended sent before still arrives.
    async fn until_gone(self: &Arc<Self>) {
        let began = Instant::now();
        loop {
            sleep(TICK).await;
            let silent = self.silence.since(began);
            let is_gone = match self.state() {
                GatewayState::Gone => silent >= PROBE_TIMEOUT,
                GatewayState::Serving | GatewayState::Draining => {
                    let limit = self.silence.limit();
                    silent >= limit
                        && !self.has_answered_within(limit)
                        && self.probe().await == GatewayState::Gone
                }
            };
            if is_gone {
                return;
            }
        }
    }

    /// Whether the gateway serves, as far as is known, from now on.
    pub(crate) fn serving(&self) -> watch::Receiver<bool> {
        self.serving.subscribe()
    }

    fn has_answered_within(&self, time: Duration) -> bool {
        let answered = self.known.lock().answered;
        answered.is_some_and(|answered| answered.elapsed() < time)
    }

    /// Sends a probe, or joins the one in flight.
    fn probe(self: &Arc<Self>) -> Shared<BoxFuture<'static, GatewayState>> {
        let mut known = self.known.lock();
        let runtime = Handle::try_current().map(|runtime| runtime.id()).ok();
        let in_flight = known.in_flight.as_ref().filter(|(id, _)| Some(*id) == runtime);
        let in_flight = in_flight.and_then(|(_, probe)| probe.upgrade());
        if let Some(in_flight) = in_flight.filter(|probe| probe.peek().is_none()) {
            return in_flight;
        }
        let health = Arc::clone(self);
        let probe = async move {
            let before = health.silence.received_bytes();
            let found = (health.probe.0)().await;
            health.note(found, before)
        };
        let probe = probe.boxed().shared();
        known.in_flight = runtime.zip(probe.downgrade());
        probe
    }

    /// Takes what a probe has found. The gateway had sent `received_before` bytes when it began.
    fn note(self: &Arc<Self>, found: Result<GatewayState>, received_before: u64) -> GatewayState {
        let mut known = self.known.lock();
        let state = match &found {
            Ok(state) => *state,
            // The link is busy with what the gateway sends.
            Err(error)
                if error.kind() == ErrorKind::Timeout && self.silence.received_bytes() > received_before =>
            {
                known.state
            }
            Err(_) => GatewayState::Gone,
        };
        known.state = state;
        self.serving.send_replace(state == GatewayState::Serving);
        if state != GatewayState::Gone {
            known.answered = Some(Instant::now());
        }
        if state == GatewayState::Serving {
            if let Some(outage) = known.outage.take() {
                self.recoveries.fetch_add(1, Relaxed);
                outage.recovered();
            }
            return state;
        }
        let outage = known.outage.get_or_insert_with(|| self.outages.begin());
        let what_follows = if self.has_others.load(Relaxed) {
            "other replicas take over, or its samples are read plainly, until it answers"
        } else if found.is_err() {
            "everything is read plainly until the gateway answers"
        } else {
            "new batches are read plainly until it serves again"
        };
        match found {
            Err(error) => outage.warn(&format_args!("{error}; {what_follows}")),
            Ok(_) => {
                outage.warn(&format_args!(
                    "the gateway {} is draining; {what_follows}",
                    self.name
                ));
            }
        }
        drop(known);
        self.repeat_probe();
        state
    }

    /// Begins to repeat the probe, if that has not begun.
    fn repeat_probe(self: &Arc<Self>) {
        let mut known = self.known.lock();
        let is_repeated = known
            .repetition
            .as_ref()
            .is_some_and(|repetition| !repetition.is_finished());
        if let Ok(runtime) = Handle::try_current()
            && !is_repeated
        {
            let repetition = runtime.spawn(probe_until_serving(Arc::downgrade(self)));
            known.repetition = Some(AbortOnDropHandle::new(repetition));
        }
    }

    /// Ends the repetition if the gateway serves. Returns whether it does.
    fn end_repetition(&self) -> bool {
        let mut known = self.known.lock();
        let is_serving = known.state == GatewayState::Serving;
        if is_serving {
            known.repetition = None;
        }
        is_serving
    }
}

/// Probes a gateway that does not serve, until it does or its store is dropped.
async fn probe_until_serving(health: Weak<GatewayHealth>) {
    for failures in 1.. {
        let part = LEAST_PAUSE + (1.0 - LEAST_PAUSE) * rand::random::<f64>();
        sleep(PROBE_PAUSES.ceiling(failures).mul_f64(part)).await;
        let Some(health) = health.upgrade() else { return };
        health.probe().await;
        if health.end_repetition() {
            return;
        }
    }
}

/// The state in an answer to a probe.
///
/// # Errors
/// If another server answered in place of the gateway, which it does not reach.
pub(super) async fn state_in(answer: Answer) -> Result<GatewayState> {
    if listed_features(&answer.headers).is_none() {
        if answer.status.is_success() {
            let text = "the gateway is not reached: an answer of another server lists no features";
            return Err(Error::new(ErrorKind::Unreachable, text));
        }
        return Err(answer.refusal().await.into_error("the gateway is not reached"));
    }
    Ok(match answer.header(STATE) {
        Some(DRAINING) => GatewayState::Draining,
        _ => GatewayState::Serving,
    })
}

#[cfg(test)]
mod tests;
