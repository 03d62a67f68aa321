//! Measures a few objects, for plans that cannot begin with trials of both routes.

use std::sync::Arc;

use pushdown::{Step, wire::Features};

use super::{
    Adapter,
    event::{Event, SamplesLeft},
};
use crate::{
    error::Result,
    objects::Objects,
    store::{GatewayRoute, ProfileRequest, Replica, Store},
    weights::preload,
};

/// Number of measured objects.
const PROBED: usize = 8;

/// The data set to probe.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProbeRequest<'a> {
    pub(crate) objects: &'a Objects,
    pub(crate) seed: Option<u64>,
    pub(crate) epoch: u32,
    /// Epochs that follow.
    pub(crate) later_epochs: u32,
    /// Whether no value is cached that needs more of an object than a cropped JPEG has.
    pub(crate) may_crop: bool,
}

impl Adapter {
    /// Loads the weights that are on this host. If some are not, plans from a few measured objects instead of trying both
    /// routes, since the plan decides whether downloading weights is worthwhile.
    ///
    /// # Errors
    /// If no object can be requested. Refused objects are skipped.
    pub(crate) async fn probe(&self, store: &Store, request: ProbeRequest<'_>) -> Result<()> {
        let ProbeRequest {
            objects,
            seed,
            epoch,
            later_epochs,
            may_crop,
        } = request;
        if objects.is_empty() {
            return Ok(());
        }
        if self.crop_steps().is_some() {
            // Otherwise a data set of which nothing else fits would never be requested from the gateway.
            let features = store.ask_for_features().await;
            self.allow_crops(features.has(Features::CROPPED_JPEG) && may_crop);
            // A gateway that is down is probed until it is back, though nothing is requested from it.
            if features == Features::default() {
                store.probe_gateway().await;
            }
        }
        let is_missing = |step: &Step| step.models().iter().any(|model| !model.is_local());
        let Some(host_steps) = self.pipeline.steps().iter().position(is_missing) else {
            preload(self.pipeline.steps());
            return Ok(());
        };
        if self.has_plan() {
            return Ok(());
        }
        if objects.has_members() && !store.ask_for_features().await.has(Features::MEMBERS) {
            // All is read plainly.
            return Ok(());
        }
        let check = |replica: Arc<Replica>| async move { store.check_reads_stores(&replica).await };
        if store.at_replica(GatewayRoute::ANY, check).await.is_err() {
            // The same, with a warning at the first batch.
            return Ok(());
        }
        let step = objects.len().div_ceil(PROBED).max(1);
        let probed = objects.select((0..objects.len()).step_by(step));
        let request = ProfileRequest {
            pipeline: &self.pipeline,
            host_steps,
            seed,
            epoch,
        };
        let profile = store.profile_all(&probed, &request).await?;
        let gateway_cores = profile.all_gateway_cores();
        self.observe(Event::Profiled {
            samples: profile.samples,
            link_bytes_per_second: profile.link_bytes_per_second,
            gateway_cores,
            left: SamplesLeft {
                samples: objects.len(),
                later_epochs,
            },
            setup: self.setup_costs(),
        });
        Ok(())
    }
}
