//! Pushdown mode: a batch is one request, and what is missing of its answer is asked for again.

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

use super::{Job, Session, intake::Intake};
use crate::{
    adapt::Adapter,
    error::{Error, ErrorKind, Result},
    order::Place,
    profile::number,
    retry::is_transient_code,
    sign::object_path,
    stats::add,
    transport::Answer,
};
use refusals::{not_a_gateway, other_engine, refused, whole};

/// Type of the answer.
const ARROW: &str = "application/vnd.apache.arrow.stream";
/// The most samples in a request: the gateway's default limit.
const MAX_SAMPLES: usize = 4096;
/// What a request may take beside its samples: the pipeline's text and the signing parameters.
const REQUEST_HEAD: usize = 2 * pushdown::limits::MAX_PIPELINE_BYTES + 16 * 1024;
/// What a sample takes in JSON beside its path.
const SAMPLE_FRAME: usize = 128;

/// How an attempt ended that did not fail for good.
enum Attempt {
    /// Every row came, well or not.
    Complete,
    /// Not every row came.
    Partial(Error, Option<Duration>),
    /// From here on everything is read plainly.
    Plainly,
}

/// What went wrong with samples, by slot.
#[derive(Debug, Default)]
struct Troubles {
    /// What may pass: the error, should it never end.
    passing: BTreeMap<usize, RowError>,
    /// What the gateway cannot make, and this host may.
    given_up: BTreeSet<usize>,
}

