//! Heads of requests that are audited.

use http::request::Parts;

use super::AuditRecord;

/// The head of a request, with its audit record. In re-sign mode only such requests are admitted, and only the audit makes them: no
/// request is answered without a record.
#[derive(Debug)]
pub struct AuditedHead {
    parts: Parts,
    record: AuditRecord,
}

impl AuditedHead {
    pub(super) const fn new(parts: Parts, record: AuditRecord) -> Self {
        Self { parts, record }
    }

    /// The head.
    pub const fn parts(&self) -> &Parts {
        &self.parts
    }

    /// The head and the record.
    pub fn into_parts(self) -> (Parts, AuditRecord) {
        (self.parts, self.record)
    }
}
