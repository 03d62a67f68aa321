//! Reads the body of a request as a whole, within limits of size and time, and within the memory budget.

use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::BodyExt as _;
use tokio::time::{Instant, timeout, timeout_at};

use crate::{
    body::BoxError,
    compute::{Memory, Permit, Tenant},
    error::{Error, ErrorKind, Result},
};

/// Bytes that are reserved before the first byte is read, and each time the reservation is used up. A client that declares
/// a large body and sends nothing reserves no more than this.
const RESERVATION_BYTES: u64 = 256 << 10;

/// While others wait for the memory of a body, this many bytes of it have to arrive in each period.
const CONTENDED_BYTES: usize = 16 << 10;
const CONTENDED_PERIOD: Duration = Duration::from_secs(1);

/// The limits on one body.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyLimits {
    /// Maximum bytes as sent.
    pub(super) max_bytes: u64,
    /// Longest silence between two pieces.
    pub(super) idle_timeout: Duration,
    /// Longest time from the head to the last byte.
    pub(super) total_timeout: Duration,
}

/// Memory reservations for the bytes of one request, acquired one after another.
///
/// Unlike other requests, this one waits for more memory while it has some. This cannot deadlock: its reservation is
/// small, and each wait is bounded.
#[derive(Debug)]
pub(super) struct BodyPermits {
    permits: Vec<Permit>,
    tenant: Tenant,
}

impl BodyPermits {
    /// No memory yet, for a tenant: the unverified one as long as the caller is only claimed.
    const fn new(tenant: Tenant) -> Self {
        Self {
            permits: Vec::new(),
            tenant,
        }
    }

    fn bytes(&self) -> u64 {
        self.permits.iter().map(Permit::bytes).sum()
    }

    /// Waits for `bytes` more.
    ///
    /// # Errors
    /// Like [`Memory::acquire`], for all bytes together.
    pub(super) async fn acquire(&mut self, memory: &Memory, bytes: u64) -> Result<()> {
        let (all, max_bytes) = (self.bytes() + bytes, memory.max_bytes(&self.tenant));
        if all > max_bytes {
            return Err(too_large(max_bytes));
        }
        self.permits.push(memory.acquire(&self.tenant, bytes).await?);
        Ok(())
    }

    /// Releases what exceeds `bytes`, or waits for what is missing.
    ///
    /// # Errors
    /// Like [`acquire`](Self::acquire).
    pub(super) async fn resize(&mut self, memory: &Memory, bytes: u64) -> Result<()> {
        self.shrink_to(bytes);
        match bytes.saturating_sub(self.bytes()) {
            0 => Ok(()),
            missing => self.acquire(memory, missing).await,
        }
    }

    /// Moves the request to the tenant of its caller, who is verified now.
    pub(super) fn mark_verified(&mut self, tenant: Tenant) {
        self.permits.iter_mut().for_each(Permit::mark_verified);
        self.tenant = tenant;
    }

    fn shrink_to(&mut self, bytes: u64) {
        let mut rest = bytes;
        self.permits.retain_mut(|permit| {
            let kept = permit.bytes().min(rest);
            permit.shrink_to(kept);
            rest -= kept;
            kept > 0
        });
    }
}

/// Reads a whole body, and returns it with the permits for its bytes.
///
/// # Errors
/// [`ErrorKind::EntityTooLarge`] above the limit, before the first byte if the length is declared;
/// [`ErrorKind::RequestTimeout`] if the client stalls, is too slow or disconnects; [`ErrorKind::SlowDown`] while the
/// memory budget is exhausted.
pub(super) async fn read_body<B>(
    memory: &Memory,
    tenant: Tenant,
    body: B,
    limits: BodyLimits,
) -> Result<(Bytes, BodyPermits)>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    let expected = body.size_hint().exact();
    if expected.is_some_and(|length| length > limits.max_bytes) {
        return Err(too_large(limits.max_bytes));
    }
    let first = expected.unwrap_or(limits.max_bytes).min(RESERVATION_BYTES);
    let mut permits = BodyPermits::new(tenant);
    permits.acquire(memory, first).await?;
    let read = read_frames(memory, body, permits, limits);
    let result = timeout(limits.total_timeout, read).await;
    result.unwrap_or_else(|_elapsed| {
        let total = limits.total_timeout;
        Err(Error::new(
            ErrorKind::RequestTimeout,
            format!("incomplete body: expected the whole body within {total:?}"),
        ))
    })
}

