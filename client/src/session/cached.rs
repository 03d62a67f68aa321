//! Reads values from the value cache before anything is requested, and adds new ones.

use std::{ops::Range, sync::Arc};

use pushdown::{Context, Kind, Sample, wire::Split};

use super::{BatchJob, Session, intake::Intake};
use crate::{
    error::Result,
    stats::add,
    value_cache::{CachedStage, NotCachedReason, ValueCache},
};

/// Takes every value of the batch that is cached.
pub(super) async fn fetch(session: &Arc<Session>, job: &BatchJob, intake: &Intake<'_>) -> Result<()> {
    if session.value_cache.is_none() {
        return Ok(());
    }
    let loads: Vec<_> = intake
        .missing()
        .into_iter()
        .map(|slot| {
            let (session, index) = (Arc::clone(session), job.samples[slot].index);
            let cpu = session.cpu.clone();
            (slot, cpu.run_for(job.number, move || session.load(index)))
        })
        .collect();
    for (slot, load) in loads {
        if let Some((stage, value)) = load.await? {
            intake.cached(slot, stage, value)?;
        }
    }
    Ok(())
}

impl Session {
    /// The cache and the stage at which it has an object's value, or why it has none; `None` without a cache.
    fn cached_stage(&self, index: usize) -> Option<Result<(&ValueCache, &CachedStage), NotCachedReason>> {
        let cache = self.value_cache.as_ref()?;
        Some(match cache.stage(self.objects.bytes(index)) {
            Some(stage) if stage.stage >= self.first_stage => Ok((cache, stage)),
            Some(_) => Err(NotCachedReason::NoModels),
            None => Err(cache.too_large_reason()),
        })
    }

    fn load(&self, index: usize) -> Option<(u8, Sample)> {
        let (cache, stage) = self.cached_stage(index)?.ok()?;
        let value = cache.load(self.objects.object(index), stage, &self.pipeline, &self.limits)?;
        Some((u8::try_from(stage.stage).ok()?, value))
    }

    /// Whether a value at `stage` is to be cached, then or at a later stage. Counts the reason if not.
    pub(super) fn should_cache(&self, index: usize, stage: u8) -> bool {
        let reason = match self.cached_stage(index) {
            None => return false,
            Some(Ok((_, cached))) if cached.stage >= usize::from(stage) => return true,
            Some(Ok(_)) if self.objects.bytes(index).is_none() => NotCachedReason::Unlisted,
            Some(Ok(_)) => NotCachedReason::AfterRandom,
            Some(Err(reason)) => reason,
        };
        self.counters.not_cached.count(reason);
        false
    }

    /// Runs `steps`, and caches the value of the cached stage.
    pub(super) fn run_and_cache(
        &self,
        index: usize,
        steps: Range<usize>,
        sample: Sample,
        context: &Context<'_>,
    ) -> pushdown::Result<Sample> {
        let Some(Ok((cache, stage))) = self.cached_stage(index) else {
            return self.run_steps(index, steps, sample, context);
        };
        let object = self.objects.object(index);
        let arrived = (steps.start == 0).then(|| sample.bytes());
        let stored = object.bytes.or(arrived);
        if let (Sample::Bytes(bytes), 0) = (&sample, steps.start) {
            // The object's head determines the sizes of its values: if the value is too large, run all steps at once.
            let kinds = self.pipeline.kinds_for(&Kind::of_object(arrived, bytes));
            let value = kinds.ok().and_then(|kinds| kinds.get(stage.stage)?.bytes());
            if value > stored {
                self.counters.not_cached.count(cache.too_large_reason());
                return self.run_steps(index, steps, sample, context);
            }
        }
        let value = self.run_steps(index, steps.start..stage.stage, sample, context)?;
        match cache.store(object, stored, stage, &value) {
            Ok(()) => add(&self.counters.cache_writes, 1),
            Err(reason) => self.counters.not_cached.count(reason),
        }
        self.run_steps(index, stage.stage..steps.end, value, context)
    }

    /// Limits the split to the cached stage, if its value is known to be no larger than the object: a later value could not
    /// be cached.
    pub(super) fn clamp_to_cached_stage(&self, index: usize, split: Split) -> Split {
        let Some(Ok((_, stage))) = self.cached_stage(index) else {
            return split;
        };
        let Ok(cached) = u8::try_from(stage.stage) else {
            return split;
        };
        match split {
            _ if !stage.is_known_to_fit(self.objects.bytes(index)) => split,
            Split::At(stage) => Split::At(stage.min(cached)),
            Split::Full | Split::Smallest => Split::At(cached),
        }
    }
}
