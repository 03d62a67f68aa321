//! The bytes of a batch request as they arrive: within a size, within a time, within the memory budget.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use tokio::time::timeout;

use crate::{
    body::BoxError,
    compute::{Memory, Permit, Tenant},
    error::{Error, ErrorKind, Result},
};

/// What a body waits for before its first byte is read, and what it waits for each time that is used up, in bytes. A client
/// that declares a large body and sends none holds no more than this.
const STEP: u64 = 256 << 10;

/// The limits on one body.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyLimits {
    /// Most bytes as sent.
    pub(super) bytes: u64,
    /// Longest silence between two pieces.
    pub(super) idle: Duration,
    /// Longest time from the head to the last byte.
    pub(super) total: Duration,
}

/// Leave to hold the bytes of one request, in pieces that were waited for one by one.
///
/// A request that holds some waits for more, which others with memory may not: what it holds is small, and each wait is
/// bounded.
#[derive(Debug, Default)]
pub(super) struct Permits(Vec<Permit>);

impl Permits {
    fn bytes(&self) -> u64 {
        self.0.iter().map(Permit::bytes).sum()
    }

    /// Waits for `bytes` more.
    ///
    /// # Errors
    /// As [`Memory::acquire`], for all bytes together.
    pub(super) async fn acquire(&mut self, memory: &Memory, bytes: u64) -> Result<()> {
        let all = self.bytes() + bytes;
        if all > memory.total() {
            return Err(too_large(memory.total()));
        }
        self.0.push(memory.acquire(&Tenant::default(), bytes).await?);
        Ok(())
    }

    /// Gives back all but `bytes`.
    pub(super) fn shrink_to(&mut self, bytes: u64) {
        let mut left = bytes;
        self.0.retain_mut(|permit| {
            let kept = permit.bytes().min(left);
            permit.shrink_to(kept);
            left -= kept;
            kept > 0
        });
    }
}

/// Reads a body whole, and returns it with the permits for its bytes.
///
/// # Errors
/// [`ErrorKind::EntityTooLarge`] beyond the limit, before the first byte where the length is declared;
/// [`ErrorKind::RequestTimeout`] where the client is silent or slow, or leaves; [`ErrorKind::SlowDown`] while the memory
/// budget is full.
pub(super) async fn collect<B>(memory: &Memory, body: B, limits: BodyLimits) -> Result<(Bytes, Permits)>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    let expected = body.size_hint().exact();
    if expected.is_some_and(|length| length > limits.bytes) {
        return Err(too_large(limits.bytes));
    }
    let first = expected.unwrap_or(limits.bytes).min(STEP);
    let mut permits = Permits::default();
    permits.acquire(memory, first).await?;
    let read = read(memory, body, permits, limits);
    let result = timeout(limits.total, read).await;
    result.unwrap_or_else(|_elapsed| {
        let total = limits.total;
        Err(Error::new(
            ErrorKind::RequestTimeout,
            format!("the batch request is incomplete: expected all of it within {total:?}"),
        ))
    })
}

async fn read<B>(
    memory: &Memory,
    mut body: B,
    mut permits: Permits,
    limits: BodyLimits,
) -> Result<(Bytes, Permits)>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    // Copied out of the connection's buffers: a piece of a few bytes would keep one of them whole.
    let mut bytes = Vec::new();
    loop {
        let Ok(frame) = timeout(limits.idle, body.frame()).await else {
            let (idle, count) = (limits.idle, bytes.len());
            return Err(Error::new(
                ErrorKind::RequestTimeout,
                format!("the batch request stopped after {count} bytes: expected more within {idle:?}"),
            ));
        };
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|error| {
            Error::new(ErrorKind::RequestTimeout, "the batch request broke off").with_source(error)
        })?;
        let Ok(data) = frame.into_data() else { continue };
        let length = (bytes.len() + data.len()) as u64;
        if length > limits.bytes {
            return Err(too_large(limits.bytes));
        }
        if length > permits.bytes() {
            let missing = length - permits.bytes();
            permits.acquire(memory, missing.max(STEP)).await?;
        }
        if length > bytes.capacity() as u64 {
            let room = usize::try_from(permits.bytes()).unwrap_or(usize::MAX);
            bytes.reserve_exact(room.saturating_sub(bytes.len()));
        }
        bytes.extend_from_slice(&data);
    }
    Ok((bytes.into(), permits))
}

