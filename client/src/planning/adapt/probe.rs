//! Measures a few objects, for plans that cannot begin with trials of both routes.

use pushdown::Step;

use super::{Adapter, EXPLORATION_BATCHES, float};
use crate::{
    error::Result,
    models::preload,
    planning::profile::{Profile, ProfileRequest},
    store::{Object, Store},
};

/// Number of measured objects.
const PROBED: usize = 8;

/// The data set to probe.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProbeRequest<'a> {
    pub(crate) bucket: &'a str,
    pub(crate) objects: &'a [Object],
    pub(crate) seed: Option<u64>,
    pub(crate) epoch: u32,
}

impl Adapter {
    /// Loads the weights that are on this host. If some are not, plans from a few measured objects instead of trying both
    /// routes, since the plan decides whether downloading weights is worthwhile.
    ///
    /// # Errors
    /// If no object can be requested. Refused objects are skipped.
    pub(crate) async fn probe(&self, store: &Store, request: ProbeRequest<'_>) -> Result<()> {
        let ProbeRequest {
            bucket,
            objects,
            seed,
            epoch,
        } = request;
        if objects.is_empty() {
            return Ok(());
        }
        let is_missing = |step: &Step| step.models().any(|model| !model.is_local());
        let Some(host_steps) = self.pipeline.steps().iter().position(is_missing) else {
            preload(self.pipeline.steps());
            return Ok(());
        };
        let step = objects.len().div_ceil(PROBED).max(1);
        let probed: Vec<_> = objects.iter().step_by(step).cloned().collect();
        let request = ProfileRequest {
            bucket,
            pipeline: &self.pipeline,
            host_steps,
            seed,
            epoch,
        };
        let profile = store.profile_all(&probed, &request).await?;
        self.observe_profile(&profile, objects.len());
        Ok(())
    }

    /// Records a profile, and plans from it.
    fn observe_profile(&self, profile: &Profile, samples_left: usize) {
        let mut state = self.state.lock();
        for sample in &profile.samples {
            let stored = sample.candidates.first().map(|candidate| bytes(candidate.bytes));
            let class = self.context.class(stored);
            if let Some(stored) = stored.filter(|_| !self.has_all_sizes) {
                state.observe_size(class, stored);
            }
            let replanner = &mut state.replanner;
            let pairs = sample.candidates.iter().zip(sample.candidates.iter().skip(1));
            for (candidate, next) in pairs {
                let seconds = candidate.host_seconds - next.host_seconds;
                replanner.observe_host_seconds(class, candidate.stage, next.stage - candidate.stage, seconds);
            }
            if let Some(last) = sample.candidates.last() {
                let rest = self.pipeline.len() - last.stage;
                replanner.observe_host_seconds(class, last.stage, rest, last.host_seconds);
            }
            for candidate in sample.candidates.iter().skip(1) {
                replanner.observe_gateway_seconds(class, candidate.stage, candidate.gateway_seconds);
                let stored = stored.map_or(f64::INFINITY, float);
                let is_object = candidate.bytes > stored * self.context.max_expand;
                replanner.observe_value_bytes(
                    class,
                    candidate.stage,
                    if is_object { stored } else { candidate.bytes },
                    is_object,
                );
            }
        }
        if let Some(rate) = profile.link_bytes_per_second {
            state.replanner.link_mut().observe_bandwidth(rate);
        }
        if let Some(cores) = profile.gateway_cores {
            state.replanner.set_gateway_cores(cores);
        }
        state.batches = EXPLORATION_BATCHES;
        self.plan(&mut state, samples_left);
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a size that was a whole number"
)]
const fn bytes(size: f64) -> u64 {
    size as u64
}
