//! A look at a few objects, where not all can be tried both ways.

use pushdown::Step;

use super::{Adapter, EXPLORING, float};
use crate::{
    error::Result,
    models::prepare,
    profile::{Measure, Profile},
    store::{Object, Store},
};

/// Objects that are measured.
const MEASURED: usize = 8;

impl Adapter {
    /// Gets the weights ready that are at hand. Where some are not, plans from a few objects in place of trying both ways:
    /// whether fetching weights is worth while is a part of the plan.
    ///
    /// # Errors
    /// When no object can be asked for. Those that are refused tell nothing.
    pub(crate) async fn look(
        &self,
        store: &Store,
        (bucket, objects, seed, epoch): (&str, &[Object], Option<u64>, u32),
    ) -> Result<()> {
        if objects.is_empty() {
            return Ok(());
        }
        let far = |step: &Step| step.models().any(|model| !model.is_local());
        let Some(here) = self.pipeline.steps().iter().position(far) else {
            prepare(self.pipeline.steps());
            return Ok(());
        };
        let step = objects.len().div_ceil(MEASURED).max(1);
        let some: Vec<_> = objects.iter().step_by(step).cloned().collect();
        let what = Measure {
            bucket,
            pipeline: &self.pipeline,
            here,
            seed,
            epoch,
        };
        let profile = store.measure_all(&some, &what).await?;
        self.learn(&profile, objects.len());
        Ok(())
    }

    /// Plans from a profile.
    fn learn(&self, profile: &Profile, left: usize) {
        let mut state = self.state.lock();
        for sample in &profile.samples {
            let stored = sample.ways.first().map(|way| bytes(way.bytes));
            let class = self.ground.class(stored);
            if let Some(stored) = stored.filter(|_| !self.listed) {
                state.found(class, stored);
            }
            let replanner = &mut state.replanner;
            for (way, next) in sample.ways.iter().zip(sample.ways.iter().skip(1)) {
                let seconds = way.host_seconds - next.host_seconds;
                replanner.observe_host_seconds(class, way.stage, next.stage - way.stage, seconds);
            }
            if let Some(last) = sample.ways.last() {
                let rest = self.pipeline.len() - last.stage;
                replanner.observe_host_seconds(class, last.stage, rest, last.host_seconds);
            }
            for way in sample.ways.iter().skip(1) {
                replanner.observe_gateway_seconds(class, way.stage, way.gateway_seconds);
                let stored = stored.map_or(f64::INFINITY, float);
                let instead = way.bytes > stored * self.ground.max_expand;
                replanner.observe_value_bytes(
                    class,
                    way.stage,
                    if instead { stored } else { way.bytes },
                    instead,
                );
            }
        }
        if let Some(rate) = profile.link_bytes {
            state.replanner.link_mut().observe_bandwidth(rate);
        }
        if let Some(cores) = profile.gateway_cores {
            state.replanner.set_gateway_cores(cores);
        }
        state.batches = EXPLORING;
        self.plan(&mut state, left);
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
