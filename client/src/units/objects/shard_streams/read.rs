//! The task that reads a stream.

use std::{mem, sync::Arc};

use pushdown_s3::Attempt;
use tokio::sync::OwnedSemaphorePermit;

use super::{
    entries::{Entry, are_worth_a_stream},
    stream::ShardStream,
};
use crate::{
    error::Error,
    measure::BUFFERED_BYTES,
    objects::Object,
    planning::{Adapter, Assignment, PendingRead},
    store::{Failure, FoundEntry, NamedFailure, ShardBody},
    units::objects::Session,
};

/// Number of the next entries that decide whether a stream goes on under another plan.
const PLANNED_AHEAD: usize = 256;

/// Reads a stream of a shard. An answer that breaks off is continued where it ended.
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

/// The bytes of a shard while its stream reads them.
struct ShardRead<'a> {
    session: &'a Session,
    shard: Object<'a>,
    /// Where the stream ends in the shard.
    end: u64,
    /// From the first entry on.
    body: Option<ShardBody>,
    measurement: Measurement<'a>,
    /// Whether the stream has paused since the last entry.
    has_paused: bool,
}

/// The attempts to read one entry.
struct EntryRead<'r, 'a> {
    shard: &'r mut ShardRead<'a>,
    entry: Entry,
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
                failure => failure.into_row_error().ok(),
            };
            self.stream.end(error.as_ref());
        }
    }

    async fn read(&self) -> Result<(), Failure> {
        let mut retries = self.session.store.counted_retries(&self.session.counters);
        let mut shard = ShardRead {
            session: &self.session,
            shard: self.session.objects.object(self.index),
            end: self.end,
            body: None,
            measurement: Measurement::new(self.session.adapter.as_ref()),
            has_paused: false,
        };
        let mut plan = None;
        while self.is_planned(&mut plan) {
            let Some(next) = self.stream.next(|| shard.pause()).await else {
                return Ok(());
            };
            let mut entry = EntryRead {
                shard: &mut shard,
                entry: next.entry,
            };
            let found = retries.complete(&mut entry).await;
            let content = found.map_err(|failed| failed.failure)?.into_content();
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
}

impl ShardRead<'_> {
    /// The stream waits for this host.
    fn pause(&mut self) {
        self.measurement.pause();
        self.has_paused = true;
    }

    async fn entry(&mut self, entry: &Entry) -> Result<FoundEntry, Failure> {
        let Session { objects, store, .. } = self.session;
        // All parts of a shard are members.
        let member = entry.part.member(objects);
        let member = member.ok_or_else(|| Error::internal("an entry of a stream is no member"))?;
        let body = if let Some(body) = self.body.take() {
            body
        } else {
            let range = entry.range.offset()..self.end;
            store.shard_body(objects.bucket(), self.shard, range, &self.session.limits)?
        };
        let body = self.body.insert(body);
        if !body.is_open() {
            self.measurement.begin();
            let length = body.open_at(&entry.range).await?;
            self.measurement.on_headers(length);
        }
        let found = body.entry_at(self.shard.key, member).await?;
        self.measurement.received(entry.content_bytes());
        Ok(found)
    }
}

impl Attempt for EntryRead<'_, '_> {
    type Output = FoundEntry;
    type Error = NamedFailure;

    async fn run(&mut self) -> Result<FoundEntry, NamedFailure> {
        let Self { shard, entry } = self;
        let mut found = shard.entry(entry).await;
        // The other end need not wait until a pause is over.
        if matches!(found, Err(Failure::Lost(_))) && mem::take(&mut shard.has_paused) {
            shard.measurement.pause();
            found = shard.entry(entry).await;
        }
        match found {
            Ok(found) => {
                shard.has_paused = false;
                Ok(found)
            }
            Err(failure) => {
                shard.measurement.pause();
                let bucket = shard.session.objects.bucket();
                Err(failure.named(format!("s3://{bucket}/{}", shard.shard.key)))
            }
        }
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
        self.unmeasured_bytes = BUFFERED_BYTES;
    }
}
