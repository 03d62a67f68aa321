//! One request of a plain read.

use std::{collections::VecDeque, ops::Range};

use bytes::Bytes;
use http::HeaderMap;

use super::{
    assembly::Assembly,
    part::{Part, joined_range},
};
use crate::{
    planning::Adapter,
    session::{BatchJob, Session},
    sign::object_path,
    store::Failure,
};

/// Sends one request for these parts, a whole object or entries of a shard. Removes the parts that have arrived.
pub(super) async fn attempt(
    session: &Session,
    job: &BatchJob,
    assembly: &Assembly<'_>,
    parts: &mut VecDeque<Part>,
) -> Result<(), Failure> {
    match (joined_range(parts), parts.front().copied()) {
        (Some(range), Some(first)) => members(session, job, assembly, parts, (first, range)).await,
        (None, Some(part)) => {
            let object = object(session, job, part).await?;
            parts.clear();
            Ok(assembly.take(part, Ok(object))?)
        }
        (_, None) => Ok(()),
    }
}

/// Reads a whole object.
async fn object(session: &Session, job: &BatchJob, part: Part) -> Result<Bytes, Failure> {
    let path = object_path(session.objects.bucket(), session.objects.key(part.index));
    let limit = session.limits.max_object_bytes;
    let mut pending = session.adapter.as_ref().map(Adapter::begin_read);
    let answer = session.store.open(&path, HeaderMap::new()).await?;
    job.progress.mark_answered();
    if let Some(pending) = &mut pending {
        pending.on_headers(answer.length());
    }
    let body = answer.collect(limit).await?;
    drop(pending);
    body.ok_or(Failure::TooLarge(limit))
}

/// Reads entries of a shard, and hands over each one as soon as it has arrived.
async fn members(
    session: &Session,
    job: &BatchJob,
    assembly: &Assembly<'_>,
    parts: &mut VecDeque<Part>,
    (first, range): (Part, Range<u64>),
) -> Result<(), Failure> {
    let objects = &session.objects;
    let shard = objects.object(first.index);
    let mut pending = session.adapter.as_ref().map(Adapter::begin_read);
    let opened = session
        .store
        .open_shard(objects.bucket(), shard, &range, &session.limits);
    let mut body = opened.await?;
    job.progress.mark_answered();
    if let Some(pending) = &mut pending {
        pending.on_headers(body.length());
    }
    while let Some(part) = parts.front().copied() {
        // All parts of a joined read are members.
        let Some(member) = part.member(objects) else { break };
        let content = body.content(shard.key, member).await?;
        parts.pop_front();
        assembly.take(part, content)?;
    }
    Ok(())
}
