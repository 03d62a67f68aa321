//! The audit of one request, from its arrival to the end of its answer.

use std::error::Error as StdError;

use http::Response;

use super::line::name;
use super::log::Slot;
use super::verdict::{claimed_access_key, code, denial};
use super::{AuditRecord, Auditor};
use crate::error::Error;
use crate::s3::errors::{ErrorAnswer, REQUEST_ID};

/// Counts the decision on a request, and writes its line, when it is dropped. Keep it in the answer's body.
#[derive(Debug)]
#[must_use = "the line is written when this is dropped"]
pub struct RequestAudit {
    auditor: Auditor,
    record: AuditRecord,
    /// `None` without a log.
    slot: Option<Slot>,
    outcome: Outcome,
}

/// How a request ended.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// `None` if there was no answer.
    pub(super) status: Option<u16>,
    /// Request id of the gateway's own answer.
    pub(super) id: Option<String>,
    /// Request id of the store's answer.
    pub(super) store_id: Option<String>,
    /// Why the gateway denied it.
    pub(super) denial: Option<String>,
    /// The S3 code of its error.
    pub(super) code: Option<&'static str>,
    /// The access key that it claims, if it fails verification.
    pub(super) claimed_access_key: Option<String>,
    pub(super) bytes_out: u64,
}

impl RequestAudit {
    pub(super) fn new(auditor: Auditor, record: AuditRecord, slot: Option<Slot>) -> Self {
        Self {
            auditor,
            record,
            slot,
            outcome: Outcome::default(),
        }
    }

    /// Records the head of the answer. With an error, it is the gateway's own.
    pub fn set_answer<B>(&mut self, answer: &Response<B>, error: Option<&Error>) {
        let id = answer.headers().get(REQUEST_ID);
        let id = id.and_then(|id| name(id.as_bytes()));
        let mut outcome = error.map(Outcome::from_error).unwrap_or_default();
        outcome.status = Some(answer.status().as_u16());
        if error.is_some() || self.record.has_own_answer() {
            outcome.id = id;
        } else {
            outcome.store_id = id;
        }
        self.outcome = outcome;
    }

    /// Counts bytes of the answer's body.
    pub fn add_bytes_out(&mut self, bytes: usize) {
        self.outcome.bytes_out += bytes as u64;
    }

    /// Records why the answer is cut: a key can be withdrawn while its request is answered.
    pub fn set_cut(&mut self, error: &(dyn StdError + Send + Sync + 'static)) {
        if let Some(error) = error.downcast_ref::<Error>() {
            self.outcome.denial = denial(error);
        }
    }
}

impl Drop for RequestAudit {
    fn drop(&mut self) {
        let (record, outcome) = (&self.record, &self.outcome);
        let verdict = record.verdict(outcome);
        let (allowed, denied) = record.decisions(&verdict);
        self.auditor.count(allowed, denied);
        self.auditor.write(self.slot.take(), || {
            let mut lines = String::new();
            record.write(outcome, &verdict, &mut lines);
            lines
        });
    }
}

impl Outcome {
    /// The outcome of a request that failed.
    pub(super) fn from_error(error: &Error) -> Self {
        Self {
            status: Some(ErrorAnswer::from_error(error).status.as_u16()),
            denial: denial(error),
            code: Some(code(error)),
            claimed_access_key: claimed_access_key(error).and_then(|key| name(key.as_bytes())),
            ..Self::default()
        }
    }
}
