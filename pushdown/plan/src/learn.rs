//! Learns the costs of samples while they are read.
//!
//! The host times each group of steps that it runs, at any stage; the gateway reports the total time of its steps per
//! sample. The relative costs of steps hardly change, so they are means over many samples: host seconds by step and class,
//! and the ratio of gateway to host seconds by stage. The current speed of each tier is its pace: one factor for all steps
//! of the tier, including those that it has not run for a while.

mod cropped;

use super::{
    CacheHits, Candidate, Class, SetupCosts, Stage, mean::Mean, recent_median::RecentMedian,
    result_cache::ResultCache,
};
pub use cropped::CropAnswer;
use cropped::CroppedCosts;
use pushdown_core::float;

/// Samples over which a mean is taken.
const MEMORY_SAMPLES: f64 = 256.0;
/// Samples from which on a mean serves as a reference for others.
const MIN_REFERENCE_SAMPLES: f64 = 6.0;
/// Upper bound of the gateway observations kept for later. All of them are visited at each host observation, and a host that
/// cannot run models never observes some steps.
const MAX_EARLY_OBSERVATIONS: usize = 64;

/// What the text of a pipeline says about the cost of one of its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepCost {
    /// Bytes of the output, if the pipeline determines them.
    pub output_bytes: Option<u64>,
    /// Multiply-accumulate operations for one sample; 0 for steps other than `model`.
    pub macs: u64,
    /// Whether the step runs a model.
    pub needs_model: bool,
}

/// The learned costs of a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    stages: Vec<StageCosts>,
    classes: Vec<ClassCosts>,
    /// Ratio of gateway to host seconds over all stages.
    gateway_ratio: Mean,
    host_pace: RecentMedian,
    gateway_pace: RecentMedian,
    /// The expected ratio of the blocks of a cropped JPEG to those of its object; `None` if the reader asks for none.
    cropped_share: Option<f64>,
    /// Gateway observations of stages whose steps the host has not run yet.
    early: Vec<GatewayObservation>,
    /// What the gateway does not compute again.
    pub(super) result_cache: ResultCache,
}

/// Gateway seconds for a sample of a class up to a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
struct GatewayObservation {
    class: usize,
    stage: usize,
    seconds: f64,
}

/// A stage from 1 on. Its step is the last one applied.
#[derive(Debug, Clone, PartialEq)]
struct StageCosts {
    /// Bytes of a value, if the pipeline determines them.
    bytes: Option<f64>,
    /// Multiply-accumulate operations of its step; 0 for steps other than `model`.
    macs: f64,
    /// Whether its step and the next one run as one, so that the pipeline cannot be split between them.
    is_fused: bool,
    /// Whether its step or a later one runs a model.
    needs_model: bool,
    /// Ratio of gateway to host seconds up to this stage.
    gateway_ratio: Mean,
}

/// Samples of about the same size.
#[derive(Debug, Clone, PartialEq)]
struct ClassCosts {
    fraction: f64,
    /// Mean bytes of an object.
    object_bytes: f64,
    /// Host seconds by step.
    step_seconds: Vec<Mean>,
    /// Bytes of answers by stage from 1 on, for stages whose size the pipeline does not determine.
    value_bytes: Vec<Mean>,
    /// Ratio of answers by stage from 1 on that are the object itself, since the value exceeds its size limit.
    object_ratio: Vec<Mean>,
    cropped: CroppedCosts,
}

impl Costs {
    /// Costs without observations, of a pipeline with these steps. `classes` has the fraction and the mean object bytes of each
    /// class.
    pub fn new(steps: &[StepCost], classes: &[(f64, f64)]) -> Self {
        let stage = |(index, step): (usize, &StepCost)| StageCosts {
            bytes: step.output_bytes.map(float),
            macs: float(step.macs),
            is_fused: false,
            needs_model: steps[index..].iter().any(|step| step.needs_model),
            gateway_ratio: Mean::default(),
        };
        let class = |&(fraction, object_bytes): &(f64, f64)| ClassCosts {
            fraction,
            object_bytes,
            step_seconds: vec![Mean::default(); steps.len()],
            value_bytes: vec![Mean::default(); steps.len()],
            object_ratio: vec![Mean::default(); steps.len()],
            cropped: CroppedCosts::default(),
        };
        Self {
            stages: steps.iter().enumerate().map(stage).collect(),
            classes: classes.iter().map(class).collect(),
            gateway_ratio: Mean::default(),
            host_pace: RecentMedian::default(),
            gateway_pace: RecentMedian::default(),
            cropped_share: None,
            early: Vec::new(),
            result_cache: ResultCache::new(steps.len()),
        }
    }

