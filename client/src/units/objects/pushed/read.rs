//! Samples that are placed on one replica: rows missing from its answer are requested again, there or elsewhere.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use pushdown::wire::RowError;
use pushdown_s3::{Attempt, AttemptError};

use super::{
    Displaced, ReplicaEnd,
    answer::{Attempted, RowFailures},
    refusals::is_overload,
    request::request_slots,
};
use crate::{
    error::{Error, ErrorKind, Result},
    sample_name::SampleName,
    store::{GatewayState, InFlightSamples, Replica},
    units::objects::{BatchJob, Session, intake::Intake, replicas::PlacedSamples},
};

/// Samples that are pushed down to a replica, by requests until all of them have arrived.
pub(super) struct PushedRead<'a> {
    pub(super) session: &'a Arc<Session>,
    pub(super) job: &'a BatchJob,
    pub(super) intake: &'a Intake<'a>,
    pub(super) replica: Arc<Replica>,
    /// Replicas that have failed this batch.
    avoided: Vec<Arc<Replica>>,
    /// Slots of those that have not arrived.
    slots: Vec<usize>,
    pub(super) in_flight: InFlightSamples,
}

/// Why a request did not deliver all of its rows.
pub(super) enum Unfinished {
    /// There is nothing to request any more.
    NothingLeft,
    /// The gateway did not deliver the samples, which this host reads plainly.
    LeftToHost,
    /// Another replica is to be asked: this one does not serve, or may not run the steps, or it serves and fails this batch.
    Displaced { has_failed: bool },
    /// No other request may succeed.
    Failed(Error),
    /// The answer is missing, or a part of it.
    Lost {
        error: Error,
        retry_after: Option<Duration>,
        has_progressed: bool,
        /// Whether the gateway had no time for the batch before either, and the plan may read plainly.
        is_given_up: bool,
    },
    /// The answer is complete, but rows of it are errors that may pass.
    Rows {
        failed: BTreeMap<usize, RowError>,
        /// Text of the first one.
        first: String,
        has_progressed: bool,
        /// Whether this host may read them, and those of the last batch have failed through all retries.
        is_given_up: bool,
    },
}

/// Reads the values of slots that are placed on one replica.
pub(super) async fn fetch_from(
    session: &Arc<Session>,
    job: &BatchJob,
    intake: &Intake<'_>,
    placed: PlacedSamples,
    avoided: Vec<Arc<Replica>>,
) -> Result<ReplicaEnd> {
    let PlacedSamples {
        replica,
        slots,
        in_flight,
    } = placed;
    let health = Arc::clone(replica.health());
    let mut read = PushedRead {
        session,
        job,
        intake,
        replica,
        avoided,
        slots,
        in_flight,
    };
    // Without anything that takes over at once, the next attempt waits until a replica may be back.
    let replaceable = session.is_gateway_dispensable().then_some(&*health);
    let mut retries = session
        .store
        .gateway_retries(Some(&session.counters), replaceable);
    loop {
        match retries.complete(&mut read).await {
            Ok(()) => {}
            Err(Unfinished::NothingLeft) => return Ok(ReplicaEnd::Served),
            Err(Unfinished::LeftToHost) => return Ok(ReplicaEnd::LeftToHost),
            Err(Unfinished::Displaced { has_failed }) => {
                return Ok(ReplicaEnd::Displaced(Displaced {
                    failed: has_failed.then_some(read.replica),
                    slots: read.slots,
                }));
            }
            Err(Unfinished::Lost { error, .. }) if is_overload(session, &error) => {
                let state = if session.is_gateway_dispensable() {
                    health.after_failure().await
                } else {
                    GatewayState::Serving
                };
                if state == GatewayState::Serving && !session.is_overloaded.swap(true, Relaxed) {
                    tracing::warn!(%error, "batches are read plainly until the gateway has time for one");
                }
                return Ok(ReplicaEnd::LeftToHost);
            }
            Err(Unfinished::Lost { error, .. } | Unfinished::Failed(error)) => {
                return Err(session.gateway_error(error));
            }
            // The gateway works, but these samples fail: this host may read them, or they are reported by name.
            Err(Unfinished::Rows { failed, .. }) => {
                read.slots.retain(|slot| !failed.contains_key(slot));
                if session.is_gateway_dispensable() {
                    session.has_failing_rows.store(true, Relaxed);
                    job.leave_to_host(intake, &mut failed.into_keys().collect());
                    continue;
                }
                let mut failed = failed.into_iter();
                failed.try_for_each(|(slot, error)| intake.failed(slot, error))?;
            }
        }
    }
}

impl PushedRead<'_> {
    /// Whether another replica or this host can take over.
    fn is_replaceable(&self) -> bool {
        self.session.store.has_several_replicas() || self.session.is_gateway_dispensable()
    }

    /// Every replica that serves may run fewer steps: this host takes over, or the next attempt waits until another one serves.
    fn without_replicas(&mut self) -> Unfinished {
        if self.session.is_gateway_dispensable() {
            self.job.leave_to_host(self.intake, &mut self.slots);
            return Unfinished::LeftToHost;
        }
        let text = "no replica of the gateway that serves computes the values of this host";
        Unfinished::Lost {
            error: Error::new(ErrorKind::Unreachable, text),
            retry_after: None,
            has_progressed: false,
            is_given_up: false,
        }
    }

    /// Whether another replica may be asked now.
    pub(super) fn has_usable_other(&self) -> bool {
        self.session.has_usable_other(&self.replica, &self.avoided)
    }

    /// Waits for an answer of the replica, or a part of one.
    ///
    /// # Errors
    /// A retryable one as soon as the replica is gone, if something replaces it; those of `answer`.
    pub(super) async fn wait_for<T>(&self, answer: impl Future<Output = Result<T>>) -> Result<T> {
        if self.is_replaceable() {
            self.replica.health().wait_for(answer).await
        } else {
            answer.await
        }
    }
}

