//! What samples cost, learned while they are read.
//!
//! The host times each group of steps that it runs, whichever stage a sample came at; the gateway tells of each sample
//! what all of its steps took. What steps take in relation to one another hardly changes, and is a mean of many samples:
//! of the host's seconds by step and class, and of the gateway's for each of the host's by stage. How fast either side is
//! just now is a pace, the same for all its steps, those too that it has not run for a while.

use super::{Candidate, Class, Lacking, mean::Mean, recent::Recent};
use crate::{Kind, Pipeline, Step};

/// Samples that a mean is made of.
const MEMORY: f64 = 256.0;
/// Samples from which on a mean is one to hold others against.
const ENOUGH: f64 = 6.0;
/// The most that is kept of what the gateway told first: it is looked through whenever the host tells of a sample, and a host
/// that cannot run models never tells of some steps.
const EARLY: usize = 64;

/// What is known of the samples of a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    stages: Vec<Stage>,
    classes: Vec<Samples>,
    /// Seconds of the gateway for one of the host, whichever the stage.
    ratio: Mean,
    host_pace: Recent,
    gateway_pace: Recent,
    /// What the gateway told of stages up to which nothing had run on the host yet.
    early: Vec<Told>,
}

/// The gateway took so many seconds for a sample of a class up to a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Told {
    class: usize,
    stage: usize,
    seconds: f64,
}

/// A stage from 1 on, behind its step.
#[derive(Debug, Clone, PartialEq)]
struct Stage {
    /// Bytes of a value, where they are known beforehand.
    bytes: Option<f64>,
    /// Multiplications of the step before it, where it is of a model.
    macs: f64,
    /// Whether the step before it and the one behind it run as one.
    inside: bool,
    /// Whether its step, or one behind it, is of a model.
    model: bool,
    /// Seconds of the gateway up to here, for one of the host.
    ratio: Mean,
}

/// Samples of about the same size.
#[derive(Debug, Clone, PartialEq)]
struct Samples {
    share: f64,
    /// Mean bytes of an object.
    stored: f64,
    /// Seconds of the host, by step.
    steps: Vec<Mean>,
    /// By stage from 1 on, where that is not known beforehand: bytes of what comes in answer,
    values: Vec<Mean>,
    /// and the part of the samples of which that is the object, its value having more bytes than it may have.
    stored_instead: Vec<Mean>,
}

impl Costs {
    /// Nothing known yet, of classes of which each is a share of the samples with so many bytes stored.
    pub fn new(pipeline: &Pipeline, classes: &[(f64, f64)]) -> Self {
        let steps = pipeline.steps();
        let stage = |(index, kind): (usize, &Kind)| Stage {
            bytes: kind.bytes().map(float),
            macs: match &steps[index] {
                Step::Model(layers) => float(layers.macs()),
                _ => 0.0,
            },
            inside: false,
            model: steps[index..].iter().any(|step| step.models().next().is_some()),
            ratio: Mean::default(),
        };
        let samples = |&(share, stored): &(f64, f64)| Samples {
            share,
            stored,
            steps: vec![Mean::default(); steps.len()],
            values: vec![Mean::default(); steps.len()],
            stored_instead: vec![Mean::default(); steps.len()],
        };
        Self {
            stages: pipeline.kinds()[1..].iter().enumerate().map(stage).collect(),
            classes: classes.iter().map(samples).collect(),
            ratio: Mean::default(),
            host_pace: Recent::default(),
            gateway_pace: Recent::default(),
            early: Vec::new(),
        }
    }

    /// A batch is done: paces that were told in the one before the last no longer count.
    pub fn next_batch(&mut self) {
        self.host_pace.next_batch();
        self.gateway_pace.next_batch();
    }

    /// Objects of a class have so many bytes stored on average: told where no listing does.
    pub fn stored(&mut self, class: usize, bytes: f64) {
        if let Some(samples) = self.classes.get_mut(class) {
            samples.stored = bytes;
        }
    }

    /// The host took so many seconds for a sample's steps from `first` on, so many that ran as one.
    pub fn host(&mut self, class: usize, first: usize, steps: usize, seconds: f64) {
        let known = self
            .classes
            .get(class)
            .and_then(|samples| samples.steps.get(first..first + steps));
        let expected: Option<f64> = known.and_then(|known| known.iter().map(|mean| mean.of(ENOUGH)).sum());
        if let Some(expected) = expected.filter(|expected| *expected > 0.0) {
            self.host_pace.add(seconds / expected);
        }
        let pace = self.host_pace.median().unwrap_or(1.0);
        let (Some(stages), Some(samples)) = (
            self.stages.get_mut(first..first + steps),
            self.classes.get_mut(class),
        ) else {
            return;
        };
        let means = &mut samples.steps[first..first + steps];
        let all: f64 = stages.iter().map(|stage| stage.macs).sum();
        for (index, (stage, mean)) in stages.iter_mut().zip(means).enumerate() {
            let last = index + 1 == steps;
            // Layers can be parted anywhere, in the ratio of their work; other steps that run as one cannot.
            let part = if all > 0.0 {
                stage.macs / all
            } else if last {
                1.0
            } else {
                0.0
            };
            stage.inside |= all == 0.0 && !last;
            mean.add(seconds * part / pace, MEMORY);
        }
        for Told {
            class,
            stage,
            seconds,
        } in std::mem::take(&mut self.early)
        {
            self.gateway(class, stage, seconds);
        }
    }

