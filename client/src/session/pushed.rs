//! Pushdown: a batch is one request, and rows missing from its answer are requested again.

mod refusals;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method,
    header::{ACCEPT, CONTENT_TYPE},
};
use pushdown::wire::{self, BatchReader, BatchRequest, BatchSample, MAX_REQUEST_BYTES, Order, RowError};

use super::{BatchJob, Session, intake::Intake, routes::SampleRoute};
use crate::{
    error::{Error, ErrorKind, Result},
    planning::{Adapter, Event, GatewayCpus},
    retry::is_transient_code,
    sign::object_path,
    stats::add,
    transport::Answer,
};
use refusals::{batch_refused, fail_or_fall_back, is_limited_by_engine, not_a_gateway};

/// Content type of the answer.
const ARROW: &str = "application/vnd.apache.arrow.stream";
/// The most samples in a request: the gateway's default limit.
const MAX_SAMPLES: usize = 4096;
/// The most bytes of a request apart from its samples: the pipeline's text and the signing parameters.
const REQUEST_HEAD_BYTES: usize = 2 * pushdown::limits::MAX_PIPELINE_BYTES + 16 * 1024;
/// The most bytes of a sample in JSON apart from its path.
const SAMPLE_FRAME_BYTES: usize = 128;

/// The outcome of an attempt without a permanent error.
enum Attempt {
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

/// Reads the values of these slots. Leaves those missing that are to be read plainly.
pub(super) async fn fetch(
    session: &Arc<Session>,
    job: &BatchJob,
    intake: &Intake<'_>,
    mut slots: Vec<usize>,
) -> Result<()> {
    let mut backoff = session.store.backoff();
    loop {
        session.limit_routes(job, intake, &mut slots);
        let before = slots.len();
        let wanted = request_slots(session, job, &slots);
        if wanted.is_empty() {
            return Ok(());
        }
        if let Some(charge) = &job.charge {
            charge.wait_for_room().await;
        }
        let mut failures = RowFailures::default();
        let attempt = attempt(session, job, &wanted, intake, &mut failures).await?;
        let failed = match attempt {
            Attempt::Limited => {
                backoff.succeeded();
                continue;
            }
            Attempt::Complete => None,
            Attempt::Partial(error, retry_after) => Some((error, retry_after)),
        };
        let missing = intake.missing();
        slots.retain(|slot| missing.binary_search(slot).is_ok() && !failures.left_to_host.contains(slot));
        if slots.len() < before {
            backoff.progressed();
        }
        let again = match (&failed, failures.transient.first_key_value()) {
            (Some((error, retry_after)), _) => backoff.pause(error, *retry_after).await,
            (None, Some((slot, error))) => {
                let key = session.objects.key(job.samples[*slot].index);
                let text = format!("s3://{}/{key}: {error}", session.objects.bucket());
                backoff.pause(&text, None).await
            }
            (None, None) => {
                backoff.succeeded();
                continue;
            }
        };
        if again {
            add(&session.counters.retries, 1);
            continue;
        }
        if let Some((error, _)) = failed {
            return Err(error);
        }
        // The gateway works, but these samples fail: report them by name.
        slots.retain(|slot| !failures.transient.contains_key(slot));
        let mut transient = failures.transient.into_iter();
        transient.try_for_each(|(slot, error)| intake.failed(slot, error))?;
    }
}

/// The first of the missing slots, as many as fit into one request.
fn request_slots(session: &Session, job: &BatchJob, missing: &[usize]) -> Vec<usize> {
    let mut room = MAX_REQUEST_BYTES.saturating_sub(REQUEST_HEAD_BYTES);
    let bucket = session.objects.bucket().len();
    let fits = |slot: &&usize| {
        // Percent-encoding turns a byte into three.
        let key = session.objects.key(job.samples[**slot].index);
        let path = 3 * (bucket + key.len()) + SAMPLE_FRAME_BYTES;
        let fits = path <= room;
        room = room.saturating_sub(path);
        fits
    };
    missing
        .iter()
        .take(MAX_SAMPLES)
        .take_while(fits)
        .copied()
        .collect()
}

/// Requests the samples of `slots` once and takes the rows of the answer.
async fn attempt(
    session: &Arc<Session>,
    job: &BatchJob,
    slots: &[usize],
    intake: &Intake<'_>,
    failures: &mut RowFailures,
) -> Result<Attempt> {
    let body = request(session, job, slots).await?;
    let _pending = session.adapter.as_ref().map(Adapter::begin_batch);
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static(ARROW));
    let sent = session
        .store
        .transport()
        .send(Method::POST, wire::header::BATCH_PATH, headers, body)
        .await;
    let answer = match sent {
        Ok(answer) if answer.status.is_success() => answer,
        Ok(answer) => return fail_or_fall_back(session, batch_refused(session, answer.refusal().await)),
        Err(error) if error.is_retryable() => return Ok(Attempt::Partial(error, None)),
        Err(error) => return Err(error),
    };
    job.progress.mark_answered();
    let is_arrow = answer
        .header(CONTENT_TYPE.as_str())
        .is_some_and(|content_type| content_type.starts_with(ARROW));
    if let Some(adapter) = &session.adapter {
        adapter.observe(Event::RequestAnswered(GatewayCpus::from_headers(&answer.headers)));
    }
    let engine = answer.header(wire::header::ENGINE);
    if engine.is_some_and(|engine| is_limited_by_engine(session, job, slots, engine)) {
        return Ok(Attempt::Limited);
    }
    // A proxy may drop the engine header; the stream names the engine, too.
    if !is_arrow {
        return fail_or_fall_back(
            session,
            Err(not_a_gateway(session, "its answer is not an Arrow stream")),
        );
    }
    match read_rows(session, job, slots, answer, intake, failures).await {
        Err(error) if error.is_retryable() => Ok(Attempt::Partial(error, None)),
        done => done,
    }
}