impl Attempt for PushedRead<'_> {
    type Output = ();
    type Error = Unfinished;

    /// Requests as many of the missing samples as fit into one request.
    async fn run(&mut self) -> Result<(), Unfinished> {
        let (session, job, intake) = (self.session, self.job, self.intake);
        session.limit_routes(job, intake, &mut self.slots);
        if !session.may_request_from(&self.replica) {
            if self.has_usable_other() {
                return Err(Unfinished::Displaced { has_failed: false });
            }
            if session.is_limited_replica(&self.replica) {
                return Err(self.without_replicas());
            }
        }
        let before = self.slots.len();
        let wanted = request_slots(session, job, &self.slots);
        if wanted.is_empty() {
            return Err(Unfinished::NothingLeft);
        }
        if let Some(charge) = &job.charge {
            charge.wait_for_room().await;
        }
        let mut failures = RowFailures::default();
        let attempted = match self.attempt(&wanted, &mut failures).await {
            Err(error) if error.is_retryable() => Ok(Attempted::Partial(error, None)),
            attempted => attempted,
        };
        let lost = match attempted.map_err(Unfinished::Failed)? {
            Attempted::Limited => return Ok(()),
            Attempted::Complete => {
                session.is_overloaded.store(false, Relaxed);
                None
            }
            Attempted::Partial(error, retry_after) => Some((error, retry_after)),
        };
        let missing = intake.missing();
        self.slots
            .retain(|slot| missing.binary_search(slot).is_ok() && !failures.left_to_host.contains(slot));
        let slots = &mut self.slots;
        let has_progressed = slots.len() < before;
        if let Some((error, retry_after)) = lost {
            // A gateway that has no time says so, and may have some later.
            let is_busy = error.kind() == ErrorKind::Unavailable;
            let is_dispensable = session.is_gateway_dispensable();
            let state = if !is_busy && (is_dispensable || session.store.has_several_replicas()) {
                self.replica.health().after_failure().await
            } else {
                GatewayState::Serving
            };
            if session.has_usable_other(&self.replica, &self.avoided) {
                tracing::debug!(%error, ?state, replica = %self.replica, samples = slots.len(), "another replica is asked");
                return Err(Unfinished::Displaced {
                    has_failed: state == GatewayState::Serving,
                });
            }
            if is_dispensable && !is_busy {
                if state == GatewayState::Serving && !session.loss_warning_logged.swap(true, Relaxed) {
                    tracing::warn!(%error, "the gateway lives, but a batch has failed there: what is missing is read plainly");
                } else {
                    tracing::debug!(%error, ?state, samples = slots.len(), "the rest of a batch is read plainly");
                }
                job.leave_to_host(intake, slots);
                return Err(Unfinished::LeftToHost);
            }
            return Err(Unfinished::Lost {
                is_given_up: is_overload(session, &error) && session.is_overloaded.load(Relaxed),
                error,
                retry_after,
                has_progressed,
            });
        }
        let Some((slot, error)) = failures.transient.first_key_value() else {
            session.has_failing_rows.store(false, Relaxed);
            return Ok(());
        };
        let name = SampleName::from(session.objects.object(job.samples[*slot].index));
        Err(Unfinished::Rows {
            first: format!("s3://{}/{name}: {error}", session.objects.bucket()),
            failed: failures.transient,
            has_progressed,
            is_given_up: session.is_gateway_dispensable() && session.has_failing_rows.load(Relaxed),
        })
    }
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingLeft => f.write_str("nothing is left to request"),
            Self::LeftToHost => f.write_str("the gateway did not answer"),
            Self::Displaced { .. } => f.write_str("another replica is asked"),
            Self::Failed(error) | Self::Lost { error, .. } => error.fmt(f),
            Self::Rows { first, .. } => f.write_str(first),
        }
    }
}

impl AttemptError for Unfinished {
    fn is_retryable(&self) -> bool {
        match self {
            Self::NothingLeft | Self::LeftToHost | Self::Displaced { .. } | Self::Failed(_) => false,
            Self::Lost { is_given_up, .. } | Self::Rows { is_given_up, .. } => !is_given_up,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Lost { retry_after, .. } => *retry_after,
            Self::NothingLeft
            | Self::LeftToHost
            | Self::Displaced { .. }
            | Self::Failed(_)
            | Self::Rows { .. } => None,
        }
    }

    fn has_progressed(&self) -> bool {
        match self {
            Self::Lost { has_progressed, .. } | Self::Rows { has_progressed, .. } => *has_progressed,
            Self::NothingLeft | Self::LeftToHost | Self::Displaced { .. } | Self::Failed(_) => false,
        }
    }
}
