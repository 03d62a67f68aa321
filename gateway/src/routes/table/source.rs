//! The source of a scan: ranges of one version of an object, fetched on the I/O threads.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use futures::{
    FutureExt as _, StreamExt as _, TryStreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use parking_lot::Mutex;
use pushdown::{Source, Suffix};
use pushdown_s3::ObjectPart;
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    compute::{Memory, Permit, ScanWaker},
    error::{Error, ErrorKind},
    origin::{TailPart, VersionedObject, next_bytes},
};

/// Ranges of one read that are in flight at a time.
const RANGES_IN_FLIGHT: usize = 4;
/// Pieces of a streamed object that are prefetched.
const PREFETCHED_PIECES: usize = 4;
/// Ratio of a parsed footer's memory to its bytes.
const FOOTER_MEMORY_RATIO: u64 = 4;

/// An object at the store, read by ranges. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct RangedSource(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    object: VersionedObject,
    /// The end of the object, already read.
    tail: ObjectPart,
    io: Handle,
    waker: ScanWaker,
    footer: FooterMemory,
}

/// The bytes that are read before the scan is planned, and the memory for them. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct FooterMemory(Arc<Mutex<FooterUse>>);

#[derive(Debug)]
struct FooterUse {
    memory: Memory,
    /// `None` after planning: later reads are covered by the permit of the scan.
    permit: Option<Permit>,
    bytes: u64,
}

impl RangedSource {
    /// The object whose end is `tail`. Must be called within the runtime of the I/O threads. `waker` wakes the scan when a
    /// read is done.
    pub(super) fn new(tail: TailPart, footer: FooterMemory, waker: ScanWaker) -> Self {
        let TailPart { part, object, .. } = tail;
        footer.0.lock().bytes += part.bytes.len() as u64;
        Self(Arc::new(Inner {
            tail: part,
            object,
            io: Handle::current(),
            waker,
            footer,
        }))
    }
}

impl Source for RangedSource {
    fn suffix(&self, length: u64) -> BoxFuture<'static, pushdown::Result<Suffix>> {
        let inner = Arc::clone(&self.0);
        async move {
            let total = inner.object.total_bytes();
            let bytes = inner.range(total.saturating_sub(length)..total).await?;
            Ok(Suffix { bytes, total })
        }
        .boxed()
    }

    fn ranges(&self, ranges: Vec<Range<u64>>) -> BoxFuture<'static, pushdown::Result<Vec<Bytes>>> {
        let inner = Arc::clone(&self.0);
        let reads = ranges.into_iter().map(move |range| {
            let inner = Arc::clone(&inner);
            async move { inner.range(range).await }
        });
        stream::iter(reads)
            .buffered(RANGES_IN_FLIGHT)
            .try_collect()
            .boxed()
    }

    fn stream(&self) -> BoxStream<'static, pushdown::Result<Bytes>> {
        let inner = Arc::clone(&self.0);
        stream::once(async move { inner.stream_object() })
            .flatten()
            .boxed()
    }

    fn reserve(&self, bytes: u64) -> pushdown::Result<()> {
        Ok(self.0.footer.grow(bytes)?)
    }
}

impl Inner {
    async fn range(&self, range: Range<u64>) -> pushdown::Result<Bytes> {
        if let Some(bytes) = self.tail.slice(&range) {
            return Ok(bytes);
        }
        let length = range.end.saturating_sub(range.start);
        self.footer.reserve(length)?;
        let (object, waker) = (self.object.clone(), self.waker.clone());
        let (done, read) = oneshot::channel();
        let _reading = AbortOnDropHandle::new(self.io.spawn(async move {
            // Locals are dropped in reverse order, after a panic too: the channel is closed before the scan wakes.
            let _wake_on_drop = waker.wake_on_drop();
            let done = done;
            drop(done.send(object.read(range).await));
        }));
        let read = read.await.unwrap_or_else(|_| Err(interrupted_error()));
        Ok(read?)
    }

    /// Streams the whole object. A task fetches it, at most [`PREFETCHED_PIECES`] pieces ahead.
    fn stream_object(self: Arc<Self>) -> impl futures::Stream<Item = pushdown::Result<Bytes>> + Send {
        let total = self.object.total_bytes();
        let (sender, receiver) = mpsc::channel(PREFETCHED_PIECES);
        let (object, waker) = (self.object.clone(), self.waker.clone());
        let task = AbortOnDropHandle::new(self.io.spawn(async move {
            let _wake_on_drop = waker.wake_on_drop();
            let sender = sender;
            if let Err(error) = forward(&object, &sender, &waker).await {
                drop(sender.send(Err(error)).await);
            }
        }));
        stream::unfold(
            (receiver, task, Some(0)),
            move |(mut receiver, task, received)| async move {
                let received: u64 = received?;
                let (item, received) = match receiver.recv().await {
                    Some(Ok(data)) => {
                        let received = received + data.len() as u64;
                        (Ok(data), Some(received))
                    }
                    None if received == total => return None,
                    None => (Err(interrupted_error().into()), None),
                    Some(Err(error)) => (Err(error.into()), None),
                };
                Some((item, (receiver, task, received)))
            },
        )
    }
}

/// Sends the object's bytes as they arrive, until the receiver is dropped.
async fn forward(
    object: &VersionedObject,
    sender: &mpsc::Sender<Result<Bytes, Error>>,
    waker: &ScanWaker,
) -> Result<(), Error> {
    let mut answer = object.read_all().await?;
    while let Some(data) = next_bytes(&mut answer.body).await? {
        if sender.send(Ok(data)).await.is_err() {
            break;
        }
        waker.wake();
    }
    Ok(())
}

fn interrupted_error() -> Error {
    Error::new(
        ErrorKind::OriginUnavailable,
        "reading the store's answer was interrupted",
    )
}

impl FooterMemory {
    pub(super) fn new(memory: Memory, permit: Permit) -> Self {
        Self(Arc::new(Mutex::new(FooterUse {
            memory,
            permit: Some(permit),
            bytes: 0,
        })))
    }

    /// Reserves memory for a read of a footer during planning.
    fn reserve(&self, length: u64) -> Result<(), Error> {
        self.grow(length.saturating_mul(FOOTER_MEMORY_RATIO))?;
        let mut used = self.0.lock();
        if used.permit.is_some() {
            used.bytes += length;
        }
        Ok(())
    }

    /// Reserves memory during planning. Does not wait: the total is not known yet, and the scan already has memory (deadlock).
    fn grow(&self, bytes: u64) -> Result<(), Error> {
        let FooterUse { memory, permit, .. } = &mut *self.0.lock();
        match permit {
            Some(permit) => memory.grow(permit, bytes),
            None => Ok(()),
        }
    }

    /// Ends planning. Returns the bytes that were read, and the permit for their memory.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] if called twice.
    pub(super) fn finish(&self) -> Result<(u64, Permit), Error> {
        let mut used = self.0.lock();
        let permit = used.permit.take();
        let permit = permit.ok_or_else(|| Error::new(ErrorKind::Internal, "a scan was planned twice"))?;
        Ok((used.bytes, permit))
    }
}
