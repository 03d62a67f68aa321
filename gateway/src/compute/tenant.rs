//! Who shares the machine.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

/// How long a request keeps its place in its tenant's line: what it begins later waits behind what came meanwhile, so that no
/// request of thousands of samples keeps a tenant's others waiting to its end.
const KEEPS: Duration = Duration::from_secs(2);

/// Whose work it is: the access key of a request that the store accepted.
///
/// Requests without a signature share the default, and so does what is done before the store has answered: until then
/// a key is only claimed. Clones share the text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Tenant(Option<Arc<str>>);

/// Where work stands in its tenant's line: behind what came before its request did, whatever part of a sample's way it is.
///
/// A sample that has been decoded waits anew for its model. Behind all that was decoded meanwhile it would come last, and so
/// would those of every other request: all would be answered at the end, together.
#[derive(Debug, Clone)]
pub struct Standing {
    tenant: Tenant,
    since: Instant,
}

// === impl Tenant ===

impl Tenant {
    /// The tenant of an access key.
    pub fn of(access_key: Option<&str>) -> Self {
        Self(access_key.map(Arc::from))
    }

    /// Behind all that this tenant has waiting.
    pub fn now(&self) -> Standing {
        Standing {
            tenant: self.clone(),
            since: Instant::now(),
        }
    }
}

// === impl Standing ===

impl Standing {
    /// Whose work it is.
    pub const fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// Since when it stands there.
    pub(super) const fn since(&self) -> Instant {
        self.since
    }

    /// Where what the same request begins now stands: in the request's place, or behind what came until that was lost.
    #[must_use]
    pub fn again(&self) -> Self {
        let lost = self.since.elapsed().as_nanos() / KEEPS.as_nanos();
        Self {
            tenant: self.tenant.clone(),
            since: self.since + KEEPS * u32::try_from(lost).unwrap_or(u32::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_keeps_its_place_for_a_while() {
        let request = Tenant::default().now();
        for (seconds, place) in [(0.0, 0.0), (1.9, 0.0), (2.0, 2.0), (3.9, 2.0), (29.0, 28.0)] {
            let since = request.since() + Duration::from_secs_f64(seconds);
            advance(since - Instant::now()).await;
            let behind = request.again().since() - request.since();
            assert_eq!(behind, Duration::from_secs_f64(place), "after {seconds} s");
        }
    }
}
