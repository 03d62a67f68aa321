//! What a scan reads through: parts of one version of an object, fetched on the I/O threads.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use futures::{
    FutureExt as _, StreamExt as _, TryStreamExt as _,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use parking_lot::Mutex;
use pushdown::{Source, Suffix};
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    compute::{Awake, Memory, Permit},
    error::{Error, ErrorKind},
    origin::{Part, Version, next},
};

/// Ranges of one read that are fetched at a time.
const SIDE_BY_SIDE: usize = 4;
/// Pieces of a streamed object that may lie ready.
const AHEAD: usize = 4;
/// What a footer takes in memory once it is read, against its bytes.
const IN_MEMORY: u64 = 4;

/// An object at the store. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Ranged(Arc<Inner>);

/// The gateway's own error behind a scan's, which carries only a text.
#[derive(Debug, Clone, Default)]
pub(in crate::pushdown) struct Fault(Arc<Mutex<Option<Error>>>);

#[derive(Debug)]
struct Inner {
    version: Version,
    /// The end of the object, which is at hand, and where it begins.
    end: (u64, Bytes),
    io: Handle,
    awake: Awake,
    fault: Fault,
    footer: Footer,
}

/// What is read until the plan is made, and the memory for it. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Footer(Arc<Mutex<Reading>>);

#[derive(Debug)]
struct Reading {
    memory: Memory,
    /// Gone once the plan is made: what is read then is in another's permit.
    permit: Option<Permit>,
    bytes: u64,
}

// === impl Ranged ===

impl Ranged {
    /// The object of which `part` is the end. Has to be called within the io's runtime; who reads is awakened by
    /// `awake`.
    pub(super) fn new(part: Part, footer: Footer, awake: Awake, fault: Fault) -> Self {
        let read = part.bytes.len() as u64;
        footer.0.lock().bytes += read;
        Self(Arc::new(Inner {
            end: (part.version.total() - read, part.bytes),
            version: part.version,
            io: Handle::current(),
            awake,
            fault,
            footer,
        }))
    }
}

impl Source for Ranged {
    fn suffix(&self, length: u64) -> BoxFuture<'static, pushdown::Result<Suffix>> {
        let inner = Arc::clone(&self.0);
        async move {
            let total = inner.version.total();
            let bytes = inner.part(total.saturating_sub(length)..total).await?;
            Ok(Suffix { bytes, total })
        }
        .boxed()
    }

    fn ranges(&self, ranges: Vec<Range<u64>>) -> BoxFuture<'static, pushdown::Result<Vec<Bytes>>> {
        let inner = Arc::clone(&self.0);
        let reads = ranges.into_iter().map(move |range| {
            let inner = Arc::clone(&inner);
            async move { inner.part(range).await }
        });
        stream::iter(reads).buffered(SIDE_BY_SIDE).try_collect().boxed()
    }

    fn stream(&self) -> BoxStream<'static, pushdown::Result<Bytes>> {
        let inner = Arc::clone(&self.0);
        stream::once(async move { inner.flow() }).flatten().boxed()
    }
}

// === impl Inner ===

impl Inner {
    async fn part(&self, range: Range<u64>) -> pushdown::Result<Bytes> {
        if let Some(bytes) = self.at_hand(&range) {
            return Ok(bytes);
        }
        let length = range.end.saturating_sub(range.start);
        self.footer
            .reserve(length)
            .map_err(|error| self.fault.keep(error))?;
        let (version, awake) = (self.version.clone(), self.awake.clone());
        let (done, read) = oneshot::channel();
        let _reading = AbortOnDropHandle::new(self.io.spawn(async move {
            // Dropped in the opposite order, after a panic too: there is something to see when the turn comes.
            let _awake = awake.on_drop();
            let done = done;
            drop(done.send(version.read(range).await));
        }));
        let read = read.await.unwrap_or_else(|_| Err(given_up()));
        read.map_err(|error| self.fault.keep(error))
    }

