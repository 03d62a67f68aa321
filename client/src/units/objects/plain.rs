//! Plain reads: objects are read directly, a limited number at a time, and near members of a shard by one request.

mod assembly;
mod attempt;
mod part;
mod queue;
mod streamed;

use std::{collections::VecDeque, iter, sync::Arc};

use futures::{FutureExt as _, StreamExt as _, stream, try_join};

use super::{
    BatchJob, Session,
    get_permits::{GetPermit, GetPermits},
    intake::Intake,
};
use crate::{epoch::Charge, error::Result, store::object_too_large};
use assembly::Assembly;
use attempt::PartsRead;
pub(super) use part::{MAX_GAP_BYTES, Part};
pub(super) use queue::PlainQueue;
use streamed::StreamedParts;

/// Reads the samples in the queue: members from the streams of their shards, and what these do not have by `concurrency` requests at a
/// time. Samples may leave the queue concurrently.
pub(super) async fn fetch(
    session: &Arc<Session>,
    job: &BatchJob,
    intake: &Intake<'_>,
    queue: &PlainQueue<'_>,
    concurrency: usize,
) -> Result<()> {
    let assembly = Assembly::new(&session.objects, intake);
    let streamed = StreamedParts::request(session, job, &assembly, queue).await?;
    let ranges = || read_queue(session, job, &assembly, queue, concurrency);
    let (passed, ()) = try_join!(streamed.receive(job, &assembly), ranges())?;
    // Their streams have ended meanwhile.
    queue.put_back_parts(passed);
    ranges().await
}

/// Reads what is in the queue, by `concurrency` requests at a time.
async fn read_queue(
    session: &Session,
    job: &BatchJob,
    assembly: &Assembly<'_>,
    queue: &PlainQueue<'_>,
    concurrency: usize,
) -> Result<()> {
    let reads = stream::iter(iter::from_fn(|| queue.pop())).map(|parts| read(session, job, assembly, parts));
    let mut reads = std::pin::pin!(reads.buffer_unordered(concurrency));
    while let Some(read) = reads.next().await {
        read?;
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

/// Reads what one request covers, with retries of the parts that have not arrived. An error that concerns only the object becomes the
/// value of their rows.
async fn read(
    session: &Session,
    job: &BatchJob,
    assembly: &Assembly<'_>,
    parts: VecDeque<Part>,
) -> Result<()> {
    let max_bytes = session.limits.max_object_bytes;
    let is_small = |part: &Part| part.range.is_none_or(|range| range.size() <= max_bytes);
    let (parts, large): (VecDeque<Part>, VecDeque<Part>) = parts.into_iter().partition(is_small);
    for part in large {
        assembly.take(part, Err(object_too_large(max_bytes)))?;
    }
    let mut read = PartsRead::new(session, job, assembly, parts);
    let mut retries = session.store.counted_retries(&session.counters);
    if let Err(failed) = retries.complete(&mut read).await {
        let error = failed.failure.into_row_error()?;
        for part in read.into_missing() {
            assembly.take(part, Err(error.clone()))?;
        }
    }
    Ok(())
}
