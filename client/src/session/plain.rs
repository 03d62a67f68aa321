//! Plain mode: objects are read directly, a few at a time.

use std::{collections::VecDeque, iter};

use futures::{FutureExt as _, StreamExt as _, stream};
use http::HeaderMap;
use parking_lot::Mutex;
use pushdown::{Sample, wire::RowError};

use super::{
    Job, Session,
    gets::{Gets, Turn},
    intake::Intake,
};
use crate::{
    budget::Charge,
    error::{ErrorKind, Result},
    sign::object_path,
    stats::add,
    store::Failure,
};

/// Slots that no object has been asked for yet.
#[derive(Debug)]
pub(super) struct Queue(Mutex<VecDeque<usize>>);

impl Queue {
    pub(super) fn new(slots: Vec<usize>) -> Self {
        Self(Mutex::new(slots.into()))
    }

    /// Takes all of them, for another way.
    pub(super) fn take(&self) -> Vec<usize> {
        std::mem::take(&mut *self.0.lock()).into()
    }

    /// Brings back what cannot go that way.
    pub(super) fn put(&self, slots: Vec<usize>) {
        self.0.lock().extend(slots);
    }

    fn next(&self) -> Option<usize> {
        self.0.lock().pop_front()
    }
}

/// Reads the objects of these slots, so many at a time, or of as many slots as no one else takes meanwhile.
pub(super) async fn fetch(
    session: &Session,
    job: &Job,
    intake: &Intake<'_>,
    slots: &Queue,
    at_a_time: usize,
) -> Result<()> {
    let reads = stream::iter(iter::from_fn(|| slots.next()))
        .map(|slot| async move { (slot, object(session, job, job.places[slot].index).await) });
    let mut reads = std::pin::pin!(reads.buffer_unordered(at_a_time));
    while let Some((slot, read)) = reads.next().await {
        match read? {
            Ok(sample) => intake.value(slot, 0, sample)?,
            Err(error) => intake.failed(slot, error)?,
        }
    }
    Ok(())
}

/// Waits for a turn and for the batch to have room. Nobody waits for room while others could go.
async fn turn(gets: &Gets, job: &Job) -> Turn {
    loop {
        if let Some(charge) = &job.charge {
            charge.room().await;
        }
        let turn = gets.turn(job.number).await;
        let room = |charge: &Charge| charge.room().now_or_never().is_some();
        if job.charge.as_deref().is_none_or(room) {
            return turn;
        }
    }
}

/// Reads an object, as often as it takes. What concerns only this object is its row's error.
async fn object(session: &Session, job: &Job, index: usize) -> Result<Result<Sample, RowError>> {
    let mut backoff = session.store.backoff();
    loop {
        let turn = turn(&session.gets, job).await;
        let attempted = attempt(session, job, index).await;
        drop(turn);
        let failure = match attempted {
            Ok(sample) => {
                backoff.succeeded();
                return Ok(Ok(sample));
            }
            Err(failure) => failure,
        };
        let (again, asked) = match &failure {
            Failure::Refused(refusal) => (refusal.is_transient(), refusal.retry_after),
            Failure::Lost(error) => (error.is_retryable(), None),
            Failure::TooLarge(_) => (false, None),
        };
        let what = || {
            format!(
                "s3://{}/{}: {failure}",
                session.bucket, session.objects[index].key
            )
        };
        if again && backoff.pause(&what(), asked).await {
            add(&session.counters.retries, 1);
            continue;
        }
        return match failure {
            Failure::Refused(refusal) => {
                let message = format!(
                    "the store answered {}: {}",
                    refusal.status.as_u16(),
                    refusal.message
                );
                Ok(Err(RowError::new(refusal.code, message)))
            }
            Failure::TooLarge(limit) => Ok(Err(RowError::new(
                pushdown::ErrorKind::TooLarge.code(),
                format!("the object has more than the limit of {limit} bytes"),
            ))),
            // The store answers others, but not this object to its end.
            Failure::Lost(error) if matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Interrupted) => {
                Ok(Err(RowError::new("RequestTimeout", error.to_string())))
            }
            Failure::Lost(error) => Err(error),
        };
    }
}

async fn attempt(session: &Session, job: &Job, index: usize) -> Result<Sample, Failure> {
    let path = object_path(&session.bucket, &session.objects[index].key);
    let limit = session.limits.max_object_bytes;
    let adapter = session.adapter.as_ref();
    let mut on_its_way = adapter.map(|adapter| adapter.asked(session.store.traffic()));
    let answer = session.store.open(&path, HeaderMap::new()).await?;
    job.progress.answered();
    if let Some(on_its_way) = &mut on_its_way {
        on_its_way.found(answer.length());
    }
    let body = answer.collect(limit).await?;
    drop(on_its_way);
    body.map(Sample::Bytes).ok_or(Failure::TooLarge(limit))
}