    /// A part of the object's end.
    fn at_hand(&self, range: &Range<u64>) -> Option<Bytes> {
        let (at, bytes) = &self.end;
        let place = |position: u64| usize::try_from(position.checked_sub(*at)?).ok();
        let (start, end) = (place(range.start)?, place(range.end)?);
        (start <= end && end <= bytes.len()).then(|| bytes.slice(start..end))
    }

    /// All of the object, fetched by a task that is at most [`AHEAD`] pieces ahead.
    fn flow(self: Arc<Self>) -> impl futures::Stream<Item = pushdown::Result<Bytes>> + Send {
        let total = self.version.total();
        let (sender, receiver) = mpsc::channel(AHEAD);
        let (version, awake) = (self.version.clone(), self.awake.clone());
        let task = AbortOnDropHandle::new(self.io.spawn(async move {
            let _awake = awake.on_drop();
            let sender = sender;
            if let Err(error) = forward(&version, &sender, &awake).await {
                drop(sender.send(Err(error)).await);
            }
        }));
        stream::unfold((receiver, task, Some(0)), move |(mut receiver, task, so_far)| {
            let fault = self.fault.clone();
            async move {
                let so_far: u64 = so_far?;
                let (item, so_far) = match receiver.recv().await {
                    Some(Ok(data)) => {
                        let so_far = so_far + data.len() as u64;
                        (Ok(data), Some(so_far))
                    }
                    None if so_far == total => return None,
                    None => (Err(fault.keep(given_up())), None),
                    Some(Err(error)) => (Err(fault.keep(error)), None),
                };
                Some((item, (receiver, task, so_far)))
            }
        })
    }
}

/// Sends the object's bytes as they come, for as long as somebody takes them.
async fn forward(
    version: &Version,
    sender: &mpsc::Sender<Result<Bytes, Error>>,
    awake: &Awake,
) -> Result<(), Error> {
    let mut object = version.read_all().await?;
    while let Some(data) = next(&mut object.body).await? {
        if sender.send(Ok(data)).await.is_err() {
            break;
        }
        awake.wake();
    }
    Ok(())
}

fn given_up() -> Error {
    Error::new(ErrorKind::OriginUnavailable, "the store's answer was given up")
}

// === impl Footer ===

impl Footer {
    pub(super) fn new(memory: Memory, permit: Permit) -> Self {
        Self(Arc::new(Mutex::new(Reading {
            memory,
            permit: Some(permit),
            bytes: 0,
        })))
    }

    /// Before the plan is made nobody knows what will be read: who cannot have the memory at once does not wait for it.
    fn reserve(&self, length: u64) -> Result<(), Error> {
        let Reading {
            memory,
            permit,
            bytes,
        } = &mut *self.0.lock();
        if let Some(permit) = permit {
            memory.grow(permit, length.saturating_mul(IN_MEMORY))?;
            *bytes += length;
        }
        Ok(())
    }

    /// The plan is made: how many bytes were read for it, and what they take.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] when it was made before.
    pub(super) fn end(&self) -> Result<(u64, Permit), Error> {
        let mut reading = self.0.lock();
        let permit = reading.permit.take();
        let permit = permit.ok_or_else(|| Error::new(ErrorKind::Internal, "a scan is planned once"))?;
        Ok((reading.bytes, permit))
    }
}

// === impl Fault ===

impl Fault {
    /// Keeps the first error, and gives the scan's own.
    fn keep(&self, error: Error) -> pushdown::Error {
        let text = error.to_string();
        self.0.lock().get_or_insert(error);
        pushdown::Error::new(pushdown::ErrorKind::Source, text)
    }

    /// The gateway's error for one that came out of a scan.
    pub(in crate::pushdown) fn of(&self, error: pushdown::Error) -> Error {
        let kept = match error.kind() {
            pushdown::ErrorKind::Source => self.0.lock().take(),
            _ => None,
        };
        kept.unwrap_or_else(|| error.into())
    }
}