async fn read_frames<B>(
    memory: &Memory,
    mut body: B,
    mut permits: BodyPermits,
    limits: BodyLimits,
) -> Result<(Bytes, BodyPermits)>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    // Copied, because a piece of a few bytes would keep a whole connection buffer alive.
    let mut bytes = Vec::new();
    let mut pace = Pace::new(limits.idle_timeout);
    loop {
        let contended = || memory.is_contended(&permits.tenant);
        let Some(frame) = pace.next_frame(&mut body, bytes.len(), contended).await? else {
            break;
        };
        let Ok(data) = frame.into_data() else { continue };
        let length = (bytes.len() + data.len()) as u64;
        if length > limits.max_bytes {
            return Err(too_large(limits.max_bytes));
        }
        if length > permits.bytes() {
            let missing = length - permits.bytes();
            permits.acquire(memory, missing.max(RESERVATION_BYTES)).await?;
            pace.restart(bytes.len());
        }
        if length > bytes.capacity() as u64 {
            let capacity = usize::try_from(permits.bytes()).unwrap_or(usize::MAX);
            bytes.reserve_exact(capacity.saturating_sub(bytes.len()));
        }
        bytes.extend_from_slice(&data);
    }
    Ok((bytes.into(), permits))
}

/// The pace at which a client sends a body. It may be silent for a while, unless others wait for the memory that the body holds.
#[derive(Debug)]
struct Pace {
    idle_timeout: Duration,
    /// When the current period began, and the bytes that had arrived by then.
    period: (Instant, usize),
}

impl Pace {
    fn new(idle_timeout: Duration) -> Self {
        Self {
            idle_timeout,
            period: (Instant::now(), 0),
        }
    }

    /// Begins a new period after a wait that was not for the client.
    fn restart(&mut self, received: usize) {
        self.period = (Instant::now(), received);
    }

    /// The next frame after the first `received` bytes; `None` at the end.
    ///
    /// # Errors
    /// [`ErrorKind::RequestTimeout`] if the client disconnects, if it is silent for too long, or too slow while the memory is contended.
    async fn next_frame<B>(
        &mut self,
        body: &mut B,
        received: usize,
        is_contended: impl Fn() -> bool,
    ) -> Result<Option<Frame<Bytes>>>
    where
        B: http_body::Body<Data = Bytes> + Unpin,
        B::Error: Into<BoxError>,
    {
        let silent_until = Instant::now() + self.idle_timeout;
        loop {
            let (started, before) = self.period;
            let period_end = started + CONTENDED_PERIOD;
            if let Ok(frame) = timeout_at(silent_until.min(period_end), body.frame()).await {
                return frame.transpose().map_err(|error| {
                    Error::new(
                        ErrorKind::RequestTimeout,
                        "incomplete body: the client disconnected",
                    )
                    .with_source(error)
                });
            }
            if Instant::now() >= silent_until {
                let idle = self.idle_timeout;
                return Err(Error::new(
                    ErrorKind::RequestTimeout,
                    format!(
                        "incomplete body: expected more bytes within {idle:?}, found none after the first {received}"
                    ),
                ));
            }
            if is_contended() && received - before < CONTENDED_BYTES {
                return Err(Error::new(
                    ErrorKind::RequestTimeout,
                    format!(
                        "incomplete body: expected at least {CONTENDED_BYTES} bytes within {CONTENDED_PERIOD:?} while others wait \
                         for memory, found {}; try again later",
                        received - before
                    ),
                ));
            }
            self.restart(received);
        }
    }
}

