//! Learns what the result cache of a gateway serves.
//!
//! The gateway caches a fixed part of a data set: the objects whose hash is below a threshold. It announces the threshold
//! of each stage as a ratio, so that the side of an object, cached or not, is known before the request. How many requests
//! were hits is observed on either side.

use super::{
    cache_hits::{ASSUMED_HIT_SECONDS, CacheHits},
    mean::Mean,
};

/// Samples over which the ratio of hits is taken. A batch displaces most of it, so that a ratio which is out of date is corrected within
/// two batches.
const MEMORY_SAMPLES: f64 = 32.0;
/// The most sides of a size class. Each has its own fractions in a plan.
const MAX_SIDES: usize = 4;
/// Sides with a smaller fraction of the samples are not told apart.
const MIN_SIDE_FRACTION: f64 = 0.02;

/// What is known of the result cache, by stage.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ResultCache {
    /// By stage, from 1 on.
    stages: Vec<StageHits>,
}

/// Observations of requests at one stage.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct StageHits {
    /// Objects whose hash is below this ratio of all hashes are cached; 0 without an announcement.
    announced_ratio: f64,
    /// Ratio of hits among the objects that the announcement covers.
    covered: Mean,
    /// Ratio of hits among the other objects. Other readers may request them at the same time.
    other: Mean,
    /// Gateway seconds of a hit.
    seconds: Mean,
    /// Covered objects that were received in this epoch.
    covered_samples: f64,
}

impl ResultCache {
    /// A cache without observations, for a pipeline of `steps` steps.
    pub(super) fn new(steps: usize) -> Self {
        Self {
            stages: vec![StageHits::default(); steps],
        }
    }

    fn stage(&self, stage: usize) -> Option<&StageHits> {
        self.stages.get(stage.checked_sub(1)?)
    }

    /// Records the ratio of each stage that the gateway announced. Stages that are not among them have none.
    pub(super) fn announce(&mut self, ratios: impl IntoIterator<Item = (usize, f64)>) {
        for stage in &mut self.stages {
            stage.announced_ratio = 0.0;
        }
        for (stage, ratio) in ratios {
            let known = stage.checked_sub(1).and_then(|index| self.stages.get_mut(index));
            if let Some(known) = known.filter(|_| ratio.is_finite()) {
                known.announced_ratio = ratio.clamp(0.0, 1.0);
            }
        }
    }

    /// Records the value of an object at a stage: the gateway seconds of a hit, or `None` if all steps ran.
    pub(super) fn observe(&mut self, stage: usize, hash_fraction: f64, hit_seconds: Option<f64>) {
        let Some(known) = stage.checked_sub(1).and_then(|index| self.stages.get_mut(index)) else {
            return;
        };
        let hit = if hit_seconds.is_some() { 1.0 } else { 0.0 };
        if hash_fraction < known.announced_ratio {
            known.covered.add(hit, MEMORY_SAMPLES);
            known.covered_samples += 1.0;
        } else {
            known.other.add(hit, MEMORY_SAMPLES);
        }
        if let Some(seconds) = hit_seconds {
            known.seconds.add(seconds, MEMORY_SAMPLES);
        }
    }

    /// Ends an epoch of `samples` samples. The covered objects that it has requested at a stage are hits from now on, whatever
    /// their ratio was.
    pub(super) fn next_epoch(&mut self, samples: f64) {
        for stage in &mut self.stages {
            let covered_samples = std::mem::take(&mut stage.covered_samples);
            let requested_ratio = covered_samples / (samples * stage.announced_ratio);
            if covered_samples > 0.0 && requested_ratio.is_finite() {
                let observed = stage.covered.get().unwrap_or_default();
                stage.covered.reset(observed.max(requested_ratio.min(1.0)));
            }
        }
    }

    /// Whether a hit was observed at a stage.
    pub(super) fn has_hits(&self, stage: usize) -> bool {
        self.stage(stage)
            .is_some_and(|stage| stage.seconds.get().is_some())
    }

    /// The upper bounds of the hash fractions of each side, in ascending order; the last one is 1. Objects of one side are cached at the
    /// same stages.
    pub(super) fn sides(&self) -> Vec<f64> {
        let mut ratios: Vec<f64> = self.stages.iter().map(|stage| stage.announced_ratio).collect();
        ratios.sort_by(f64::total_cmp);
        let mut sides: Vec<f64> = Vec::new();
        for ratio in ratios {
            let fraction = ratio - sides.last().copied().unwrap_or_default();
            if fraction >= MIN_SIDE_FRACTION
                && ratio <= 1.0 - MIN_SIDE_FRACTION
                && sides.len() + 1 < MAX_SIDES
            {
                sides.push(ratio);
            }
        }
        sides.push(1.0);
        sides
    }

    /// The hits at a stage among objects with hash fractions from `lower` to `upper`.
    pub(super) fn hits(&self, stage: usize, lower: f64, upper: f64) -> CacheHits {
        let Some(known) = self.stage(stage) else {
            return CacheHits::default();
        };
        let covered_ratio = ((known.announced_ratio - lower) / (upper - lower)).clamp(0.0, 1.0);
        // What the gateway announces counts until this reader has requested values of the stage.
        let covered_hits = known.covered.get().or_else(|| known.other.get()).unwrap_or(1.0);
        let other_hits = known.other.get().unwrap_or(0.0);
        let ratio = covered_ratio * covered_hits + (1.0 - covered_ratio) * other_hits;
        CacheHits {
            ratio,
            later_ratio: ratio.max(covered_ratio),
            seconds: known.seconds.get().unwrap_or(ASSUMED_HIT_SECONDS),
        }
    }
}

#[cfg(test)]
mod tests;