pub(super) fn too_large(limit: u64) -> Error {
    Error::new(
        ErrorKind::EntityTooLarge,
        format!("the batch request is too large: expected at most {limit} bytes"),
    )
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::{StreamExt as _, stream};
    use http_body::Frame;
    use http_body_util::{Full, StreamBody};

    use super::*;
    use crate::{compute::Ledger, telemetry::Metrics};

    const LIMITS: BodyLimits = BodyLimits {
        bytes: 4 << 20,
        idle: Duration::from_secs(10),
        total: Duration::from_mins(1),
    };

    fn memory(total: u64) -> Memory {
        Memory::build(
            total,
            16,
            Duration::from_secs(1),
            Ledger::default(),
            Metrics::default(),
        )
    }

    /// A body that sends a piece of so many bytes after each pause.
    fn pieces(
        bytes: usize,
        count: usize,
        pause: Duration,
    ) -> impl http_body::Body<Data = Bytes, Error = Infallible> + Unpin {
        let pieces = stream::iter(0..count).then(move |_| async move {
            tokio::time::sleep(pause).await;
            Ok(Frame::data(Bytes::from(vec![b'x'; bytes])))
        });
        StreamBody::new(pieces.boxed())
    }

    async fn kind(
        memory: &Memory,
        body: impl http_body::Body<Data = Bytes, Error = Infallible> + Unpin,
    ) -> ErrorKind {
        collect(memory, body, LIMITS).await.unwrap_err().kind()
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_is_collected_whole_under_a_permit_of_its_size() {
        let memory = memory(16 << 20);
        let (bytes, mut permits) = collect(&memory, pieces(100_000, 30, Duration::ZERO), LIMITS)
            .await
            .unwrap();
        assert_eq!(bytes.len(), 3_000_000);
        assert!(permits.bytes() >= 3_000_000 && permits.bytes() < 3_000_000 + STEP);
        permits.shrink_to(300 << 10);
        assert_eq!(permits.bytes(), 300 << 10);
        permits.shrink_to(0);
        assert_eq!(permits.bytes(), 0);
        let (bytes, permits) = collect(&memory, Full::new(Bytes::from_static(b"{}")), LIMITS)
            .await
            .unwrap();
        assert_eq!((bytes.as_ref(), permits.bytes()), (b"{}".as_slice(), 1024));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_slowness_and_size_are_bounded() {
        let memory = memory(16 << 20);
        assert_eq!(
            kind(&memory, pieces(1, 2, Duration::from_secs(11))).await,
            ErrorKind::RequestTimeout
        );
        // Never silent for long, and never done.
        assert_eq!(
            kind(&memory, pieces(1, 1000, Duration::from_secs(9))).await,
            ErrorKind::RequestTimeout
        );
        assert_eq!(
            kind(&memory, pieces(1 << 20, 5, Duration::ZERO)).await,
            ErrorKind::EntityTooLarge
        );
        let declared = Full::new(Bytes::from(vec![0; (4 << 20) + 1]));
        assert_eq!(kind(&memory, declared).await, ErrorKind::EntityTooLarge);
    }

    #[tokio::test(start_paused = true)]
    async fn a_full_budget_takes_no_bytes() {
        let memory = memory(1 << 20);
        let held = memory.acquire(&Tenant::default(), 1 << 20).await.unwrap();
        assert_eq!(
            kind(&memory, Full::new(Bytes::from_static(b"{}"))).await,
            ErrorKind::SlowDown
        );
        drop(held);
        assert_eq!(
            kind(&memory, pieces(1 << 19, 4, Duration::ZERO)).await,
            ErrorKind::EntityTooLarge,
            "more than the whole budget"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn who_sends_nothing_holds_little() {
        let memory = memory(64 << 20);
        let idle = (0..200).map(|_| {
            let memory = memory.clone();
            tokio::spawn(async move { kind(&memory, pieces(1, 1, Duration::from_mins(5))).await })
        });
        let idle: Vec<_> = idle.collect();
        tokio::task::yield_now().await;
        // 200 bodies that may have 4 MiB each leave room for others.
        memory.acquire(&Tenant::default(), 8 << 20).await.unwrap();
        for task in idle {
            assert_eq!(task.await.unwrap(), ErrorKind::RequestTimeout);
        }
    }
}
