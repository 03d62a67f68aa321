//! Plain reads: objects are read directly, a limited number at a time.

use std::{collections::VecDeque, iter};

use futures::{FutureExt as _, StreamExt as _, stream};
use http::HeaderMap;
use pushdown::{Sample, wire::RowError};
use pushdown_exec::sync::Mutex;

use super::{
    BatchJob, Session,
    get_permits::{GetPermit, GetPermits},
    intake::{Intake, RowValue},
};
use crate::{
    budget::Charge,
    error::{ErrorKind, Result},
    planning::Adapter,
    sign::object_path,
    stats::add,
    store::Failure,
};

/// Slots whose objects have not been requested yet.
#[derive(Debug)]
pub(super) struct PlainQueue(Mutex<VecDeque<usize>>);

impl PlainQueue {
    pub(super) fn new(slots: Vec<usize>) -> Self {
        Self(Mutex::new(slots.into()))
    }

    /// Removes all slots, to move them to another route.
    pub(super) fn take_all(&self) -> Vec<usize> {
        std::mem::take(&mut *self.0.lock()).into()
    }

    /// Returns slots that cannot take the other route.
    pub(super) fn put_back(&self, slots: Vec<usize>) {
        self.0.lock().extend(slots);
    }

    fn pop(&self) -> Option<usize> {
        self.0.lock().pop_front()
    }
}

/// Reads the objects of these slots, `concurrency` at a time. Slots may leave the queue concurrently.
pub(super) async fn fetch(
    session: &Session,
    job: &BatchJob,
    intake: &Intake<'_>,
    slots: &PlainQueue,
    concurrency: usize,
) -> Result<()> {
    let reads = stream::iter(iter::from_fn(|| slots.pop()))
        .map(|slot| async move { (slot, object(session, job, job.samples[slot].index).await) });
    let mut reads = std::pin::pin!(reads.buffer_unordered(concurrency));
    while let Some((slot, read)) = reads.next().await {
        match read? {
            Ok(sample) => intake.value(slot, 0, sample)?,
            Err(error) => intake.failed(slot, error)?,
        }
    }
    Ok(())
}

/// Waits for a permit, and for room in the budget. A batch that waits for room holds no permit.
async fn permit(gets: &GetPermits, job: &BatchJob) -> GetPermit {
    loop {
        if let Some(charge) = &job.charge {
            charge.wait_for_room().await;
        }
        let permit = gets.acquire(job.number).await;
        let has_room = |charge: &Charge| charge.wait_for_room().now_or_never().is_some();
        if job.charge.as_deref().is_none_or(has_room) {
            return permit;
        }
    }
}

/// Reads an object, with retries. An error that concerns only this object becomes the value of its row.
async fn object(session: &Session, job: &BatchJob, index: usize) -> Result<RowValue> {
    let mut backoff = session.store.backoff();
    loop {
        let permit = permit(&session.gets, job).await;
        let attempted = attempt(session, job, index).await;
        drop(permit);
        let failure = match attempted {
            Ok(sample) => {
                backoff.succeeded();
                return Ok(Ok(sample));
            }
            Err(failure) => failure,
        };
        let (again, retry_after) = match &failure {
            Failure::Refused(refusal) => (refusal.is_transient(), refusal.retry_after),
            Failure::Lost(error) => (error.is_retryable(), None),
            Failure::TooLarge(_) => (false, None),
        };
        let subject = || {
            format!(
                "s3://{}/{}: {failure}",
                session.objects.bucket(),
                session.objects.key(index)
            )
        };
        if again && backoff.pause(&subject(), retry_after).await {
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
                format!("the object is too large: expected at most {limit} bytes"),
            ))),
            // The store answers other requests, but this object's answer does not end.
            Failure::Lost(error) if matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Interrupted) => {
                Ok(Err(RowError::new("RequestTimeout", error.to_string())))
            }
            Failure::Lost(error) => Err(error),
        };
    }
}

async fn attempt(session: &Session, job: &BatchJob, index: usize) -> Result<Sample, Failure> {
    let path = object_path(session.objects.bucket(), session.objects.key(index));
    let limit = session.limits.max_object_bytes;
    let mut pending = session.adapter.as_ref().map(Adapter::begin_read);
    let answer = session.store.open(&path, HeaderMap::new()).await?;
    job.progress.mark_answered();
    if let Some(pending) = &mut pending {
        pending.on_headers(answer.length());
    }
    let body = answer.collect(limit).await?;
    drop(pending);
    body.map(Sample::Bytes).ok_or(Failure::TooLarge(limit))
}
