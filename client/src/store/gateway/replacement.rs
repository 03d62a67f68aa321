//! What this host can do without a gateway beside the store.

use pushdown::Step;

use super::Store;
use crate::{
    error::Error,
    weights::{WeightDownload, models_of},
};

impl Store {
    /// Whether there is a gateway beside the store, and this host can run these steps in its place. Not if weights are missing, which only
    /// the gateway has.
    pub(crate) fn is_gateway_dispensable(&self, steps: &[Step]) -> bool {
        self.has_gateway_beside() && models_of(steps).iter().all(|model| model.is_local())
    }

    /// Begins to download the weights for which this host depends on a gateway beside the store. `None` if there are none, or this host cannot
    /// run models.
    pub(crate) fn download_weights(&self, steps: &[Step]) -> Option<WeightDownload> {
        if !self.has_gateway_beside() {
            return None;
        }
        let mut models = models_of(steps).into_iter();
        let can_run = models.all(|model| model.runtime_identity().is_ok());
        can_run.then(|| WeightDownload::begin(steps)).flatten()
    }

    /// Whether requests that begin now are left to this host, since the gateway does not serve.
    pub(crate) fn is_gateway_lost(&self, steps: &[Step]) -> bool {
        self.has_gateway_beside() && !self.gateway_serves() && self.is_gateway_dispensable(steps)
    }

    /// The error of a gateway beside the store that did not answer, with the model for which this host depends on it, if there is one.
    pub(crate) fn name_missing_model(&self, error: Error, steps: &[Step]) -> Error {
        if !error.is_retryable() || !self.has_gateway_beside() {
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
