//! Streams of shards: in shard order, a reader receives the members of a shard that it reads plainly by one GET.
//!
//! The stream of a shard begins when a batch first asks for one of its members, at the first entry that this reader needs, and ends after
//! the last one. Members that arrive before their batches ask for them are kept, up to a limit of bytes.
//!
//! No batch waits in vain. A stream reads on as long as anybody waits for an entry that it has not reached, whatever the prefetch budget is.
//! If there is no room for what arrives until then, it ends. Whatever ends a stream, those who wait for it read their members by ranges.
//! A stream that nobody waits for fills the room for members, and then pauses. It holds no permit for reads, so it blocks nobody.
//!
//! A plan may change while a stream reads. What has arrived is used whatever the plan is, and a stream ends whose next entries are no longer
//! read plainly.

mod arrived;
mod entries;
mod read;
mod samples;
mod stream;

use std::{collections::HashMap, sync::Arc};

use pushdown_exec::sync::Mutex;
use tokio::sync::{OnceCell, Semaphore, TryAcquireError};
use tokio_util::task::AbortOnDropHandle;

use self::{
    arrived::ArrivedMembers,
    entries::{member_id, planned_entries},
    read::StreamRead,
    samples::ShardSamples,
    stream::ShardStream,
};
pub(super) use self::{arrived::Content, stream::Requested};
use super::{Session, plain::Part};
use crate::{
    epoch::{ReadPlan, order::EpochOrder},
    error::Result,
    objects::Objects,
};

/// The most bytes of members that are kept for batches that have not asked for them, as a multiple of the prefetch budget.
const MAX_ARRIVED_PER_BUDGET: u64 = 4;
/// The same in KiB, for any prefetch budget: 1 GiB.
const MAX_ARRIVED_KIB: u64 = 1 << 20;

/// The streams of a reader's epoch. Dropping it cancels them.
#[derive(Debug)]
pub(crate) struct ShardStreams {
    samples: Arc<ShardSamples>,
    arrived: Arc<ArrivedMembers>,
    /// A permit for each stream that may be open.
    slots: Arc<Semaphore>,
    /// By the number of the shard; `None` for a shard that is read by ranges.
    streams: Mutex<HashMap<usize, Arc<OnceCell<Option<OpenStream>>>>>,
}

/// A stream, and the task that reads it.
#[derive(Debug)]
struct OpenStream {
    stream: Arc<ShardStream>,
    _task: AbortOnDropHandle<()>,
}

impl ShardStreams {
    /// The streams of an epoch in shard order. `None` in other orders, and if the reader has a value cache: it may need few of the members.
    pub(crate) async fn of_epoch(
        session: &Session,
        plan: &ReadPlan,
        order: &Arc<EpochOrder>,
    ) -> Result<Option<Arc<Self>>> {
        let buffer = plan.shuffle_buffer().filter(|_| session.value_cache.is_none());
        let Some(buffer) = buffer else { return Ok(None) };
        // Ranks and workers share the positions, and so the samples in the buffer.
        let readers = plan.rank.world().saturating_mul(plan.worker.count).max(1);
        let members = (1 + session.objects.columns().len()).saturating_mul(buffer.div_ceil(readers));
        let kib = plan.prefetch_bytes.saturating_mul(MAX_ARRIVED_PER_BUDGET) >> 10;
        let kib = usize::try_from(kib.min(MAX_ARRIVED_KIB)).unwrap_or_default();
        let (objects, order, plan) = (session.objects.clone(), Arc::clone(order), *plan);
        let samples = move || ShardSamples::new(&objects, order, &plan);
        Ok(Some(Arc::new(Self {
            samples: Arc::new(session.cpu.run(samples).await?),
            arrived: Arc::new(ArrivedMembers::new(kib, members)),
            slots: Arc::new(Semaphore::new(session.gets.count())),
            streams: Mutex::default(),
        })))
    }

    /// Requests a part of a batch from the stream of its shard, which begins if there is none.
    pub(super) async fn request(&self, session: &Arc<Session>, batch: usize, part: &Part) -> Requested {
        if part.range.is_none() {
            return Requested::Passed;
        }
        let shard = session.objects.shard_number(part.index);
        let cell = Arc::clone(self.streams.lock().entry(shard).or_default());
        let opened = cell.get_or_try_init(|| self.open(session, part.index)).await;
        match opened {
            Ok(Some(open)) => open.stream.request(batch, part),
            Ok(None) | Err(_) => Requested::Passed,
        }
    }

    /// Whether all parts of a sample have arrived for a batch.
    pub(crate) fn have_sample(&self, objects: &Objects, batch: usize, index: usize) -> bool {
        Part::of_sample(objects, 0, index).all(|part| self.arrived.has(batch, member_id(&part)))
    }

    /// Records that a batch needs no other members, and drops those that are kept for it.
    pub(super) fn end_batch(&self, batch: usize) {
        self.arrived.end_batch(batch);
    }

    /// Begins the stream of the shard of this sample. `None` if ranges are better.
    ///
    /// # Errors
    /// If too many streams are open. A later request tries again.
    async fn open(
        &self,
        session: &Arc<Session>,
        index: usize,
    ) -> Result<Option<OpenStream>, TryAcquireError> {
        if session.objects.etag(index).is_none() {
            return Ok(None);
        }
        let slot = Arc::clone(&self.slots).try_acquire_owned()?;
        let plan = {
            let (session, arrived) = (Arc::clone(session), Arc::clone(&self.arrived));
            let samples = Arc::clone(&self.samples);
            move || {
                let of_shard = samples.of_shard(session.objects.shard_number(index));
                let left = of_shard.filter(|(batch, _)| !arrived.has_ended(*batch));
                planned_entries(&session, left)
            }
        };
        // Shards may have millions of members.
        let planned = session.cpu.run(plan).await.unwrap_or_default();
        let Some(end) = planned.last().map(|last| last.range.entry().end) else {
            return Ok(None);
        };
        let stream = Arc::new(ShardStream::new(planned, Arc::clone(&self.arrived)));
        let read = StreamRead {
            session: Arc::clone(session),
            stream: Arc::clone(&stream),
            index,
            end,
            _slot: slot,
        };
        Ok(Some(OpenStream {
            stream,
            _task: AbortOnDropHandle::new(tokio::spawn(read.run())),
        }))
    }
}
