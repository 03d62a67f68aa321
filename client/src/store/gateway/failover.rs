//! Requests that any replica can answer: they go to the first choice of their object, and to the next one if that is lost.

use std::sync::Arc;

use pushdown::wire::object_hash;

use super::{GatewayState, Replica};
use crate::{
    error::{Error, Result},
    store::Store,
};

/// Which replica of the gateway a value is requested from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GatewayRoute {
    /// Decides between replicas.
    pub(in crate::store) object_hash: u64,
    /// Whether this host can do without the gateway: then nothing is requested again that does not arrive.
    pub(crate) is_dispensable: bool,
}

impl GatewayRoute {
    /// The route to what belongs to no object, such as the list of models: the same replica for all of it.
    pub(crate) const ANY: Self = Self {
        object_hash: 0,
        is_dispensable: false,
    };

    /// The route to the value of an object, or of a member of this shard.
    pub(crate) fn to(bucket: &str, key: &str) -> Self {
        Self {
            object_hash: object_hash(bucket, key),
            is_dispensable: false,
        }
    }

    /// The route to a row group of an object that begins with this row: those of one object are spread over the replicas.
    #[must_use]
    pub(crate) const fn at_row(self, first_row: u64) -> Self {
        Self {
            object_hash: self.object_hash.wrapping_add(first_row),
            ..self
        }
    }

    /// The same if this host can do without the gateway.
    #[must_use]
    pub(crate) const fn dispensable_if(self, is_dispensable: bool) -> Self {
        Self {
            is_dispensable,
            ..self
        }
    }
}

/// An error of a request to a replica.
pub(crate) trait ReplicaError: From<Error> {
    /// Whether the answer, or a part of it, has not arrived.
    fn is_lost(&self) -> bool;
}

impl ReplicaError for Error {
    fn is_lost(&self) -> bool {
        self.is_retryable()
    }
}

impl Store {
    /// Sends a request by this route, and to the next choice if the first one is lost meanwhile. A replica is probed while it is silent if
    /// something replaces it: another one, or this host.
    ///
    /// # Errors
    /// Those of `attempt`; if no replica is left.
    pub(crate) async fn at_replica<T, E: ReplicaError, A: Future<Output = Result<T, E>>>(
        &self,
        route: GatewayRoute,
        attempt: impl Fn(Arc<Replica>) -> A,
    ) -> Result<T, E> {
        let mut tried = 0;
        loop {
            let list = self.replicas().await?;
            let replica = Arc::clone(list.choice(route.object_hash));
            let has_others = list.len() > 1;
            if !(has_others || route.is_dispensable) {
                return attempt(replica).await;
            }
            let health = Arc::clone(replica.health());
            let attempted = health.wait_for(attempt(replica)).await;
            tried += 1;
            let is_lost = attempted.as_ref().is_err_and(ReplicaError::is_lost);
            let is_replaced = is_lost
                && has_others
                && tried < list.len()
                && health.after_failure().await != GatewayState::Serving
                && list.serves();
            if !is_replaced {
                return attempted;
            }
        }
    }
}
