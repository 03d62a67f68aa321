//! Reads one shard: streams it, unpacks it, and hands over the samples that are wanted.

use std::sync::Arc;

use pushdown::wire::RowError;
use pushdown_exec::sync::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::{
    ShardSession,
    group::GroupCounts,
    sample::{StoredSample, invalid_shard},
    state::{SampleId, ShardTask},
    unpack::Unpacker,
};
use crate::error::{Error, Result};

/// The read of one shard.
#[derive(Debug)]
pub(super) struct ShardSource {
    pub(super) session: Arc<ShardSession>,
    pub(super) task: ShardTask,
    /// Index of the shard in the data set.
    pub(super) index: usize,
    /// Room for samples that nobody has taken: a permit for each KiB, `window_kib` of them.
    pub(super) window: Arc<Semaphore>,
    pub(super) window_kib: u32,
    pub(super) samples: mpsc::UnboundedSender<ArrivedSample>,
    /// Counts of all shards.
    pub(super) counts: Arc<Mutex<GroupCounts>>,
    /// Number of the next sample.
    pub(super) next: u32,
    /// The version of the shard, if it is known.
    pub(super) etag: Option<Arc<str>>,
}

/// A sample of a shard. It takes room until it is dropped.
#[derive(Debug)]
pub(super) struct ArrivedSample {
    pub(super) id: SampleId,
    /// The version of the shard, if it is known.
    pub(super) etag: Option<Arc<str>>,
    pub(super) sample: StoredSample,
    _room: OwnedSemaphorePermit,
}

/// How the read of a shard ended.
#[derive(Debug)]
enum End {
    /// Before the shard: no sample is left, or nobody takes more.
    Early,
    /// With the shard.
    Complete,
    Failed(RowError),
}

impl ShardSource {
    /// Reads the shard. Samples that cannot be read are handed over as errors: the known ones each, and one for all others.
    ///
    /// # Errors
    /// If other shards cannot be read either.
    pub(super) async fn read(mut self) -> Result<()> {
        let left = |source: &Self| source.task.shard.samples.after(source.next);
        let (error, numbers): (_, Vec<u32>) = match self.read_samples().await? {
            End::Early => return Ok(()),
            End::Complete => {
                let error = invalid_shard(format_args!(
                    "expected a sample with the number {}, found the end of the shard",
                    self.next
                ));
                (error, left(&self).numbers().to_vec())
            }
            End::Failed(error) => (error, left(&self).failure_numbers().collect()),
        };
        let columns = self.session.columns.further().len();
        for number in numbers {
            let sample = StoredSample::of_shard(error.clone(), columns);
            if !self.hand_over(number, sample).await? {
                break;
            }
        }
        Ok(())
    }

    async fn read_samples(&mut self) -> Result<End> {
        let session = Arc::clone(&self.session);
        let (bucket, key) = (session.shards.bucket(), session.shards.key(self.index));
        let etag = self.task.shard.etag.as_deref();
        let mut stream = session
            .store
            .stream_object(bucket, key, etag, &session.counters)?;
        let columns = Arc::clone(&session.columns);
        let mut unpacker = Unpacker::new(columns, session.limits.max_object_bytes);
        let end = 'shard: loop {
            let piece = match stream.next().await {
                Ok(piece) => piece,
                Err(failure) => break End::Failed(failure.into_row_error()?),
            };
            if self.etag.as_deref() != stream.etag() {
                self.etag = stream.etag().map(Arc::from);
            }
            let is_end = piece.is_none();
            let mut input = piece.unwrap_or_default();
            loop {
                let work = session.cpu.run(move || {
                    let result = if is_end {
                        unpacker.finish()
                    } else {
                        unpacker.push(&mut input)
                    };
                    (unpacker, input, result)
                });
                let (unpacked, rest, result) = work.await?;
                (unpacker, input) = (unpacked, rest);
                if !self.hand_over_all(unpacker.take_samples()).await? {
                    break 'shard End::Early;
                }
                match result {
                    Err(error) => break 'shard End::Failed(error),
                    Ok(()) if is_end => break 'shard End::Complete,
                    Ok(()) if input.is_empty() && !unpacker.has_pending_output() => break,
                    Ok(()) => {}
                }
            }
        };
        let mut counts = unpacker.counts().clone();
        counts.broken_shards += u64::from(matches!(end, End::Failed(_)));
        self.counts.lock().add(key, &counts);
        Ok(end)
    }

    /// Hands over the next samples of the shard, as far as they are wanted. `false` if no others are.
    async fn hand_over_all(&mut self, samples: Vec<StoredSample>) -> Result<bool> {
        for sample in samples {
            let number = self.next;
            self.next = self.next.saturating_add(1);
            if self.task.shard.samples.contains(number) && !self.hand_over(number, sample).await? {
                return Ok(false);
            }
        }
        Ok(!self.task.shard.samples.after(self.next).is_empty())
    }

    /// Waits for room, and hands over a sample. `false` if nobody takes it.
    async fn hand_over(&self, number: u32, sample: StoredSample) -> Result<bool> {
        let kib = u32::try_from(sample.bytes() >> 10).unwrap_or(u32::MAX);
        let kib = kib.saturating_add(1).min(self.window_kib);
        let room = Arc::clone(&self.window).acquire_many_owned(kib).await;
        let room =
            room.map_err(|error| Error::internal("the room of a shard is closed").with_source(error))?;
        let arrived = ArrivedSample {
            id: SampleId {
                position: self.task.shard.position,
                number,
            },
            etag: self.etag.clone(),
            sample,
            _room: room,
        };
        Ok(self.samples.send(arrived).is_ok())
    }
}
