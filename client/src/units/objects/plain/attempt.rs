//! The requests of a plain read.

use std::{collections::VecDeque, ops::Range};

use bytes::Bytes;
use http::HeaderMap;
use pushdown_s3::Attempt;

use super::{
    assembly::Assembly,
    part::{Part, joined_range},
    permit,
};
use crate::{
    error::Error,
    planning::Adapter,
    sample_name::SampleName,
    store::{Failure, NamedFailure, ShardBody},
    units::objects::{BatchJob, Session},
};

/// Reads parts, a whole object or entries of a shard, by one request in each attempt until all of them have arrived.
#[derive(Debug)]
pub(super) struct PartsRead<'a> {
    session: &'a Session,
    job: &'a BatchJob,
    assembly: &'a Assembly<'a>,
    /// Those that have not arrived.
    parts: VecDeque<Part>,
    /// The bytes of the shard, from the first attempt on.
    body: Option<ShardBody>,
}

impl<'a> PartsRead<'a> {
    pub(super) const fn new(
        session: &'a Session,
        job: &'a BatchJob,
        assembly: &'a Assembly<'a>,
        parts: VecDeque<Part>,
    ) -> Self {
        Self {
            session,
            job,
            assembly,
            parts,
            body: None,
        }
    }

    /// The parts that have not arrived.
    pub(super) fn into_missing(self) -> VecDeque<Part> {
        self.parts
    }

    /// Sends one request. Removes the parts that have arrived.
    async fn request(&mut self, first: Part) -> Result<(), Failure> {
        if let Some(range) = joined_range(&self.parts) {
            return self.members(first, range).await;
        }
        let object = self.object(first).await?;
        self.parts.clear();
        Ok(self.assembly.take(first, Ok(object))?)
    }

    /// Reads a whole object.
    async fn object(&self, part: Part) -> Result<Bytes, Failure> {
        let session = self.session;
        let (bucket, key) = (session.objects.bucket(), session.objects.key(part.index));
        let limit = session.limits.max_object_bytes;
        let mut pending = session.adapter.as_ref().map(Adapter::begin_read);
        let answer = session.store.open(bucket, key, HeaderMap::new()).await?;
        self.job.progress.mark_answered();
        if let Some(pending) = &mut pending {
            pending.on_headers(answer.length());
        }
        let body = answer.collect(limit).await?;
        drop(pending);
        body.ok_or(Failure::TooLarge(limit))
    }

    /// Reads entries of a shard, and hands over each one as soon as it has arrived.
    async fn members(&mut self, first: Part, range: Range<u64>) -> Result<(), Failure> {
        let Session {
            objects,
            store,
            limits,
            adapter,
            ..
        } = self.session;
        let shard = objects.object(first.index);
        let body = match self.body.take() {
            Some(body) => body,
            None => store.shard_body(objects.bucket(), shard, range, limits)?,
        };
        let body = self.body.insert(body);
        let mut pending = adapter.as_ref().map(Adapter::begin_read);
        let member_range = first
            .range
            .ok_or_else(|| Error::internal("a part of a joined read is no member"))?;
        let length = body.open_at(&member_range).await?;
        self.job.progress.mark_answered();
        if let Some(pending) = &mut pending {
            pending.on_headers(length);
        }
        while let Some(part) = self.parts.front().copied() {
            // All parts of a joined read are members.
            let Some(member) = part.member(objects) else { break };
            let found = body.entry_at(shard.key, member).await?;
            self.parts.pop_front();
            self.assembly.take(part, found.into_content())?;
        }
        Ok(())
    }
}

impl Attempt for PartsRead<'_> {
    type Output = ();
    type Error = NamedFailure;

    async fn run(&mut self) -> Result<(), NamedFailure> {
        let Some(first) = self.parts.front().copied() else {
            return Ok(());
        };
        let objects = &self.session.objects;
        let name = SampleName::from(objects.object(first.index));
        let before = self.parts.len();
        let permit = permit(&self.session.gets, self.job).await;
        let requested = self.request(first).await;
        drop(permit);
        requested.map_err(|failure| NamedFailure {
            name: format!("s3://{}/{name}", objects.bucket()),
            failure,
            has_progressed: self.parts.len() < before,
        })
    }
}