/// Reads the values of these slots, or leaves them missing where everything is to be read plainly.
pub(super) async fn fetch(
    session: &Arc<Session>,
    job: &Job,
    intake: &Intake<'_>,
    mut slots: Vec<usize>,
) -> Result<()> {
    let mut backoff = session.store.backoff();
    loop {
        let before = slots.len();
        let wanted = request_slots(session, job, &slots);
        if wanted.is_empty() {
            return Ok(());
        }
        if let Some(charge) = &job.charge {
            charge.room().await;
        }
        let mut troubles = Troubles::default();
        let attempt = attempt(session, job, &wanted, intake, &mut troubles).await?;
        let failed = match attempt {
            Attempt::Plainly => {
                backoff.succeeded();
                return Ok(());
            }
            Attempt::Complete => None,
            Attempt::Partial(error, asked) => Some((error, asked)),
        };
        let missing = intake.missing();
        slots.retain(|slot| missing.binary_search(slot).is_ok() && !troubles.given_up.contains(slot));
        if slots.len() < before {
            backoff.progressed();
        }
        let again = match (&failed, troubles.passing.first_key_value()) {
            (Some((error, asked)), _) => backoff.pause(error, *asked).await,
            (None, Some((slot, error))) => {
                let key = &session.objects[job.places[*slot].index].key;
                let text = format!("s3://{}/{key}: {error}", session.bucket);
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
        // The gateway is well and these samples are not: they are reported by name.
        slots.retain(|slot| !troubles.passing.contains_key(slot));
        let mut passing = troubles.passing.into_iter();
        passing.try_for_each(|(slot, error)| intake.failed(slot, error))?;
    }
}

/// As many of the missing slots as one request may ask for.
fn request_slots(session: &Session, job: &Job, missing: &[usize]) -> Vec<usize> {
    let mut room = MAX_REQUEST_BYTES.saturating_sub(REQUEST_HEAD);
    let bucket = session.bucket.len();
    let fits = |slot: &&usize| {
        // Percent-encoding makes a byte three.
        let path = 3 * (bucket + session.objects[job.places[**slot].index].key.len()) + SAMPLE_FRAME;
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

/// Asks for the samples of `slots` once and takes what comes.
async fn attempt(
    session: &Arc<Session>,
    job: &Job,
    slots: &[usize],
    intake: &Intake<'_>,
    troubles: &mut Troubles,
) -> Result<Attempt> {
    let body = request(session, job, slots).await?;
    let _under_way = session.adapter.as_ref().map(Adapter::batch);
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
        Ok(answer) => return whole(session, refused(session, answer.refusal().await)),
        Err(error) if error.is_retryable() => return Ok(Attempt::Partial(error, None)),
        Err(error) => return Err(error),
    };
    job.progress.answered();
    let arrow = answer
        .header(CONTENT_TYPE.as_str())
        .is_some_and(|form| form.starts_with(ARROW));
    if let Some(adapter) = &session.adapter {
        let number = |name| number(answer.headers.get(name));
        if let Some(cores) = number(wire::header::CORES) {
            adapter.gateway_cores(cores, number(wire::header::BATCHES));
        }
        if let Some(Ok(time)) = answer.header(wire::header::CPU).map(str::parse) {
            adapter.gateway_cpu(time);
        }
        adapter.gateway_cpus(answer.header(wire::header::CPUS));
    }
    let engine = answer.header(wire::header::ENGINE);
    if let Some(plainly) = engine.and_then(|engine| other_engine(session, engine)) {
        return Ok(plainly);
    }
    // Without the header, as a proxy may have it, the stream itself names the engine.
    if !arrow {
        return whole(
            session,
            Err(not_a_gateway(session, "its answer is no Arrow stream")),
        );
    }
    match rows(session, job, slots, answer, intake, troubles).await {
        Err(error) if error.is_retryable() => Ok(Attempt::Partial(error, None)),
        done => done,
    }
}

/// The request's body: every sample with a signature of its own, made anew for every attempt.
async fn request(session: &Arc<Session>, job: &Job, slots: &[usize]) -> Result<Bytes> {
    let presigner = session.store.presigner().await?;
    let places: Vec<Place> = slots.iter().map(|slot| job.places[*slot]).collect();
    let (session, epoch, assignment) = (Arc::clone(session), job.epoch, job.assignment.clone());
    let cpu = session.cpu.clone();
    // Thousands of signatures take milliseconds.
    let json = cpu.run(move || {
        let sample = |place: Place| {
            let path = object_path(&session.bucket, &session.objects[place.index].key);
            let signature = presigner.signature(&path);
            let split = session.split_of(place, assignment.as_deref());
            BatchSample {
                split: (split != session.split).then_some(split),
                max_bytes: session.most(place, split, assignment.as_deref()),
                ..BatchSample::new(path, signature)
            }
        };
        let samples = places.into_iter().map(sample).collect();
        let mut request = BatchRequest::new(session.pipeline.clone(), presigner.query(), samples);
        request.split = session.split;
        request.seed = session.seed;
        request.epoch = Some(epoch);
        request.order = Order::Any;
        request.compression = session.compression;
        request.to_json()
    });
    Ok(json.await??.into())
}

/// Takes the rows of an answer until its end.
async fn rows(
    session: &Session,
    job: &Job,
    slots: &[usize],
    mut answer: Answer,
    intake: &Intake<'_>,
    troubles: &mut Troubles,
) -> Result<Attempt> {
    let mut reader = BatchReader::new(session.limits);
    let (mut taken, mut known) = (0, false);
    loop {
        if let Some(charge) = &job.charge {
            charge.room().await;
        }
        let Some(chunk) = answer.chunk().await? else { break };
        let rows = reader.push(chunk)?;
        // It stands at the start of the stream: once is enough.
        if let Some(engine) = reader.engine().filter(|_| !std::mem::replace(&mut known, true))
            && let Some(plainly) = other_engine(session, engine)
        {
            return Ok(plainly);
        }
        for row in rows {
            let slot = *usize::try_from(row.row)
                .ok()
                .and_then(|row| slots.get(row))
                .ok_or_else(|| {
                    Error::protocol(format!(
                        "the gateway sent row {}, and {} were asked for",
                        row.row,
                        slots.len()
                    ))
                })?;
            taken += 1;
            let first = match row.value {
                Err(error) if is_transient_code(&error.code) => {
                    troubles.passing.insert(slot, error).is_none()
                }
                Err(_) if session.adapter.is_some() => troubles.given_up.insert(slot),
                _ => {
                    let asked = session.split_of(job.places[slot], job.assignment.as_deref());
                    intake.row(slot, asked, row).map(|()| true)?
                }
            };
            if !first {
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
