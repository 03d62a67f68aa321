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

use futures::FutureExt as _;
use http::{
    HeaderMap, HeaderValue,
    header::{ACCEPT, CONTENT_TYPE},
};
use pushdown::wire::{self, BatchReader, CachedRatios, RowError};
use pushdown_s3::{Attempt, AttemptError, is_transient_code};
use tokio::time::Instant;

use super::{BatchJob, Session, intake::Intake};
use crate::{
    error::{Error, ErrorKind, Result},
    measure::GatewayCpus,
    planning::{Adapter, ArrivingAnswer, Event},
    sample_name::SampleName,
    store::{BatchAnswer, GatewayState},
    transport::{Answer, listed_features},
};
use features::{KnownFeatures, features, lacking, lacks_crops};
use refusals::{
    batch_refused, check_columns, fail_or_fall_back, is_forbidden, is_limited_by_engine, is_overload,
    not_a_gateway,
};
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

/// Samples that are pushed down, by requests until all of them have arrived.
struct PushedRead<'a> {
    session: &'a Arc<Session>,
    job: &'a BatchJob,
    intake: &'a Intake<'a>,
    /// Slots of those that have not arrived.
    slots: Vec<usize>,
}

/// Why a request did not deliver all of its rows.
enum Unfinished {
    /// There is nothing to request any more.
    NothingLeft,
    /// The gateway did not deliver the samples, which this host reads plainly.
    LeftToHost,
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
    let mut read = PushedRead {
        session,
        job,
        intake,
        slots,
    };
    let mut retries = session
        .store
        .gateway_retries(Some(&session.counters), session.dispensable_gateway());
    loop {
        match retries.complete(&mut read).await {
            Ok(()) => {}
            Err(Unfinished::NothingLeft) => return Ok(true),
            Err(Unfinished::LeftToHost) => return Ok(false),
            Err(Unfinished::Lost { error, .. }) if is_overload(session, &error) => {
                let state = match session.dispensable_gateway() {
                    Some(health) => health.after_failure().await,
                    None => GatewayState::Serving,
                };
                if state == GatewayState::Serving && !session.is_overloaded.swap(true, Relaxed) {
                    tracing::warn!(%error, "batches are read plainly until the gateway has time for one");
                }
                return Ok(false);
            }
            Err(Unfinished::Lost { error, .. } | Unfinished::Failed(error)) => {
                return Err(session.gateway_error(error));
            }
            // The gateway works, but these samples fail: this host may read them, or they are reported by name.
            Err(Unfinished::Rows { failed, .. }) => {
                read.slots.retain(|slot| !failed.contains_key(slot));
                if session.dispensable_gateway().is_some() {
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

impl Attempt for PushedRead<'_> {
    type Output = ();
    type Error = Unfinished;

    /// Requests as many of the missing samples as fit into one request.
    async fn run(&mut self) -> Result<(), Unfinished> {
        let Self {
            session,
            job,
            intake,
            slots,
        } = self;
        session.limit_routes(job, intake, slots);
        let before = slots.len();
        let wanted = request_slots(session, job, slots);
        if wanted.is_empty() {
            return Err(Unfinished::NothingLeft);
        }
        if let Some(charge) = &job.charge {
            charge.wait_for_room().await;
        }
        let mut failures = RowFailures::default();
        let attempted = match attempt(session, job, &wanted, intake, &mut failures).await {
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
        slots.retain(|slot| missing.binary_search(slot).is_ok() && !failures.left_to_host.contains(slot));
        let has_progressed = slots.len() < before;
        if let Some((error, retry_after)) = lost {
            // A gateway that has no time says so, and may have some later.
            if let Some(health) = session.dispensable_gateway()
                && error.kind() != ErrorKind::Unavailable
            {
                let state = health.after_failure().await;
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
            is_given_up: session.dispensable_gateway().is_some() && session.has_failing_rows.load(Relaxed),
        })
    }
}

impl fmt::Display for Unfinished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingLeft => f.write_str("nothing is left to request"),
            Self::LeftToHost => f.write_str("the gateway did not answer"),
            Self::Failed(error) | Self::Lost { error, .. } => error.fmt(f),
            Self::Rows { first, .. } => f.write_str(first),
        }
    }
}

impl AttemptError for Unfinished {
    fn is_retryable(&self) -> bool {
        match self {
            Self::NothingLeft | Self::LeftToHost | Self::Failed(_) => false,
            Self::Lost { is_given_up, .. } | Self::Rows { is_given_up, .. } => !is_given_up,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Lost { retry_after, .. } => *retry_after,
            Self::NothingLeft | Self::LeftToHost | Self::Failed(_) | Self::Rows { .. } => None,
        }
    }

    fn has_progressed(&self) -> bool {
        match self {
            Self::Lost { has_progressed, .. } | Self::Rows { has_progressed, .. } => *has_progressed,
            Self::NothingLeft | Self::LeftToHost | Self::Failed(_) => false,
        }
    }
}

/// Requests the samples of `slots` once and takes the rows of the answer.
async fn attempt(
    session: &Arc<Session>,
    job: &BatchJob,
    slots: &[usize],
    intake: &Intake<'_>,
    failures: &mut RowFailures,
) -> Result<Attempted> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static(ARROW));
    let features = match features(session, job).await? {
        KnownFeatures::Usable(features) => features,
        KnownFeatures::Ended(attempted) => return Ok(attempted),
    };
    if lacks_crops(job, slots, &features) {
        return Ok(Attempted::Limited);
    }
    let write = |signer, features| batch_post(session, job, slots, signer, features);
    let bucket = session.objects.bucket();
    let _pending = session.adapter.as_ref().map(Adapter::begin_batch);
    let sent = session.store.send_batch(bucket, headers, features, write);
    let BatchAnswer { answer, validity } = session.wait_for(sent).await?;
    if !answer.status.is_success() {
        let listed = listed_features(&answer.headers);
        // The gateway was replaced by an older one.
        if let Some(listed) = &listed
            && let Some(ended) = lacking(session, listed)?
        {
            return Ok(ended);
        }
        if listed.is_some_and(|listed| lacks_crops(job, slots, &listed)) {
            return Ok(Attempted::Limited);
        }
        let has_features = answer.headers.contains_key(wire::header::FEATURES);
        let refusal = session.wait_for(async { Ok(answer.refusal().await) }).await?;
        let refused = batch_refused(session, refusal, has_features);
        return fail_or_fall_back(session, refused);
    }
    job.progress.mark_answered();
    let is_arrow = answer
        .header(CONTENT_TYPE.as_str())
        .is_some_and(|content_type| content_type.starts_with(ARROW));
    if let Some(adapter) = &session.adapter {
        adapter.observe(Event::RequestAnswered(GatewayCpus::from_headers(&answer.headers)));
        adapter.observe(Event::CachedRatiosAnnounced(cached_ratios(&answer)));
    }
    let engine = answer.header(wire::header::ENGINE);
    if engine.is_some_and(|engine| is_limited_by_engine(session, job, slots, engine)) {
        return Ok(Attempted::Limited);
    }
    // A proxy may drop the engine header; the stream names the engine, too.
    if !is_arrow {
        return fail_or_fall_back(
            session,
            Err(not_a_gateway(session, "its answer is not an Arrow stream")),
        );
    }
    let answered = BatchAnswer { answer, validity };
    read_rows(session, job, slots, answered, intake, failures).await
}

/// What an answer states about the gateway's result cache; nothing if it has none.
fn cached_ratios(answer: &Answer) -> CachedRatios {
    let text = answer.header(wire::header::CACHED_RATIO);
    text.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// Takes the rows of an answer until its end.
async fn read_rows(
    session: &Session,
    job: &BatchJob,
    slots: &[usize],
    answered: BatchAnswer,
    intake: &Intake<'_>,
    failures: &mut RowFailures,
) -> Result<Attempted> {
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
        let Some(chunk) = session.wait_for(answer.chunk()).await? else {
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
            && is_limited_by_engine(session, job, slots, engine)
        {
            return Ok(Attempted::Limited);
        }
        if !rows.is_empty() {
            if let Some(health) = session.store.gateway_health() {
                health.observe_rows(mem::take(&mut waited));
            }
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
                    if is_forbidden(&error.code) && session.dispensable_gateway().is_some() {
                        intake.refused_to_gateway(slot, error);
                    }
                    failures.left_to_host.insert(slot)
                }
                _ => intake.row(slot, row).map(|()| true)?,
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
