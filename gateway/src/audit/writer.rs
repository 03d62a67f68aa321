//! The task that writes the audit log.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::signal::unix::Signal;
use tokio::sync::{mpsc, oneshot};
use tracing::{error, info};

use super::file::LogFile;
use crate::config::AuditOverflow;
use crate::telemetry::Metrics;

/// Most messages that are written at once.
const MESSAGES_PER_WRITE: usize = 256;
/// Pause between attempts to write, while the file cannot be written.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A message to the task.
#[derive(Debug)]
pub(super) enum Message {
    /// One or more lines, each with its end.
    Lines(String),
    /// A question, which is answered when all earlier lines have been written.
    Flush(oneshot::Sender<()>),
}

/// Writes the lines of a queue to a file, until the queue is closed.
pub(super) struct Writer {
    pub(super) file: Arc<Mutex<LogFile>>,
    pub(super) messages: mpsc::Receiver<Message>,
    /// Each asks to open the file again.
    pub(super) hangups: Signal,
    pub(super) overflow: AuditOverflow,
    /// Set while the file cannot be written.
    pub(super) is_failing: Arc<AtomicBool>,
    pub(super) metrics: Metrics,
}

impl Writer {
    pub(super) async fn run(mut self) {
        let mut messages = Vec::with_capacity(MESSAGES_PER_WRITE);
        loop {
            let count = tokio::select! {
                count = self.messages.recv_many(&mut messages, MESSAGES_PER_WRITE) => count,
                Some(()) = self.hangups.recv() => {
                    self.reopen().await;
                    continue;
                }
            };
            if count == 0 {
                return;
            }
            let (mut lines, mut flushes) = (String::new(), Vec::new());
            for message in messages.drain(..) {
                match message {
                    Message::Lines(text) => lines.push_str(&text),
                    Message::Flush(done) => flushes.push(done),
                }
            }
            if !lines.is_empty() {
                self.write(lines).await;
            }
            for done in flushes {
                // Fails if nobody waits any more.
                _ = done.send(());
            }
        }
    }

    /// Writes lines. If this fails, tries again until it succeeds, or drops them.
    async fn write(&mut self, lines: String) {
        let append = move |file: &mut LogFile| file.append(lines.as_bytes());
        let mut written = with_file(Arc::clone(&self.file), append).await;
        while let Err(error) = written {
            if !self.is_failing.swap(true, Ordering::Relaxed) {
                error!(%error, "cannot write the audit log");
            }
            if self.overflow == AuditOverflow::Drop {
                let lost = self.file.lock().discard();
                self.metrics.audit_dropped.inc_by(lost);
                return;
            }
            self.pause().await;
            written = with_file(Arc::clone(&self.file), LogFile::resume).await;
        }
        if self.is_failing.swap(false, Ordering::Relaxed) {
            info!("the audit log can be written again");
        }
    }

    /// Waits before the next attempt to write.
    async fn pause(&mut self) {
        let is_hangup = tokio::select! {
            () = tokio::time::sleep(RETRY_INTERVAL) => false,
            Some(()) = self.hangups.recv() => true,
        };
        if is_hangup {
            self.reopen().await;
        }
    }

    async fn reopen(&mut self) {
        match with_file(Arc::clone(&self.file), LogFile::reopen).await {
            Ok(()) => info!("audit log reopened"),
            Err(error) => error!(%error, "cannot reopen the audit log: the open file stays in use"),
        }
    }
}

/// Works on the file without blocking the I/O threads.
async fn with_file(
    file: Arc<Mutex<LogFile>>,
    work: impl FnOnce(&mut LogFile) -> io::Result<()> + Send + 'static,
) -> io::Result<()> {
    #[expect(
        clippy::disallowed_methods,
        reason = "writes to a file, as `tokio::fs` does, and computes nothing"
    )]
    let working = tokio::task::spawn_blocking(move || work(&mut file.lock()));
    working.await.unwrap_or_else(|error| Err(io::Error::other(error)))
}
