//! Pushdown: a batch is one request, and rows missing from its answer are requested again.

mod features;
mod refusals;
mod request;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, mem,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use futures::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use http::{
    HeaderMap, HeaderValue,
    header::{ACCEPT, CONTENT_TYPE},
};
use pushdown::wire::{self, BatchReader, CachedRatios, RowError};
use pushdown_s3::{Attempt, AttemptError, is_transient_code};
use tokio::time::Instant;

use super::{BatchJob, Session, intake::Intake, replicas::PlacedSamples};
use crate::{
    error::{Error, ErrorKind, Result},
    measure::GatewayCpus,
    planning::{Adapter, ArrivingAnswer},
    sample_name::SampleName,
    store::{BatchAnswer, GatewayState, InFlightSamples, Replica},
    transport::{Answer, listed_features},
};
use features::{KnownFeatures, lacks_crops};
use refusals::{batch_refused, check_columns, is_forbidden, is_overload, not_a_gateway};
use request::{batch_post, request_slots};

/// Content type of the answer.
const ARROW: &str = "application/vnd.apache.arrow.stream";

/// The outcome of a request without a permanent error.
enum Attempted {
    /// Every row has arrived, with a value or an error.
    Complete,
    /// Some rows are missing.
    Partial(Error, Option<Duration>),
    /// The gateway may run fewer steps than it was asked for. Nothing of its answer was taken.
    Limited,
}

/// Failed samples by slot.
#[derive(Debug, Default)]
struct RowFailures {
    /// Errors that may pass with a retry.
    transient: BTreeMap<usize, RowError>,
    /// Samples that the gateway cannot compute, but this host may.
    left_to_host: BTreeSet<usize>,
}

/// Samples that are pushed down to a replica, by requests until all of them have arrived.
struct PushedRead<'a> {
    session: &'a Arc<Session>,
    job: &'a BatchJob,
    intake: &'a Intake<'a>,
    replica: Arc<Replica>,
    /// Replicas that have failed this batch.
    avoided: Vec<Arc<Replica>>,
    /// Slots of those that have not arrived.
    slots: Vec<usize>,
    in_flight: InFlightSamples,
}

/// How the reads from a replica end, without a permanent error.
enum ReplicaEnd {
    /// All samples have arrived, or have another route.
    Served,
    /// The gateway had no time, or did not answer: this host reads the samples that are missing.
    LeftToHost,
    /// These slots are to be requested from another replica.
    Displaced(Displaced),
}

/// Samples that another replica is to be asked for.
struct Displaced {
    slots: Vec<usize>,
    /// The replica that serves and has failed this batch, if that is the reason.
    failed: Option<Arc<Replica>>,
}