    /// Ends a batch: paces observed in the batch before the last no longer count.
    pub fn next_batch(&mut self) {
        self.host_pace.next_batch();
        self.gateway_pace.next_batch();
    }

    /// Sets the mean object bytes of a class, for data sets without a listing.
    pub fn set_object_bytes(&mut self, class: usize, bytes: f64) {
        if let Some(class) = self.classes.get_mut(class) {
            class.object_bytes = bytes;
        }
    }

    /// Records the seconds that the host took for `steps` steps of a sample from `first` on, which ran as one.
    pub fn observe_host_seconds(&mut self, class: usize, first: usize, steps: usize, seconds: f64) {
        let known = self
            .classes
            .get(class)
            .and_then(|class| class.step_seconds.get(first..first + steps));
        let reference: Option<f64> = known.and_then(|known| {
            known
                .iter()
                .map(|mean| mean.get_from(MIN_REFERENCE_SAMPLES))
                .sum()
        });
        if let Some(reference) = reference.filter(|reference| *reference > 0.0) {
            self.host_pace.add(seconds / reference);
        }
        let pace = self.host_pace.median().unwrap_or(1.0);
        let (Some(stages), Some(class)) = (
            self.stages.get_mut(first..first + steps),
            self.classes.get_mut(class),
        ) else {
            return;
        };
        let means = &mut class.step_seconds[first..first + steps];
        let total_macs: f64 = stages.iter().map(|stage| stage.macs).sum();
        for (index, (stage, mean)) in stages.iter_mut().zip(means).enumerate() {
            let is_last = index + 1 == steps;
            // A model can be split between any layers, in the ratio of their work; other fused steps cannot.
            let part = if total_macs > 0.0 {
                stage.macs / total_macs
            } else if is_last {
                1.0
            } else {
                0.0
            };
            stage.is_fused |= total_macs == 0.0 && !is_last;
            mean.add(seconds * part / pace, MEMORY_SAMPLES);
        }
        for early in std::mem::take(&mut self.early) {
            self.observe_gateway_seconds(early.class, early.stage, early.seconds);
        }
    }

    /// Records the seconds that the gateway took for a sample up to `stage`, all steps of which it ran.
    pub fn observe_gateway_seconds(&mut self, class: usize, stage: usize, seconds: f64) {
        let Some(host_seconds) = self.host_seconds(class, stage) else {
            if self.early.len() < MAX_EARLY_OBSERVATIONS {
                self.early.push(GatewayObservation {
                    class,
                    stage,
                    seconds,
                });
            }
            return;
        };
        if host_seconds <= 0.0 {
            return;
        }
        let stage_ratio = &mut self.stages[stage - 1].gateway_ratio;
        if let Some(reference) = stage_ratio.get_from(MIN_REFERENCE_SAMPLES) {
            self.gateway_pace.add(seconds / host_seconds / reference);
        }
        let ratio = seconds / host_seconds / self.gateway_pace.median().unwrap_or(1.0);
        stage_ratio.add(ratio, MEMORY_SAMPLES);
        self.gateway_ratio.add(ratio, MEMORY_SAMPLES);
    }

    /// Records the bytes of an answer to a request for a value of `stage`. `is_object`: the gateway sent the object, since the
    /// value exceeds its size limit. A stage whose size the pipeline does not determine is a candidate only after the first of
    /// these observations.
    pub fn observe_value_bytes(&mut self, class: usize, stage: usize, bytes: f64, is_object: bool) {
        let Some(class) = self.classes.get_mut(class) else {
            return;
        };
        let Some(index) = stage
            .checked_sub(1)
            .filter(|index| *index < class.value_bytes.len())
        else {
            return;
        };
        class.value_bytes[index].add(bytes, MEMORY_SAMPLES);
        class.object_ratio[index].add(if is_object { 1.0 } else { 0.0 }, MEMORY_SAMPLES);
    }

