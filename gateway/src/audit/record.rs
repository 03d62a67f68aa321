//! What is known about a request while it is answered.

mod objects;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime};

use http::request::Parts;
use parking_lot::Mutex;

use super::line::{Line, ObjectCounts, format_time, name};
use super::request::Outcome;
use super::verdict::Verdict;
use crate::access::{Access, Action, Allowed, Key};
use crate::s3::RequestAddress;
use crate::s3::action::Operation;
use crate::server::Connection;

/// The record of a request. Clones share it.
#[derive(Debug, Clone)]
pub struct AuditRecord(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    arrived: SystemTime,
    started: Instant,
    peer: Option<SocketAddr>,
    /// An operation that S3 does not have.
    own_operation: Option<&'static str>,
    /// Whether there is a log.
    has_log: bool,
    bytes_in: AtomicU64,
    facts: Mutex<Facts>,
}

#[derive(Debug, Default)]
struct Facts {
    /// The key whose signature is valid. A batch of presigned samples has that of its samples.
    caller: Option<Arc<Key>>,
    operation: Option<&'static str>,
    action: Option<Action>,
    bucket: Option<String>,
    object_key: Option<String>,
    grant: Option<usize>,
    objects: ObjectCounts,
    /// The lines of objects that were denied.
    object_lines: String,
}

impl AuditRecord {
    pub(super) fn new(
        head: &Parts,
        address: Option<&RequestAddress>,
        own_operation: Option<&'static str>,
        has_log: bool,
    ) -> Self {
        let address = address.filter(|_| own_operation.is_none());
        let peer = head.extensions.get::<Connection>().map(Connection::peer);
        Self::start(peer, own_operation, has_log, Facts::of_address(address))
    }

    /// The record of a request to S3, without a log.
    #[cfg(test)]
    pub fn for_test(head: &Parts) -> Self {
        Self::new(head, None, None, false)
    }

    fn start(
        peer: Option<SocketAddr>,
        own_operation: Option<&'static str>,
        has_log: bool,
        facts: Facts,
    ) -> Self {
        Self(Arc::new(Inner {
            arrived: SystemTime::now(),
            started: Instant::now(),
            peer,
            own_operation,
            has_log,
            bytes_in: AtomicU64::new(0),
            facts: Mutex::new(facts),
        }))
    }

    /// Records the key of a request whose signature is valid.
    pub fn set_caller(&self, key: &Arc<Key>) {
        self.0.facts.lock().caller = Some(Arc::clone(key));
    }

    /// Records the S3 operation of a verified request, and what it addresses.
    pub fn set_operation(&self, address: &RequestAddress, operation: &Operation) {
        if self.0.own_operation.is_some() {
            return;
        }
        let mut facts = self.0.facts.lock();
        facts.set_address(address);
        facts.operation = operation.name();
        facts.action = match operation.accesses().first() {
            // Each key of the body is an access of its own.
            None if operation.is_delete_objects() => Some(Action::Delete),
            first => first.map(Access::action),
        };
    }

    /// Records the grant of an allowed request.
    pub fn set_grant(&self, allowed: &Allowed) {
        self.0.facts.lock().grant = allowed.grant();
    }

    /// Counts bytes of the request's body.
    pub fn add_bytes_in(&self, bytes: usize) {
        self.0.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Whether a successful answer is the gateway's own: that of a route of its own, or to objects which are all denied.
    pub(super) fn has_own_answer(&self) -> bool {
        let ObjectCounts { allowed, denied } = self.0.facts.lock().objects;
        self.0.own_operation.is_some() || (denied > 0 && allowed == 0)
    }

    /// What was decided on a request that ended like this.
    pub(super) fn verdict(&self, outcome: &Outcome) -> Verdict {
        let facts = self.0.facts.lock();
        let ObjectCounts { allowed, denied } = facts.objects;
        let reason = if outcome.denial.is_some() {
            outcome.denial.clone()
        } else if self.0.own_operation.is_some() && denied > 0 && allowed == 0 {
            Some("all samples are denied".to_owned())
        } else if facts.caller.is_some() {
            None
        } else if outcome.status.is_none() {
            Some("no answer".to_owned())
        } else {
            // Refused before it was verified.
            outcome.code.map(str::to_owned)
        };
        match reason {
            Some(reason) => Verdict::Denied { reason },
            None => Verdict::Allowed { grant: facts.grant },
        }
    }

    /// The number of decisions that allowed and that denied something: on each object that the body lists, or else on the
    /// request.
    pub(super) fn decisions(&self, verdict: &Verdict) -> (u64, u64) {
        let ObjectCounts { allowed, denied } = self.0.facts.lock().objects;
        match verdict {
            _ if allowed + denied > 0 => (allowed, denied),
            Verdict::Allowed { .. } => (1, 0),
            Verdict::Denied { .. } => (0, 1),
        }
    }

    /// Adds the lines of the objects that were denied, and the line of the request.
    pub(super) fn write(&self, outcome: &Outcome, verdict: &Verdict, lines: &mut String) {
        let inner = &self.0;
        let facts = inner.facts.lock();
        lines.push_str(&facts.object_lines);
        let caller = facts.caller.as_deref();
        let line = Line {
            time: format_time(inner.arrived),
            id: outcome.id.as_deref(),
            store_id: outcome.store_id.as_deref(),
            peer: inner.peer,
            tenant: caller.map(Key::tenant),
            access_key: caller
                .map(Key::access_key)
                .or(outcome.claimed_access_key.as_deref()),
            operation: inner.own_operation.or(facts.operation),
            action: facts.action.map(Action::as_str),
            bucket: facts.bucket.as_deref(),
            key: facts.object_key.as_deref(),
            verdict,
            status: outcome.status,
            bytes_in: inner.bytes_in.load(Ordering::Relaxed),
            bytes_out: outcome.bytes_out,
            milliseconds: u64::try_from(inner.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            objects: (facts.objects != ObjectCounts::default()).then_some(facts.objects),
        };
        line.write(lines);
    }
}

impl Facts {
    fn of_address(address: Option<&RequestAddress>) -> Self {
        let mut facts = Self::default();
        if let Some(address) = address {
            facts.set_address(address);
        }
        facts
    }

    fn set_address(&mut self, address: &RequestAddress) {
        self.bucket = name(address.bucket());
        self.object_key = name(address.key());
    }
}
