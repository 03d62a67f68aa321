//! The task that reads a stream.

use std::{mem, sync::Arc};

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use super::{
    arrived::Content,
    entries::{Entry, are_worth_a_stream},
    stream::ShardStream,
};
use crate::{
    error::Error,
    planning::{Adapter, Assignment, PendingRead},
    retry::Backoff,
    session::{Session, row_error},
    stats::add,
    store::{Failure, ShardBody},
};

/// After a pause, connection and kernel have bytes that arrived during it: they do not measure the link.
const UNMEASURED_BYTES: u64 = 8 << 20;
/// Number of the next entries that decide whether a stream goes on under another plan.
const PLANNED_AHEAD: usize = 256;

/// Reads a stream of a shard. An answer that breaks off is continued at the entry after the last one.
#[derive(Debug)]
pub(super) struct StreamRead {
    pub(super) session: Arc<Session>,
    pub(super) stream: Arc<ShardStream>,
    /// Index of a sample of the shard.
    pub(super) index: usize,
    /// Where the stream ends in the shard.
    pub(super) end: u64,
    pub(super) _slot: OwnedSemaphorePermit,
}

/// Measures the link while a stream reads without a pause.
struct Measurement<'a> {
    adapter: Option<&'a Adapter>,
    pending: Option<PendingRead<'a>>,
    /// Bytes that are not measured before the measurement goes on.
    unmeasured_bytes: u64,
    /// Bytes that the answer still has.
    left_bytes: Option<u64>,
}

impl StreamRead {
    /// Reads to the end of the stream.
    pub(super) async fn run(self) {
        if let Err(failure) = self.read().await {
            let error = match failure {
                // A store without ranges: the ranges of some members may be small enough.
                Failure::TooLarge(_) => None,
                // An error that concerns other objects as well is one of the ranges, too.
                failure => row_error(failure).ok(),
            };
            self.stream.end(error.as_ref());
        }
    }

    async fn read(&self) -> Result<(), Failure> {
        let mut backoff = self.session.store.backoff();
        let mut measurement = Measurement::new(self.session.adapter.as_ref());
        let (mut body, mut has_paused) = (None, false);
        let mut plan = None;
        while self.is_planned(&mut plan) {
            let on_pause = || {
                measurement.pause();
                has_paused = true;
            };
            let Some(next) = self.stream.next(on_pause).await else {
                return Ok(());
            };
            let content = loop {
                match self.content(&mut body, &next.entry, &mut measurement).await {
                    Ok(content) => break content,
                    // The other end need not wait until a pause is over.
                    Err(Failure::Lost(_)) if mem::take(&mut has_paused) => measurement.pause(),
                    Err(failure) => {
                        measurement.pause();
                        self.pause(failure, &mut backoff).await?;
                    }
                }
            };
            has_paused = false;
            backoff.succeeded();
            self.stream.deliver(next, content);
        }
        Ok(())
    }

    /// Whether the next entries are to be streamed, if there is another plan than the last one checked.
    fn is_planned(&self, checked: &mut Option<Arc<Assignment>>) -> bool {
        let Some(adapter) = &self.session.adapter else {
            return true;
        };
        let plan = adapter.assignment();
        if checked
            .as_ref()
            .is_some_and(|checked| Arc::ptr_eq(checked, &plan))
        {
            return true;
        }
        let is_plain = |sample| self.session.is_plain(sample, Some(&plan));
        let is_planned = are_worth_a_stream(&self.stream.ahead(PLANNED_AHEAD), is_plain);
        *checked = Some(plan);
        is_planned
    }

    /// The content of an entry. A body that fails is not put back.
    async fn content(
        &self,
        body: &mut Option<ShardBody>,
        entry: &Entry,
        measurement: &mut Measurement<'_>,
    ) -> Result<Content, Failure> {
        let Session { objects, store, .. } = &*self.session;
        let shard = objects.object(self.index);
        // All parts of a shard are members.
        let member = entry.part.member(objects);
        let member = member.ok_or_else(|| Error::internal("an entry of a stream is no member"))?;
        let mut open = if let Some(open) = body.take() {
            open
        } else {
            measurement.begin();
            let range = entry.range.offset()..self.end;
            let opened = store.open_shard(objects.bucket(), shard, &range, &self.session.limits);
            let open = opened.await?;
            measurement.on_headers(open.length());
            open
        };
        let content = open.content(shard.key, member).await?;
        *body = Some(open);
        measurement.received(entry.content_bytes());
        // A copy, because it would otherwise keep its neighbours in memory.
        Ok(content.map(|content| Bytes::copy_from_slice(&content)))
    }

    /// Waits before the next attempt. Returns the failure if no attempt is left.
    async fn pause(&self, failure: Failure, backoff: &mut Backoff) -> Result<(), Failure> {
        let (objects, (again, retry_after)) = (&self.session.objects, failure.retry());
        let subject = format!("s3://{}/{}: {failure}", objects.bucket(), objects.key(self.index));
        if again && backoff.pause(&subject, retry_after).await {
            add(&self.session.counters.retries, 1);
            return Ok(());
        }
        Err(failure)
    }
}

/// Whatever ends the task, nobody waits for the stream after it.
impl Drop for StreamRead {
    fn drop(&mut self) {
        self.stream.end(None);
    }
}

impl<'a> Measurement<'a> {
    const fn new(adapter: Option<&'a Adapter>) -> Self {
        Self {
            adapter,
            pending: None,
            unmeasured_bytes: 0,
            left_bytes: None,
        }
    }

    /// A request is sent.
    fn begin(&mut self) {
        self.pending = self.adapter.map(Adapter::begin_read);
        self.unmeasured_bytes = 0;
    }

    /// The head of its answer has arrived.
    fn on_headers(&mut self, left_bytes: Option<u64>) {
        self.left_bytes = left_bytes;
        if let Some(pending) = &mut self.pending {
            pending.on_headers(left_bytes);
        }
    }

    /// An entry has arrived. The measurement is reported and goes on.
    fn received(&mut self, bytes: u64) {
        self.left_bytes = self.left_bytes.map(|left| left.saturating_sub(bytes));
        self.unmeasured_bytes = self.unmeasured_bytes.saturating_sub(bytes);
        self.pending = None;
        if self.unmeasured_bytes == 0 {
            self.pending = self.adapter.map(Adapter::begin_read);
            self.on_headers(self.left_bytes);
        }
    }

    /// The stream waits for this host.
    fn pause(&mut self) {
        self.pending = None;
        self.unmeasured_bytes = UNMEASURED_BYTES;
    }
}
