//! Answers connections that get no slot, without reading the rest of their requests.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most refusals at a time. Further connections are closed at once.
const MAX_REFUSALS: usize = 64;
/// Longest time of a refusal.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Most bytes of a request that are dropped after its refusal.
const MAX_DROPPED_BYTES: usize = 64 << 10;

/// The refusals of a server.
#[derive(Debug)]
pub(super) struct Refusals(Arc<Semaphore>);

/// The right to refuse a connection by an answer.
#[derive(Debug)]
pub(super) struct Refusal(OwnedSemaphorePermit);

impl Default for Refusals {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_REFUSALS)))
    }
}

impl Refusals {
    /// A refusal; `None` while there are too many.
    pub(super) fn begin(&self) -> Option<Refusal> {
        Arc::clone(&self.0).try_acquire_owned().ok().map(Refusal)
    }
}

impl Refusal {
    /// Sends an answer, and closes the connection.
    pub(super) async fn send<T>(self, mut stream: T, answer: Bytes) -> io::Result<()>
    where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        let exchange = async {
            stream.write_all(&answer).await?;
            stream.shutdown().await?;
            // If unread bytes are left, the kernel resets the connection, and the client may lose the answer.
            let mut buffer = [0; 4 << 10];
            let mut dropped = 0;
            while dropped < MAX_DROPPED_BYTES {
                match stream.read(&mut buffer).await? {
                    0 => break,
                    count => dropped += count,
                }
            }
            Ok(())
        };
        let sent = tokio::time::timeout(TIMEOUT, exchange).await;
        drop(self.0);
        sent.unwrap_or_else(|elapsed| Err(elapsed.into()))
    }
}