/// Why a request did not deliver all of its rows.
enum Unfinished {
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

/// Reads the values of these slots. Leaves those missing that are to be read plainly. Returns whether the gateway had time for the others.
pub(super) async fn fetch(
    session: &Arc<Session>,
    job: &BatchJob,
    intake: &Intake<'_>,
    slots: Vec<usize>,
) -> Result<bool> {
    if slots.is_empty() {
        return Ok(true);
    }
    session.replica_use.batch_began(&job.progress);
    let (mut is_served, mut avoided) = (true, Vec::new());
    let mut reads = FuturesUnordered::new();
    let mut unplaced = slots;
    loop {
        if !unplaced.is_empty() {
            let placed = session.place(job, unplaced.clone(), &avoided).await?;
            if placed.is_empty() {
                job.leave_to_host(intake, &mut unplaced);
                is_served = false;
            }
            for placed in placed {
                reads.push(fetch_from(session, job, intake, placed, avoided.clone()));
            }
        }
        unplaced = match reads.next().await.transpose()? {
            None => return Ok(is_served),
            Some(ReplicaEnd::Served) => Vec::new(),
            Some(ReplicaEnd::LeftToHost) => {
                is_served = false;
                Vec::new()
            }
            Some(ReplicaEnd::Displaced(Displaced { mut slots, failed })) => {
                avoided.extend(failed);
                session.observe_displacement(job);
                session.plan_again(job, intake, &mut slots);
                slots
            }
        };
    }
}

/// The same of slots that are placed on one replica.
async fn fetch_from(
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
    fn has_usable_other(&self) -> bool {
        self.session.has_usable_other(&self.replica, &self.avoided)
    }

    /// Waits for an answer of the replica, or a part of one.
    ///
    /// # Errors
    /// A retryable one as soon as the replica is gone, if something replaces it; those of `answer`.
    async fn wait_for<T>(&self, answer: impl Future<Output = Result<T>>) -> Result<T> {
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

impl PushedRead<'_> {
    /// Requests the samples of `slots` once and takes the rows of the answer.
    async fn attempt(&mut self, slots: &[usize], failures: &mut RowFailures) -> Result<Attempted> {
        let (session, job) = (self.session, self.job);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static(ARROW));
        let features = match self.features().await? {
            KnownFeatures::Usable(features) => features,
            KnownFeatures::Ended(attempted) => return Ok(attempted),
        };
        if lacks_crops(job, slots, &features) {
            return Ok(self.without_crops());
        }
        let demand = session.demand_on(&self.replica);
        let write = |signer, features| batch_post(session, job, slots, (signer, features), demand.clone());
        let bucket = session.objects.bucket();
        let _pending = session.adapter.as_ref().map(Adapter::begin_batch);
        let _pending_here = session.replica_use.begin(&self.replica);
        let sent = session
            .store
            .send_batch(&self.replica, bucket, headers, features, write);
        let BatchAnswer { answer, validity } = self.wait_for(sent).await?;
        if !answer.status.is_success() {
            let listed = listed_features(&answer.headers);
            // The gateway was replaced by an older one.
            if let Some(listed) = &listed
                && let Some(ended) = self.lacking(listed)?
            {
                return Ok(ended);
            }
            if listed.is_some_and(|listed| lacks_crops(job, slots, &listed)) {
                return Ok(self.without_crops());
            }
            let has_features = answer.headers.contains_key(wire::header::FEATURES);
            let refusal = self.wait_for(async { Ok(answer.refusal().await) }).await?;
            let refused = batch_refused(session, refusal, has_features);
            return self.fail_or_fall_back(refused);
        }
        job.progress.mark_answered();
        let is_arrow = answer
            .header(CONTENT_TYPE.as_str())
            .is_some_and(|content_type| content_type.starts_with(ARROW));
        let cpus = GatewayCpus::from_headers(&answer.headers);
        session.observe_answer_of(&self.replica, cpus, cached_ratios(&answer));
        let engine = answer.header(wire::header::ENGINE);
        if engine.is_some_and(|engine| self.is_limited_by_engine(slots, engine)) {
            return Ok(Attempted::Limited);
        }
        // A proxy may drop the engine header; the stream names the engine, too.
        if !is_arrow {
            return self.fail_or_fall_back(Err(not_a_gateway(session, "its answer is not an Arrow stream")));
        }
        self.read_rows(slots, BatchAnswer { answer, validity }, failures)
            .await
    }
}

/// What an answer states about the gateway's result cache; nothing if it has none.
fn cached_ratios(answer: &Answer) -> CachedRatios {
    let text = answer.header(wire::header::CACHED_RATIO);
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

impl PushedRead<'_> {
    /// Takes the rows of an answer until its end.
    async fn read_rows(
        &mut self,
        slots: &[usize],
        answered: BatchAnswer,
        failures: &mut RowFailures,
    ) -> Result<Attempted> {
        let (session, job, intake) = (self.session, self.job, self.intake);
        let BatchAnswer { mut answer, validity } = answered;
        // A signature can end while its sample waits at the gateway.
        let may_sign_again = |code: &str| {
            let validity = validity.as_ref();
            validity.is_some_and(|validity| session.store.may_sign_again(validity, code))
        };
        let mut arriving = session.adapter.as_ref().and_then(Adapter::begin_answer);
        let mut reader = BatchReader::new(session.limits);
        let (mut taken, mut engine_checked) = (0, false);
        let mut waited = Duration::ZERO;
        loop {
            if let Some(charge) = &job.charge
                && charge.wait_for_room().now_or_never().is_none()
            {
                arriving.iter_mut().for_each(ArrivingAnswer::pause);
                charge.wait_for_room().await;
            }
            let began = Instant::now();
            let Some(chunk) = self.wait_for(answer.chunk()).await? else {
                break;
            };
            waited += began.elapsed();
            let chunk_bytes = chunk.len() as u64;
            let rows = reader.push(chunk)?;
            if let Some(arriving) = &mut arriving {
                arriving.on_chunk(chunk_bytes, !rows.is_empty(), reader.is_within_row());
            }
            // The stream states the engine at its start: check it once.
            if let Some(engine) = reader
                .engine()
                .filter(|_| !mem::replace(&mut engine_checked, true))
                && self.is_limited_by_engine(slots, engine)
            {
                return Ok(Attempted::Limited);
            }
            if !rows.is_empty() {
                self.replica.health().observe_rows(mem::take(&mut waited));
                check_columns(session, reader.column_names().unwrap_or_default())?;
            }
            for row in rows {
                let slot = *usize::try_from(row.row)
                    .ok()
                    .and_then(|row| slots.get(row))
                    .ok_or_else(|| {
                        Error::protocol(format!(
                            "invalid row {} from the gateway: expected less than {}",
                            row.row,
                            slots.len()
                        ))
                    })?;
                taken += 1;
                let is_first = match row.value {
                    Err(error) if may_sign_again(&error.code) || is_transient_code(&error.code) => {
                        failures.transient.insert(slot, error).is_none()
                    }
                    Err(error) if session.adapter.is_some() => {
                        if is_forbidden(&error.code) && session.is_gateway_dispensable() {
                            intake.refused_to_gateway(slot, error);
                        }
                        session.observe_arrival(&mut self.in_flight);
                        failures.left_to_host.insert(slot)
                    }
                    _ => {
                        session.observe_arrival(&mut self.in_flight);
                        let is_delivered = row.value.is_ok();
                        intake.row(slot, row)?;
                        if is_delivered {
                            self.in_flight.count_delivered();
                        }
                        true
                    }
                };
                if !is_first {
                    return Err(Error::protocol("the gateway sent the error of a row twice"));
                }
            }
        }
        let broke_off = |text: String| Error::new(ErrorKind::Interrupted, text);
        reader.finish().map_err(|error| broke_off(error.to_string()))?;
        if taken < slots.len() {
            return Err(broke_off(format!(
                "the answer ended after {taken} of {} rows",
                slots.len()
            )));
        }
        Ok(Attempted::Complete)
    }
}
