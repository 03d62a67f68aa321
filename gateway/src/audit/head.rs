//! Heads of requests that are audited.

use http::request::Parts;

use super::AuditRecord;
use crate::s3::RequestAddress;

/// The head of a request, with its audit record. In re-sign mode only such requests are admitted, and only the audit makes them: no
/// request is admitted without a record. Not `Debug`: signatures and session tokens are in heads.
pub struct AuditedHead {
    parts: Parts,
    address: Option<RequestAddress>,
    record: AuditRecord,
}

impl AuditedHead {
    pub(super) const fn new(parts: Parts, address: Option<RequestAddress>, record: AuditRecord) -> Self {
        Self {
            parts,
            address,
            record,
        }
    }

    /// The head.
    pub const fn parts(&self) -> &Parts {
        &self.parts
    }

    /// The head, what it addresses by the host that it was sent to (`None` for a malformed path), and the record.
    pub fn into_parts(self) -> (Parts, Option<RequestAddress>, AuditRecord) {
        (self.parts, self.address, self.record)
    }
}