    /// The classes with all possible splits; `None` until both tiers have been observed. Each size has one class for each of
    /// the [`sides`](Self::sides) of its objects, in this order.
    pub fn classes(&self, setup: &SetupCosts) -> Option<Vec<Class>> {
        let has_answers = |class: &ClassCosts| {
            class.cropped.is_observed() || class.value_bytes.iter().any(|mean| mean.get().is_some())
        };
        if self.gateway_ratio.get().is_none() && !self.classes.iter().any(has_answers) {
            return None;
        }
        let sides = self.sides();
        let mut classes = Vec::new();
        for (index, costs) in self.classes.iter().enumerate() {
            let candidates = self.candidates(index, setup)?;
            let mut lower = 0.0;
            for upper in &sides {
                let with_hits = |split: &Candidate| Candidate {
                    hits: self.result_cache.hits(split.stage.steps(), lower, *upper),
                    ..*split
                };
                classes.push(Class {
                    fraction: costs.fraction * (upper - lower),
                    candidates: candidates.iter().map(with_hits).collect(),
                });
                lower = *upper;
            }
        }
        Some(classes)
    }

    /// The sides of a size class: upper bounds of the hashes of its objects as fractions of all hashes, in ascending order. The
    /// objects of a side are cached at the same stages. One side without an announcement of the gateway.
    pub fn sides(&self) -> Vec<f64> {
        self.result_cache.sides()
    }

    /// The possible splits of a class.
    fn candidates(&self, class: usize, setup: &SetupCosts) -> Option<Vec<Candidate>> {
        let costs = &self.classes[class];
        let host_pace = self.host_pace.median().unwrap_or(1.0);
        let gateway_pace = self.gateway_pace.median().unwrap_or(1.0);
        let weights_bytes = |suffix: &[StageCosts]| {
            if suffix.iter().any(|stage| stage.needs_model) {
                setup.weights_bytes
            } else {
                0.0
            }
        };
        let loading = |stage: usize| setup.loading.get(stage).copied().unwrap_or_default();
        let total_seconds = self.host_seconds(class, self.stages.len())?;
        let plain = Candidate {
            stage: Stage::Object,
            bytes: costs.object_bytes,
            gateway_seconds: 0.0,
            host_seconds: total_seconds * host_pace,
            weights_bytes: weights_bytes(&self.stages),
            loading: loading(0),
            hits: CacheHits::default(),
        };
        let mut candidates = vec![plain];
        candidates.extend(self.cropped_candidate(class, &plain));
        for (index, stage) in self.stages.iter().enumerate() {
            let observed_bytes = costs.value_bytes[index].get();
            let (Some(bytes), false) = (stage.bytes.or(observed_bytes), stage.is_fused) else {
                continue;
            };
            // `None` if the gateway has answered all requests with objects so far, without running a step. If it has cached all
            // values, it is assumed to be as fast as the host.
            let cached = self.result_cache.has_hits(index + 1).then_some(1.0);
            let Some(ratio) = self.gateway_ratio(index + 1).or(cached) else {
                continue;
            };
            let prefix_seconds = self.host_seconds(class, index + 1)?;
            let object_ratio = costs.object_ratio[index].get().unwrap_or_default();
            candidates.push(Candidate {
                stage: Stage::After(index + 1),
                bytes,
                gateway_seconds: prefix_seconds * ratio * gateway_pace,
                host_seconds: (total_seconds - prefix_seconds * (1.0 - object_ratio)) * host_pace,
                weights_bytes: weights_bytes(&self.stages[index + 1..]),
                loading: loading(index + 1),
                hits: CacheHits::default(),
            });
        }
        Some(candidates)
    }

    /// Ratio of gateway to host seconds up to `stage`; the ratio of all stages if this one has few observations.
    fn gateway_ratio(&self, stage: usize) -> Option<f64> {
        let stage = self.stages.get(stage.checked_sub(1)?)?;
        let stage_ratio = stage.gateway_ratio.get_from(MIN_REFERENCE_SAMPLES);
        stage_ratio.or_else(|| self.gateway_ratio.get())
    }

    /// The first stage between steps that do not run as one, at which the image is decoded.
    fn first_stage(&self) -> usize {
        let first = self.stages.iter().position(|stage| !stage.is_fused);
        first.map_or(self.stages.len(), |index| index + 1)
    }

    /// Host seconds of the steps before `stage`.
    fn host_seconds(&self, class: usize, stage: usize) -> Option<f64> {
        (0..stage).map(|step| self.step_seconds(class, step)).sum()
    }

    /// Host seconds of a step; the mean of the other classes if this one has no observations.
    fn step_seconds(&self, class: usize, step: usize) -> Option<f64> {
        let observed = self.classes.get(class)?.step_seconds.get(step)?.get();
        observed.or_else(|| {
            let others: Vec<f64> = self
                .classes
                .iter()
                .filter_map(|class| class.step_seconds[step].get())
                .collect();
            (!others.is_empty()).then(|| others.iter().sum::<f64>() / float(others.len() as u64))
        })
    }
}

#[cfg(test)]
mod tests;
