//! Tenants, and their positions in queues.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

/// How long a request keeps its position in its tenant's queue. Later work of the request is queued after newer requests,
/// so that a request with thousands of samples does not delay all others of the tenant until it ends.
const POSITION_TTL: Duration = Duration::from_secs(2);

/// A group of callers with one account: the access key of a request that the store authorized.
///
/// Requests without a signature share the default tenant. The bodies of batches that nobody has verified or authorized share
/// one of two unverified tenants, by their size: until then the key is only claimed. Clones share the text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Tenant(Account);

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
enum Account {
    #[default]
    Anonymous,
    Unverified(BodySize),
    AccessKey(Arc<str>),
}

/// The size of the body of an unverified request. Requests with a small one, or without a body, have memory and CPU time of their own,
/// so that they need not wait for large ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BodySize {
    /// At most [`SMALL_BODY_BYTES`](crate::config::SMALL_BODY_BYTES), and not compressed.
    Small,
    /// More, or unknown.
    Large,
}

/// The position of work in its tenant's queue: all work of a request is ordered by the arrival of the request.
///
/// A decoded sample waits a second time, for its model. If decoded samples were queued by the time of decoding, the
/// samples of all requests would alternate, and all requests would end at the same late time.
#[derive(Debug, Clone)]
pub struct QueuePosition {
    tenant: Tenant,
    enqueued_at: Instant,
}

impl Tenant {
    /// The tenant of an access key; the default one without a key.
    pub fn from_access_key(access_key: Option<&str>) -> Self {
        Self(access_key.map_or(Account::Anonymous, |key| Account::AccessKey(key.into())))
    }

    /// The tenant of all callers whose bodies of this size are read before anybody has verified them.
    pub const fn unverified(size: BodySize) -> Self {
        Self(Account::Unverified(size))
    }

    /// The size of the body, if this is a tenant of unverified callers.
    pub(super) const fn unverified_body(&self) -> Option<BodySize> {
        match self.0 {
            Account::Unverified(size) => Some(size),
            _ => None,
        }
    }

    /// The access key; `None` for the default tenant and the unverified ones.
    pub fn access_key(&self) -> Option<&str> {
        match &self.0 {
            Account::Anonymous | Account::Unverified(_) => None,
            Account::AccessKey(key) => Some(key),
        }
    }

    /// The name on the status page: the access key, or `anonymous`, as S3 calls callers without one.
    pub fn name(&self) -> &str {
        self.access_key().unwrap_or("anonymous")
    }

    /// The position after all waiting work of this tenant.
    pub fn position_now(&self) -> QueuePosition {
        QueuePosition {
            tenant: self.clone(),
            enqueued_at: Instant::now(),
        }
    }
}

impl QueuePosition {
    /// The tenant that owns the work.
    pub const fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// The time that orders positions.
    pub(super) const fn enqueued_at(&self) -> Instant {
        self.enqueued_at
    }

    /// The position for further work of the same request: unchanged within the position's lifetime (2 s), and moved back
    /// by a lifetime for each one that has passed.
    #[must_use]
    pub fn renewed(&self) -> Self {
        let expired = self.enqueued_at.elapsed().as_nanos() / POSITION_TTL.as_nanos();
        Self {
            tenant: self.tenant.clone(),
            enqueued_at: self.enqueued_at + POSITION_TTL * u32::try_from(expired).unwrap_or(u32::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_keeps_its_position_for_a_while() {
        let request = Tenant::default().position_now();
        for (seconds, delay) in [(0.0, 0.0), (1.9, 0.0), (2.0, 2.0), (3.9, 2.0), (29.0, 28.0)] {
            let time = request.enqueued_at() + Duration::from_secs_f64(seconds);
            advance(time - Instant::now()).await;
            let found = request.renewed().enqueued_at() - request.enqueued_at();
            assert_eq!(found, Duration::from_secs_f64(delay), "after {seconds} s");
        }
    }
}
