//! The route of each object.

use std::sync::Arc;

use pushdown::plan::{Class, Decision, Plan};

use super::{float, plan_context::PlanContext};
use crate::{
    epoch::order::SampleRef,
    planning::exploration::{MAX_TRIAL_STRIDE, StageFractions, TRIAL_STRIDE, trial_number},
};

/// The stage up to which the gateway runs each object of a batch.
#[derive(Debug, Clone)]
pub(crate) struct Assignment {
    context: Arc<PlanContext>,
    /// Assumed bytes of an object of unknown size.
    pub(super) unlisted_bytes: u64,
    routes: Routes,
    /// The sides of each size class, by the upper bounds of the hashes of their objects; see [`Decision::sides`].
    sides: Vec<f64>,
    /// The stages that trials use; 0 is a plain read.
    trial_stages: Vec<u8>,
    /// One object in this many is a trial.
    stride: u64,
}

#[derive(Debug, Clone)]
enum Routes {
    /// Nothing is known yet: objects are read plainly and pushed down in turn.
    Unknown,
    /// Nothing is known except that the gateway finished first: all objects are pushed down.
    AllPushed,
    /// The planned stages of each class: a size and a side.
    Planned(Vec<StageFractions>),
}

impl Assignment {
    pub(super) fn unknown(context: Arc<PlanContext>, unlisted_bytes: u64) -> Self {
        Self {
            unlisted_bytes,
            routes: Routes::Unknown,
            sides: vec![1.0],
            trial_stages: context.trial_stages.clone(),
            stride: TRIAL_STRIDE,
            context,
        }
    }

    /// Whether nothing is known yet.
    pub(crate) const fn is_unknown(&self) -> bool {
        matches!(self.routes, Routes::Unknown)
    }

    /// While nothing is known: the routes of objects not yet begun once everything pushed down has arrived.
    pub(crate) fn with_all_pushed(&self) -> Option<Self> {
        self.is_unknown().then(|| Self {
            routes: Routes::AllPushed,
            ..self.clone()
        })
    }

    /// The routes of `plan`, made from `decision`.
    pub(super) fn planned(
        context: Arc<PlanContext>,
        unlisted_bytes: u64,
        decision: &Decision,
        plan: &Plan,
    ) -> Self {
        let trial_stages = trial_stages(&context, decision, plan);
        let stride = trial_stride(&trial_stages, decision, plan);
        let plain_trials = if trial_stages.contains(&0) {
            1.0 / float(stride * trial_stages.len() as u64)
        } else {
            0.0
        };
        let classes = decision.classes.iter().zip(&plan.fractions);
        let routes = classes.map(|(class, fractions)| class_routes(class, fractions, plain_trials));
        Self {
            context,
            unlisted_bytes,
            routes: Routes::Planned(routes.collect()),
            sides: decision.sides.clone(),
            trial_stages,
            stride,
        }
    }

    /// The stage of an object. It follows from its size; objects of one size are spread so that any part of the data set has
    /// the fractions of the plan. Trials have another stage. Stage 0 if the value could exceed its maximum.
    ///
    /// `hash_fraction` is called if the gateway caches a part of the objects: it returns the hash of this one as a fraction of
    /// all hashes.
    pub(crate) fn stage(
        &self,
        sample: SampleRef,
        stored: Option<u64>,
        hash_fraction: impl FnOnce() -> f64,
    ) -> u8 {
        let context = &self.context;
        let fits = |stage: u8| context.fits(stage, stored.unwrap_or(self.unlisted_bytes));
        let trial_stage = |number: u64| {
            let fitting = self.trial_stages.iter().copied();
            let fitting: Vec<u8> = fitting.filter(|stage| fits(*stage)).collect();
            let number = usize::try_from(number).unwrap_or_default();
            (!fitting.is_empty()).then(|| fitting[number % fitting.len()])
        };
        match &self.routes {
            Routes::Unknown if sample.position.is_multiple_of(2) => 0,
            Routes::Unknown | Routes::AllPushed => trial_stage(sample.position / 2).unwrap_or_default(),
            Routes::Planned(routes) => {
                let planned = || {
                    let class = context.class(stored) * self.sides.len() + self.side(hash_fraction);
                    // Objects of a class are dealt out by their index.
                    let stage = routes
                        .get(class)
                        .map(|of_class| of_class.stage(sample.index as u64));
                    stage_number(stage.unwrap_or_default())
                };
                // Trials are spread evenly over the positions of any rank.
                let trial = trial_number(sample.position, self.stride);
                let stage = trial.and_then(trial_stage).unwrap_or_else(planned);
                if fits(stage) { stage } else { 0 }
            }
        }
    }

