//! The route of each object.

use std::sync::Arc;

use pushdown::plan::{Class, Decision, Plan, Stage};

use super::{float, plan_context::PlanContext};
use crate::{
    epoch::order::SampleRef,
    planning::exploration::{MAX_TRIAL_STRIDE, StageFractions, TRIAL_STRIDE, trial_number},
};

/// The stage at which each object of a batch is requested.
#[derive(Debug, Clone)]
pub(crate) struct Assignment {
    context: Arc<PlanContext>,
    /// Assumed bytes of an object of unknown size.
    pub(super) unlisted_bytes: u64,
    /// Whether objects may be requested as cropped JPEGs.
    pub(super) may_crop: bool,
    routes: Routes,
    /// The sides of each size class, by the upper bounds of the hashes of their objects; see [`Decision::sides`].
    sides: Vec<f64>,
    /// The stages that trials use.
    trial_stages: Vec<Stage>,
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
            may_crop: false,
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
    pub(super) fn with_plan(&self, decision: &Decision, plan: &Plan) -> Self {
        let trial_stages = self.trial_stages(decision, plan);
        let stride = trial_stride(&trial_stages, decision, plan);
        let plain_trials = if trial_stages.contains(&Stage::Object) {
            1.0 / float(stride * trial_stages.len() as u64)
        } else {
            0.0
        };
        let classes = decision.classes.iter().zip(&plan.fractions);
        let routes = classes.map(|(class, fractions)| class_routes(class, fractions, plain_trials));
        Self {
            routes: Routes::Planned(routes.collect()),
            sides: decision.sides.clone(),
            trial_stages,
            stride,
            ..self.clone()
        }
    }

    /// The stage of an object. It follows from its size; objects of one size are spread so that any part of the data set has
    /// the fractions of the plan. Trials have another stage. Plain reading if the value could exceed its maximum.
    ///
    /// `hash_fraction` is called if the gateway caches a part of the objects: it returns the hash of this one as a fraction of
    /// all hashes.
    pub(crate) fn stage(
        &self,
        sample: SampleRef,
        stored: Option<u64>,
        hash_fraction: impl FnOnce() -> f64,
    ) -> Stage {
        let context = &self.context;
        let fits = |stage: Stage| self.fits(stage, stored);
        let trial_stage = |number: u64| {
            let fitting = self.trial_stages.iter().copied();
            let fitting: Vec<Stage> = fitting.filter(|stage| fits(*stage)).collect();
            let number = usize::try_from(number).unwrap_or_default();
            (!fitting.is_empty()).then(|| fitting[number % fitting.len()])
        };
        match &self.routes {
            Routes::Unknown if sample.position.is_multiple_of(2) => Stage::Object,
            Routes::Unknown | Routes::AllPushed => trial_stage(sample.position / 2).unwrap_or(Stage::Object),
            Routes::Planned(routes) => {
                let planned = || {
                    let class = context.class(stored) * self.sides.len() + self.side(hash_fraction);
                    // Objects of a class are dealt out by their index.
                    let stage = routes
                        .get(class)
                        .map(|of_class| of_class.stage(sample.index as u64));
                    stage.unwrap_or(Stage::Object)
                };
                // Trials are spread evenly over the positions of any rank.
                let trial = trial_number(sample.position, self.stride);
                let stage = trial.and_then(trial_stage).unwrap_or_else(planned);
                if fits(stage) { stage } else { Stage::Object }
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
    pub(crate) fn fits(&self, stage: Stage, stored: Option<u64>) -> bool {
        let is_allowed = self.may_crop || stage != Stage::CroppedJpeg;
        is_allowed && self.context.fits(stage, stored.unwrap_or(self.unlisted_bytes))
    }

    /// The most bytes that the value of an object may have at a stage, if they are not known in advance.
    pub(crate) fn max_value_bytes(&self, stage: u8, stored: Option<u64>) -> Option<u64> {
        self.context
            .max_value_bytes(stage, stored.unwrap_or(self.unlisted_bytes))
    }

    /// The stages that trials use. Without those for which the host lacks weights, since a trial would download them, and
    /// without those that the plan uses enough in every class, since they would get more than their best fraction.
    fn trial_stages(&self, decision: &Decision, plan: &Plan) -> Vec<Stage> {
        let enough = 1.0 / float(TRIAL_STRIDE);
        let is_planned = |stage: Stage| {
            decision
                .classes
                .iter()
                .zip(&plan.fractions)
                .all(|(class, fractions)| {
                    let taken = class.candidates.iter().zip(fractions);
                    let taken = taken.filter(|(candidate, _)| candidate.stage == stage);
                    taken.map(|(_, fraction)| fraction).sum::<f64>() >= enough * class.fraction
                })
        };
        let lacks_weights = |stage: Stage| {
            let candidates = decision.classes.iter().flat_map(|class| &class.candidates);
            let mut at_stage = candidates.filter(|candidate| candidate.stage == stage);
            at_stage.any(|candidate| candidate.weights_bytes > 0.0)
        };
        std::iter::once(Stage::Object)
            .chain(self.context.trial_stages.iter().copied())
            .filter(|stage| self.may_crop || *stage != Stage::CroppedJpeg)
            .filter(|stage| !is_planned(*stage) && !lacks_weights(*stage))
            .collect()
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

/// The stride of trials: longer if the plan has too little time for them.
fn trial_stride(trial_stages: &[Stage], decision: &Decision, plan: &Plan) -> u64 {
    let rooms = trial_stages
        .iter()
        .map(|stage| decision.trial_fraction(plan, *stage));
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
    let plain = taken.iter().find(|(stage, _)| stage.is_plain());
    let plain = plain.map_or(0.0, |(_, fraction)| *fraction);
    let plain_rest = ((plain - plain_trials) / (1.0 - plain_trials)).max(0.0);
    let rest = taken.into_iter().map(|(stage, fraction)| {
        let rest = match stage {
            _ if plain >= 1.0 => fraction,
            Stage::Object => plain_rest,
            _ => fraction * (1.0 - plain_rest) / (1.0 - plain),
        };
        (stage, rest)
    });
    StageFractions::new(rest)
}

#[cfg(test)]
mod tests;