/// The request's body: every sample with its own signature, signed again for every attempt.
async fn request(session: &Arc<Session>, job: &BatchJob, slots: &[usize]) -> Result<Bytes> {
    let presigner = session.store.presigner().await?;
    let samples = slots
        .iter()
        .map(|slot| (job.samples[*slot].index, job.routes.get(*slot)));
    let samples: Vec<(usize, SampleRoute)> = samples.collect();
    let (session, epoch) = (Arc::clone(session), job.epoch);
    let cpu = session.cpu.clone();
    // Thousands of signatures take milliseconds.
    let json = cpu.run(move || {
        let sample = |(index, SampleRoute { split, max_bytes }): (usize, SampleRoute)| {
            let path = object_path(session.objects.bucket(), session.objects.key(index));
            let signature = presigner.signature(&path);
            BatchSample {
                split: (split != session.split).then_some(split),
                max_bytes,
                ..BatchSample::new(path, signature)
            }
        };
        let samples = samples.into_iter().map(sample).collect();
        let mut request = BatchRequest::new(session.pipeline.clone(), presigner.query(), samples);
        request.split = session.split;
        request.seed = session.seed;
        request.epoch = Some(epoch);
        request.order = Order::Any;
        request.compression = session.compression;
        request.to_json_for(&session.store.transport().features())
    });
    Ok(json.await??.into())
}

/// Takes the rows of an answer until its end.
async fn read_rows(
    session: &Session,
    job: &BatchJob,
    slots: &[usize],
    mut answer: Answer,
    intake: &Intake<'_>,
    failures: &mut RowFailures,
) -> Result<Attempt> {
    let mut reader = BatchReader::new(session.limits);
    let (mut taken, mut engine_checked) = (0, false);
    loop {
        if let Some(charge) = &job.charge {
            charge.wait_for_room().await;
        }
        let Some(chunk) = answer.chunk().await? else { break };
        let rows = reader.push(chunk)?;
        // The stream states the engine at its start: check it once.
        if let Some(engine) = reader
            .engine()
            .filter(|_| !std::mem::replace(&mut engine_checked, true))
            && is_limited_by_engine(session, job, slots, engine)
        {
            return Ok(Attempt::Limited);
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
                Err(error) if is_transient_code(&error.code) => {
                    failures.transient.insert(slot, error).is_none()
                }
                Err(_) if session.adapter.is_some() => failures.left_to_host.insert(slot),
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
    Ok(Attempt::Complete)
}
