//! What this host can do without a gateway beside the store.

use std::sync::Arc;

use pushdown::Step;

use super::{GatewayHealth, Store};
use crate::{
    error::Error,
    weights::{WeightDownload, models_of},
};

impl Store {
    /// The health of a gateway beside the store, if this host can run these steps in its place. `None` as well if weights are missing, which
    /// only the gateway has.
    pub(crate) fn dispensable_gateway(&self, steps: &[Step]) -> Option<&Arc<GatewayHealth>> {
        let health = self.gateway_health()?;
        let models = models_of(steps);
        models.iter().all(|model| model.is_local()).then_some(health)
    }

    /// Begins to download the weights for which this host depends on a gateway beside the store. `None` if there are none, or this host cannot
    /// run models.
    pub(crate) fn download_weights(&self, steps: &[Step]) -> Option<WeightDownload> {
        self.gateway_health()?;
        let mut models = models_of(steps).into_iter();
        let can_run = models.all(|model| model.runtime_identity().is_ok());
        can_run.then(|| WeightDownload::begin(steps)).flatten()
    }

    /// Whether requests that begin now are left to this host, since the gateway does not serve.
    pub(crate) fn is_gateway_lost(&self, steps: &[Step]) -> bool {
        let is_lost = self.gateway_health().is_some_and(|health| !health.serves());
        is_lost && self.dispensable_gateway(steps).is_some()
    }

    /// The error of a gateway beside the store that did not answer, with the model for which this host depends on it, if there is one.
    pub(crate) fn name_missing_model(&self, error: Error, steps: &[Step]) -> Error {
        if !error.is_retryable() || self.gateway_health().is_none() {
            return error;
        }
        let models = models_of(steps);
        let reasons = models.iter().filter_map(|model| {
            let name = model.name();
            match model.runtime_identity() {
                _ if !model.is_local() => Some(format!("has no weights of the model `{name}`")),
                Ok(_) => None,
                Err(error) => Some(format!("cannot run the model `{name}`: {error}")),
            }
        });
        let reasons: Vec<_> = reasons.collect();
        let Some(reason) = reasons.first() else {
            return error;
        };
        let text = format!("{error}; nothing can be read without the gateway, since this host {reason}");
        Error::new(error.kind(), text).with_source(error)
    }
}
