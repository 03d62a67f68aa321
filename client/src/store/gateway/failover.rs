//! Requests that any replica can answer: they go to the first choice of their object, and to the next one if that is lost.

use std::sync::Arc;

use super::{GatewayState, Replica};
use crate::{
    error::{Error, Result},
    store::Store,
};

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
    /// The replica that an object with this hash is requested from.
    ///
    /// # Errors
    /// If there is certainly no gateway.
    pub(crate) async fn replica(&self, object_hash: u64) -> Result<Arc<Replica>> {
        Ok(Arc::clone(self.replicas().await?.choice(object_hash)))
    }

    /// Sends a request to the replica of an object with this hash, and to its next choice if that replica is lost meanwhile. A replica is
    /// probed while it is silent if something replaces it: another one, or this host, if the gateway `is_dispensable`.
    ///
    /// # Errors
    /// Those of `attempt`; if no replica is left.
    pub(crate) async fn at_replica<T, E: ReplicaError, A: Future<Output = Result<T, E>>>(
        &self,
        object_hash: u64,
        is_dispensable: bool,
        attempt: impl Fn(Arc<Replica>) -> A,
    ) -> Result<T, E> {
        let mut tried = 0;
        loop {
            let list = self.replicas().await?;
            let replica = Arc::clone(list.choice(object_hash));
            let has_others = list.len() > 1;
            if !(has_others || is_dispensable) {
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
