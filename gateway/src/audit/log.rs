//! The queue between requests and the file.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

use super::file::LogFile;
use super::writer::{Message, Writer};
use crate::config::{Audit, AuditOverflow, Limits};
use crate::error::{Error, ErrorKind, Result};
use crate::telemetry::Metrics;

/// Messages that the queue holds in addition to one for each connection, which has one request in flight.
const QUEUED_MESSAGES: usize = 1024;
/// Longest wait for the file when the gateway ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// The queue. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct AuditLog {
    messages: mpsc::Sender<Message>,
    overflow: AuditOverflow,
    /// Longest wait for room in the queue.
    max_wait: Duration,
    /// Set while the file cannot be written.
    is_failing: Arc<AtomicBool>,
    metrics: Metrics,
}

/// The right to send the lines of one request.
#[derive(Debug)]
pub(super) enum Slot {
    /// The queue has room for them.
    Reserved(mpsc::OwnedPermit<Message>),
    /// They are dropped if the queue has no room then.
    Unreserved,
}

impl AuditLog {
    /// Opens the file, and starts the task that writes it. Must be called within the runtime.
    ///
    /// # Errors
    /// The file cannot be opened, or the handler of SIGHUP cannot be installed.
    pub(super) fn start(config: &Audit, limits: &Limits, metrics: Metrics) -> io::Result<Self> {
        let file = LogFile::open(config.file.clone()).map_err(|error| {
            let text = format!("audit-log {}: {error}", config.file.display());
            io::Error::new(error.kind(), text)
        })?;
        let capacity = limits.max_connections.saturating_add(QUEUED_MESSAGES);
        let (messages, receiver) = mpsc::channel(capacity);
        let is_failing = Arc::new(AtomicBool::new(false));
        let writer = Writer {
            file: Arc::new(Mutex::new(file)),
            messages: receiver,
            hangups: signal(SignalKind::hangup())?,
            overflow: config.overflow,
            is_failing: Arc::clone(&is_failing),
            metrics: metrics.clone(),
        };
        drop(tokio::spawn(writer.run()));
        Ok(Self {
            messages,
            overflow: config.overflow,
            max_wait: limits.queue_wait,
            is_failing,
            metrics,
        })
    }

    /// Waits for room for the lines of a request, unless they may be dropped.
    ///
    /// # Errors
    /// [`ErrorKind::SlowDown`] while the file cannot be written, or if the queue stays full.
    pub(super) async fn reserve(&self) -> Result<Slot> {
        if self.overflow == AuditOverflow::Drop {
            return Ok(Slot::Unreserved);
        }
        if self.is_failing.load(Ordering::Relaxed) {
            return Err(unavailable());
        }
        let reserving = self.messages.clone().reserve_owned();
        match tokio::time::timeout(self.max_wait, reserving).await {
            Ok(Ok(permit)) => Ok(Slot::Reserved(permit)),
            Ok(Err(_)) | Err(_) => Err(unavailable()),
        }
    }

    /// Sends lines, each with its end.
    pub(super) fn send(&self, slot: Slot, lines: String) {
        match slot {
            Slot::Reserved(permit) => drop(permit.send(Message::Lines(lines))),
            Slot::Unreserved => {
                let count = lines.matches('\n').count() as u64;
                if self.messages.try_send(Message::Lines(lines)).is_err() {
                    self.metrics.audit_dropped.inc_by(count);
                }
            }
        }
    }

    /// Waits until all lines that were sent before are in the file, but no longer than 5 s.
    pub(super) async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        let flushing = async {
            if self.messages.send(Message::Flush(done)).await.is_ok() {
                _ = flushed.await;
            }
        };
        if tokio::time::timeout(FLUSH_TIMEOUT, flushing).await.is_err() {
            tracing::error!("the audit log is incomplete: its last lines could not be written");
        }
    }
}

fn unavailable() -> Error {
    Error::new(
        ErrorKind::SlowDown,
        "the audit log cannot be written: try again later",
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn start(file: &Path, overflow: AuditOverflow) -> (AuditLog, Metrics) {
        let metrics = Metrics::default();
        let config = Audit {
            file: file.to_owned(),
            overflow,
        };
        let log = AuditLog::start(&config, &Limits::default(), metrics.clone()).unwrap();
        (log, metrics)
    }

    #[tokio::test]
    async fn lines_are_written_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.jsonl");
        for overflow in [AuditOverflow::Block, AuditOverflow::Drop] {
            let (log, _) = start(&path, overflow);
            for line in ["a\n", "b\nc\n"] {
                let slot = log.reserve().await.unwrap();
                log.send(slot, line.to_owned());
            }
            log.flush().await;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "a\nb\nc\na\nb\nc\n");
    }

    /// Waits until the task has tried to write.
    async fn wait_until_failing(log: &AuditLog) {
        while !log.is_failing.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn a_full_disk_refuses_requests() {
        let (log, metrics) = start(Path::new("/dev/full"), AuditOverflow::Block);
        let slot = log.reserve().await.unwrap();
        log.send(slot, "a\n".to_owned());
        wait_until_failing(&log).await;
        let error = log.reserve().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SlowDown);
        assert_eq!(metrics.audit_dropped.get(), 0);
    }

    #[tokio::test]
    async fn a_full_disk_drops_lines_that_may_be_dropped() {
        let (log, metrics) = start(Path::new("/dev/full"), AuditOverflow::Drop);
        for expected in [2, 4] {
            let slot = log.reserve().await.unwrap();
            log.send(slot, "a\nb\n".to_owned());
            log.flush().await;
            assert_eq!(metrics.audit_dropped.get(), expected);
        }
        wait_until_failing(&log).await;
        assert!(log.reserve().await.is_ok());
    }
}
