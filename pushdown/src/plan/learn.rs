//! What samples cost, learned while they are read.
//!
//! The host times each group of steps that it runs, whichever stage a sample came at; the gateway tells of each sample
//! what all of its steps took. What steps take in relation to one another hardly changes, and is a mean of many samples:
//! of the host's seconds by step and class, and of the gateway's for each of the host's by stage. How fast either side is
//! just now is a pace, the same for all its steps, those too that it has not run for a while.

use super::{Candidate, Class, mean::Mean, recent::Recent};
use crate::{Kind, Pipeline, Step};

/// Samples that a mean is made of.
const MEMORY: f64 = 256.0;
/// Samples from which on a mean is one to hold others against.
const ENOUGH: f64 = 6.0;
/// The most that is kept of what the gateway told first: it is looked through whenever the host tells of a sample, and a host
/// that cannot run networks never tells of some steps.
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
    /// Multiplications of the step before it, where it is of a network.
    macs: f64,
    /// Whether the step before it and the one behind it run as one.
    inside: bool,
    /// Whether its step, or one behind it, is of a network.
    network: bool,
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
            network: steps[index..].iter().any(|step| step.networks().next().is_some()),
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

    /// The classes with every way that can be planned, where `weights` bytes are still to be fetched to run networks on
    /// the host; `None` while the two sides have not been seen at work.
    pub fn classes(&self, weights: f64) -> Option<Vec<Class>> {
        let all = self.stages.len();
        let told = |samples: &Samples| samples.values.iter().any(|mean| mean.get().is_some());
        if self.ratio.get().is_none() && !self.classes.iter().any(told) {
            return None;
        }
        let host_pace = self.host_pace.median().unwrap_or(1.0);
        let gateway_pace = self.gateway_pace.median().unwrap_or(1.0);
        let class = |(index, samples): (usize, &Samples)| {
            let total = self.until(index, all)?;
            let mut candidates = vec![Candidate {
                stage: 0,
                bytes: samples.stored,
                gateway_seconds: 0.0,
                host_seconds: total * host_pace,
                weights: if self.stages.iter().any(|stage| stage.network) {
                    weights
                } else {
                    0.0
                },
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
                let rest = self.stages.get(place + 1);
                candidates.push(Candidate {
                    stage: place + 1,
                    bytes,
                    gateway_seconds: done * ratio * gateway_pace,
                    host_seconds: (total - done * (1.0 - again)) * host_pace,
                    weights: if rest.is_some_and(|rest| rest.network) {
                        weights
                    } else {
                        0.0
                    },
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
mod tests {
    use super::*;

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found}, expected {expected}");
    }

    #[test]
    fn both_sides_come_from_what_each_tells() {
        let pipeline = Pipeline::parse("decode | resize(8, 8) | center_crop(4) | to_float").unwrap();
        let mut costs = Costs::new(&pipeline, &[(0.5, 1_000.0), (0.5, 10_000.0)]);
        assert_eq!(costs.classes(0.0), None);
        // As one, of the large ones; of the small ones nothing yet.
        costs.host(1, 0, 3, 0.008);
        costs.host(1, 3, 1, 0.002);
        assert_eq!(costs.classes(0.0), None, "nothing is known of the gateway");
        costs.gateway(1, 4, 0.005);
        costs.gateway(1, 3, 0.004);
        let classes = costs.classes(1e6).unwrap();
        let large = &classes[1].candidates;
        let stages: Vec<_> = large.iter().map(|way| way.stage).collect();
        assert_eq!(stages, [0, 3, 4], "no split within steps that run as one");
        near(large[0].host_seconds, 0.010);
        near(large[1].gateway_seconds, 0.004);
        near(large[1].host_seconds, 0.002);
        near(large[2].gateway_seconds, 0.005);
        near(large[2].bytes, 4.0 * 4.0 * 3.0 * 4.0);
        near(large[0].weights, 0.0);
        near(classes[0].candidates[0].bytes, 1_000.0);
        near(classes[0].candidates[0].host_seconds, 0.010);
        costs.stored(0, 2_000.0);
        near(costs.classes(1e6).unwrap()[0].candidates[0].bytes, 2_000.0);
        costs.stored(0, 1_000.0);
        // Nonsense is left out.
        costs.stored(7, 1.0);
        costs.host(7, 0, 1, 1.0);
        costs.host(0, 3, 9, 1.0);
        costs.gateway(1, 9, 1.0);
        costs.gateway(1, 4, f64::INFINITY);
        assert_eq!(costs.classes(1e6).unwrap(), classes);
    }

    /// A host that is busy with weights, or waits for its first object, is behind a gateway that is not.
    #[test]
    fn what_the_gateway_tells_first_is_not_lost() {
        let pipeline = Pipeline::parse("decode | resize(8, 8) | to_float").unwrap();
        let mut costs = Costs::new(&pipeline, &[(0.5, 1_000.0), (0.5, 10_000.0)]);
        for _ in 0..2 * EARLY {
            costs.gateway(1, 3, 0.030);
        }
        assert_eq!(costs.early.len(), EARLY);
        assert_eq!(costs.classes(0.0), None, "nothing is known of the host");
        costs.host(0, 0, 2, 0.010);
        assert_eq!(costs.classes(0.0), None, "nothing is known of the last step");
        costs.host(0, 2, 1, 0.005);
        let classes = costs.classes(0.0).unwrap();
        near(classes[1].candidates[0].host_seconds, 0.015);
        near(classes[1].candidates[2].gateway_seconds, 0.030);
        assert!(costs.early.is_empty());
    }

    #[test]
    fn values_of_unknown_sizes_are_planned_with_once_some_came() {
        let pipeline = Pipeline::parse("decode | resize(short=64) | encode(jpeg)").unwrap();
        let mut costs = Costs::new(&pipeline, &[(0.5, 1_000.0), (0.5, 10_000.0)]);
        for step in 0..3 {
            costs.host(0, step, 1, 0.001);
        }
        costs.gateway(0, 3, 0.003);
        let stages = |costs: &Costs| -> Vec<Vec<usize>> {
            let classes = costs.classes(0.0).unwrap();
            let stages = |class: &Class| class.candidates.iter().map(|way| way.stage).collect();
            classes.iter().map(stages).collect()
        };
        assert_eq!(stages(&costs), [[0], [0]]);
        costs.value(1, 3, 2_000.0, false);
        assert_eq!(stages(&costs), [vec![0], vec![0, 3]], "of each class by itself");
        costs.value(0, 3, 500.0, false);
        costs.value(0, 3, 1_000.0, true);
        let way = costs.classes(0.0).unwrap()[0].candidates[1];
        near(way.bytes, 750.0);
        near(way.gateway_seconds, 0.003);
        // Of every other one all steps run here.
        near(way.host_seconds, 0.0015);
        // Nonsense is left out.
        for (class, stage) in [(7, 3), (0, 0), (0, 9)] {
            costs.value(class, stage, 1.0, false);
        }
        near(costs.classes(0.0).unwrap()[0].candidates[1].bytes, 750.0);
        // A gateway that sends nothing but objects leaves plain reading.
        let mut costs = Costs::new(&pipeline, &[(1.0, 1_000.0)]);
        costs.host(0, 0, 3, 0.003);
        assert_eq!(costs.classes(0.0), None);
        costs.value(0, 3, 1_000.0, true);
        assert_eq!(stages(&costs), [[0]]);
    }

    #[test]
    fn a_stage_that_is_slower_there_than_others_is_told_apart() {
        let pipeline = Pipeline::parse("decode | resize(8, 8) | to_float").unwrap();
        let mut costs = Costs::new(&pipeline, &[(1.0, 1_000.0)]);
        for step in 0..3 {
            costs.host(0, step, 1, 0.001);
        }
        for _ in 0..20 {
            costs.gateway(0, 2, 0.002);
            costs.gateway(0, 3, 0.030);
        }
        let classes = costs.classes(0.0).unwrap();
        near(classes[0].candidates[1].gateway_seconds, 0.002);
        near(classes[0].candidates[2].gateway_seconds, 0.030);
    }
}
