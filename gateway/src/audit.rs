//! The audit of re-sign mode: who asked for what, what was decided, and what came of it.
//!
//! [`Auditor::begin`] starts the audit of a request. It returns an [`AuditedHead`], whose [`AuditRecord`] gets verification and
//! decision, and a [`RequestAudit`], which goes with the answer: when that one ends, it writes a line of JSON. Lines contain no secret, token or signature, because nothing is taken from headers and queries but an
//! access key.

mod file;
mod head;
mod line;
mod log;
mod record;
mod request;
mod verdict;
mod writer;

use std::io;
use std::sync::Arc;

use http::request::Parts;

pub use head::AuditedHead;
pub use record::AuditRecord;
pub use request::RequestAudit;

use self::log::{AuditLog, Slot};
use crate::config::{self, Limits};
use crate::error::Result;
use crate::s3::RequestAddress;
use crate::telemetry::Metrics;

/// Audits the requests of a gateway. Clones share the log.
#[derive(Debug, Clone)]
pub struct Auditor(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Without it, decisions are only counted.
    log: Option<AuditLog>,
    metrics: Metrics,
}

impl Auditor {
    /// Opens the log, if one is configured. Must be called within the runtime.
    ///
    /// # Errors
    /// The file cannot be opened, or the handler of SIGHUP cannot be installed.
    pub fn start(config: &config::Resign, limits: &Limits, metrics: Metrics) -> io::Result<Self> {
        let log = config
            .audit
            .as_ref()
            .map(|audit| AuditLog::start(audit, limits, metrics.clone()))
            .transpose()?;
        Ok(Self(Arc::new(Inner { log, metrics })))
    }

    /// Starts the audit of a request to `address`. `own_operation` names an operation that S3 does not have.
    ///
    /// # Errors
    /// [`ErrorKind::SlowDown`](crate::error::ErrorKind::SlowDown) while the log cannot be written and no line may be dropped.
    pub async fn begin(
        &self,
        head: Parts,
        address: Option<RequestAddress>,
        own_operation: Option<&'static str>,
    ) -> Result<(AuditedHead, RequestAudit)> {
        let slot = match &self.0.log {
            Some(log) => Some(log.reserve().await?),
            None => None,
        };
        let record = AuditRecord::new(&head, address.as_ref(), own_operation, slot.is_some());
        let audit = RequestAudit::new(self.clone(), record.clone(), slot);
        Ok((AuditedHead::new(head, address, record), audit))
    }

    /// Waits until the lines of all requests that have ended are in the file, but no longer than 5 s.
    pub async fn flush(&self) {
        if let Some(log) = &self.0.log {
            log.flush().await;
        }
    }

    fn count(&self, allowed: u64, denied: u64) {
        self.0.metrics.count_decisions("allowed", allowed);
        self.0.metrics.count_decisions("denied", denied);
    }

    fn write(&self, slot: Option<Slot>, lines: impl FnOnce() -> String) {
        if let (Some(log), Some(slot)) = (&self.0.log, slot) {
            log.send(slot, lines());
        }
    }
}