pub(super) fn too_large(limit: u64) -> Error {
    Error::new(
        ErrorKind::EntityTooLarge,
        format!("the body is too large: expected at most {limit} bytes"),
    )
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::{StreamExt as _, stream};
    use http_body_util::{Full, StreamBody};

    use super::*;
    use crate::{
        compute::{BodySize, Ledger},
        config::UnverifiedBytes,
        telemetry::Metrics,
    };

    const LIMITS: BodyLimits = BodyLimits {
        max_bytes: 4 << 20,
        idle_timeout: Duration::from_secs(10),
        total_timeout: Duration::from_mins(1),
    };

    fn memory(total_bytes: u64) -> Memory {
        Memory::build(
            total_bytes,
            UnverifiedBytes {
                small: total_bytes / 16,
                large: total_bytes / 4,
            },
            16,
            Duration::from_secs(1),
            Ledger::default(),
            Metrics::default(),
        )
    }

    /// A body of `count` pieces of `bytes` bytes, each after a pause.
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
        read_body(memory, Tenant::default(), body, LIMITS)
            .await
            .unwrap_err()
            .kind()
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_is_read_under_a_permit_of_its_size() {
        let memory = memory(16 << 20);
        let (bytes, mut permits) = read_body(
            &memory,
            Tenant::default(),
            pieces(100_000, 30, Duration::ZERO),
            LIMITS,
        )
        .await
        .unwrap();
        assert_eq!(bytes.len(), 3_000_000);
        assert!(permits.bytes() >= 3_000_000 && permits.bytes() < 3_000_000 + RESERVATION_BYTES);
        for bytes in [300 << 10, 400 << 10, 0] {
            permits.resize(&memory, bytes).await.unwrap();
            assert_eq!(permits.bytes(), bytes);
        }
        let (bytes, permits) = read_body(
            &memory,
            Tenant::default(),
            Full::new(Bytes::from_static(b"{}")),
            LIMITS,
        )
        .await
        .unwrap();
        assert_eq!((bytes.as_ref(), permits.bytes()), (b"{}".as_slice(), 1024));
    }

    #[tokio::test(start_paused = true)]
    async fn idle_time_total_time_and_size_are_limited() {
        let memory = memory(16 << 20);
        assert_eq!(
            kind(&memory, pieces(1, 2, Duration::from_secs(11))).await,
            ErrorKind::RequestTimeout
        );
        // Never idle for long, but too slow in total.
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
    async fn no_bytes_are_read_while_the_memory_budget_is_exhausted() {
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
    async fn a_request_leaves_the_budget_of_unverified_callers_when_it_is_verified() {
        let memory = memory(16 << 20);
        let read = async || {
            read_body(
                &memory,
                Tenant::unverified(BodySize::Large),
                pieces(1 << 20, 4, Duration::ZERO),
                LIMITS,
            )
            .await
        };
        let (_, mut permits) = read().await.unwrap();
        assert_eq!(read().await.unwrap_err().kind(), ErrorKind::SlowDown);
        // More than all unverified callers may have.
        assert_eq!(
            permits.acquire(&memory, 1 << 20).await.unwrap_err().kind(),
            ErrorKind::EntityTooLarge
        );
        permits.mark_verified(Tenant::from_access_key(Some("a")));
        permits.acquire(&memory, 1 << 20).await.unwrap();
        let (_, second) = read().await.unwrap();
        assert_eq!((permits.bytes(), second.bytes()), (5 << 20, 4 << 20));
    }

    /// Bodies that stand still give way to those that wait for their memory, and to no others.
    #[tokio::test(start_paused = true)]
    async fn a_slow_body_is_cut_while_others_wait_for_its_memory() {
        let memory = memory(16 << 20);
        let read = |count, pause| {
            let (memory, body) = (memory.clone(), pieces(1 << 20, count, pause));
            let tenant = Tenant::unverified(BodySize::Large);
            tokio::spawn(async move {
                read_body(&memory, tenant, body, LIMITS)
                    .await
                    .map(|_| Instant::now())
            })
        };
        let started = Instant::now();
        // Four pieces of a MiB are all that unverified callers may have.
        let slow = read(4, Duration::from_secs(4));
        let finished = slow.await.unwrap().unwrap();
        assert_eq!(
            finished - started,
            Duration::from_secs(16),
            "nobody waits: it may be slow"
        );
        let held = memory
            .acquire(&Tenant::unverified(BodySize::Large), 3 << 20)
            .await
            .unwrap();
        let first = read(2, Duration::from_secs(4));
        tokio::time::sleep(Duration::from_millis(500)).await;
        let second = read(1, Duration::ZERO);
        let error = first.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RequestTimeout);
        assert!(error.to_string().contains("while others wait"), "{error}");
        second.await.unwrap().unwrap();
        drop(held);
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_client_reserves_little_memory() {
        let memory = memory(64 << 20);
        let idle = (0..200).map(|_| {
            let memory = memory.clone();
            tokio::spawn(async move { kind(&memory, pieces(1, 1, Duration::from_mins(5))).await })
        });
        let idle: Vec<_> = idle.collect();
        tokio::task::yield_now().await;
        // 200 idle bodies of up to 4 MiB each leave memory for others.
        memory.acquire(&Tenant::default(), 8 << 20).await.unwrap();
        for task in idle {
            assert_eq!(task.await.unwrap(), ErrorKind::RequestTimeout);
        }
    }
}