    /// The number of an object's side.
    fn side(&self, hash_fraction: impl FnOnce() -> f64) -> usize {
        let last = self.sides.len().saturating_sub(1);
        if last == 0 {
            return 0;
        }
        let hash_fraction = hash_fraction();
        let side = self.sides.iter().position(|upper| hash_fraction < *upper);
        side.unwrap_or(last)
    }

    /// Whether the value of an object at a stage is within its maximum, or can be kept within it.
    pub(crate) fn fits(&self, stage: u8, stored: Option<u64>) -> bool {
        self.context.fits(stage, stored.unwrap_or(self.unlisted_bytes))
    }

    /// The most bytes that the value of an object may have at a stage, if they are not known in advance.
    pub(crate) fn max_value_bytes(&self, stage: u8, stored: Option<u64>) -> Option<u64> {
        self.context
            .max_value_bytes(stage, stored.unwrap_or(self.unlisted_bytes))
    }

    /// The first stage at which any object arrives: this host runs the steps after it.
    pub(super) fn first_stage(&self) -> usize {
        match &self.routes {
            Routes::Unknown | Routes::AllPushed => 0,
            Routes::Planned(routes) => {
                let stages = routes.iter().filter_map(StageFractions::first_stage);
                stages.min().unwrap_or_default()
            }
        }
    }
}

/// The stages that trials use. Without those for which the host lacks weights, since a trial would download them, and
/// without those that the plan uses enough in every class, since they would get more than their best fraction.
fn trial_stages(context: &PlanContext, decision: &Decision, plan: &Plan) -> Vec<u8> {
    let enough = 1.0 / float(TRIAL_STRIDE);
    let is_planned = |stage: u8| {
        decision
            .classes
            .iter()
            .zip(&plan.fractions)
            .all(|(class, fractions)| {
                let taken = class.candidates.iter().zip(fractions);
                let taken = taken.filter(|(candidate, _)| candidate.stage == usize::from(stage));
                taken.map(|(_, fraction)| fraction).sum::<f64>() >= enough * class.fraction
            })
    };
    let lacks_weights = |stage: u8| {
        let candidates = decision.classes.iter().flat_map(|class| &class.candidates);
        let mut at_stage = candidates.filter(|candidate| candidate.stage == usize::from(stage));
        at_stage.any(|candidate| candidate.weights_bytes > 0.0)
    };
    std::iter::once(0)
        .chain(context.trial_stages.iter().copied())
        .filter(|stage| !is_planned(*stage) && !lacks_weights(*stage))
        .collect()
}

/// The stride of trials: longer if the plan has too little time for them.
fn trial_stride(trial_stages: &[u8], decision: &Decision, plan: &Plan) -> u64 {
    let rooms = trial_stages
        .iter()
        .map(|stage| decision.trial_fraction(plan, usize::from(*stage)));
    let room = rooms.fold(1.0, f64::min);
    let mut stride = TRIAL_STRIDE;
    while float(stride) * room < 1.0 && stride < MAX_TRIAL_STRIDE {
        stride = (stride * 2).min(MAX_TRIAL_STRIDE);
    }
    stride
}

/// The stages of a class with their fractions. Plain trials count as part of the planned plain reads.
fn class_routes(class: &Class, fractions: &[f64], plain_trials: f64) -> StageFractions {
    let taken: Vec<_> = class
        .candidates
        .iter()
        .zip(fractions)
        .filter(|(_, fraction)| **fraction > 0.0)
        .map(|(candidate, fraction)| (candidate.stage, fraction / class.fraction))
        .collect();
    let plain = taken.iter().find(|(stage, _)| *stage == 0);
    let plain = plain.map_or(0.0, |(_, fraction)| *fraction);
    let plain_rest = ((plain - plain_trials) / (1.0 - plain_trials)).max(0.0);
    let rest = taken.into_iter().map(|(stage, fraction)| {
        let rest = match stage {
            _ if plain >= 1.0 => fraction,
            0 => plain_rest,
            _ => fraction * (1.0 - plain_rest) / (1.0 - plain),
        };
        (stage, rest)
    });
    StageFractions::new(rest)
}

/// A stage as requests state it.
fn stage_number(stage: usize) -> u8 {
    u8::try_from(stage).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests;