    /// The gateway took so many seconds for a sample up to `stage`.
    pub fn gateway(&mut self, class: usize, stage: usize, seconds: f64) {
        let Some(host) = self.until(class, stage) else {
            if self.early.len() < EARLY {
                self.early.push(Told {
                    class,
                    stage,
                    seconds,
                });
            }
            return;
        };
        if host <= 0.0 {
            return;
        }
        if let Some(expected) = self.stages[stage - 1].ratio.of(ENOUGH) {
            self.gateway_pace.add(seconds / host / expected);
        }
        let ratio = seconds / host / self.gateway_pace.median().unwrap_or(1.0);
        self.ratio.add(ratio, MEMORY);
        self.stages[stage - 1].ratio.add(ratio, MEMORY);
    }

    /// A value of `stage` was asked for, and so many bytes came: those of the object where the value has more than it may have.
    /// A stage whose bytes are not known beforehand is planned with once this was told of it.
    pub fn value(&mut self, class: usize, stage: usize, bytes: f64, stored_instead: bool) {
        let Some(samples) = self.classes.get_mut(class) else {
            return;
        };
        let Some(place) = stage.checked_sub(1).filter(|place| *place < samples.values.len()) else {
            return;
        };
        samples.values[place].add(bytes, MEMORY);
        samples.stored_instead[place].add(if stored_instead { 1.0 } else { 0.0 }, MEMORY);
    }

    /// The classes with every way that can be planned; `None` while the two sides have not been seen at work.
    pub fn classes(&self, lacking: &Lacking) -> Option<Vec<Class>> {
        let all = self.stages.len();
        let told = |samples: &Samples| samples.values.iter().any(|mean| mean.get().is_some());
        if self.ratio.get().is_none() && !self.classes.iter().any(told) {
            return None;
        }
        let host_pace = self.host_pace.median().unwrap_or(1.0);
        let gateway_pace = self.gateway_pace.median().unwrap_or(1.0);
        let weights = |rest: &[Stage]| {
            if rest.iter().any(|stage| stage.model) {
                lacking.weights
            } else {
                0.0
            }
        };
        let loading = |stage: usize| lacking.loading.get(stage).copied().unwrap_or_default();
        let class = |(index, samples): (usize, &Samples)| {
            let total = self.until(index, all)?;
            let mut candidates = vec![Candidate {
                stage: 0,
                bytes: samples.stored,
                gateway_seconds: 0.0,
                host_seconds: total * host_pace,
                weights: weights(&self.stages),
                loading: loading(0),
            }];
            for (place, stage) in self.stages.iter().enumerate() {
                let told = samples.values[place].get();
                let (Some(bytes), false) = (stage.bytes.or(told), stage.inside) else {
                    continue;
                };
                // The gateway has sent objects in place of all values that were asked of it, and has run nothing yet.
                let Some(ratio) = self.ratio_of(place + 1) else {
                    continue;
                };
                let done = self.until(index, place + 1)?;
                let again = samples.stored_instead[place].get().unwrap_or_default();
                candidates.push(Candidate {
                    stage: place + 1,
                    bytes,
                    gateway_seconds: done * ratio * gateway_pace,
                    host_seconds: (total - done * (1.0 - again)) * host_pace,
                    weights: weights(&self.stages[place + 1..]),
                    loading: loading(place + 1),
                });
            }
            Some(Class {
                share: samples.share,
                candidates,
            })
        };
        self.classes.iter().enumerate().map(class).collect()
    }

    /// Seconds of the gateway for one of the host, up to `stage`.
    fn ratio_of(&self, stage: usize) -> Option<f64> {
        let own = self.stages.get(stage.checked_sub(1)?)?.ratio.of(ENOUGH);
        own.or_else(|| self.ratio.get())
    }

    /// Seconds of the host for the steps before `stage`.
    fn until(&self, class: usize, stage: usize) -> Option<f64> {
        (0..stage).map(|step| self.step(class, step)).sum()
    }

    /// Seconds of the host for a step; from the other classes where this one has not been seen.
    fn step(&self, class: usize, step: usize) -> Option<f64> {
        let own = self.classes.get(class)?.steps.get(step)?.get();
        own.or_else(|| {
            let others: Vec<f64> = self
                .classes
                .iter()
                .filter_map(|class| class.steps[step].get())
                .collect();
            (!others.is_empty()).then(|| others.iter().sum::<f64>() / float(others.len() as u64))
        })
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "sizes and counts, of which a few digits matter"
)]
pub(crate) const fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests;
