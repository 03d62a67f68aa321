//! Which way each object goes.

use std::sync::Arc;

use pushdown::{
    Kind, Pipeline,
    plan::{Decision, Plan},
};

use crate::{order::Place, profile::float};

/// One object in so many goes another way than the plan has it, by turns each of those that are worth a trial. That is
/// enough to be right again within three batches of a change (`plan::replanner` tests that); with half as many some plans are worse
/// than plain reading by then.
const EXPLORED: u64 = 100;
/// The fewest, where each takes far longer than others: a link that becomes faster is found out by them.
const FEWEST: u64 = 1024;

/// What is the same for all plans of a data set.
#[derive(Debug)]
pub(super) struct Ground {
    /// The most bytes of an object of each class; any number for the last.
    pub(super) bounds: Vec<u64>,
    /// What is known beforehand of a value's bytes, by stage.
    values: Vec<Size>,
    /// The stages to explore, the last one first: the last, and the last before any model.
    explored: Vec<u8>,
    /// A value has at most so many times the bytes of its object.
    pub(super) max_expand: f64,
}

/// How far the gateway takes each object of a batch.
#[derive(Debug, Clone)]
pub(crate) struct Assignment {
    ground: Arc<Ground>,
    /// Bytes that an object of unknown size is taken to have stored.
    pub(super) unlisted: u64,
    ways: Ways,
    /// The stages at which objects stop only to see how that goes; 0 is to be read as they are.
    explored: Vec<u8>,
    /// One object of so many goes one of these ways.
    stride: u64,
}

/// What is known of the bytes of a stage's values beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Size {
    Known(u64),
    /// Nothing: the gateway is told how many there may be, and sends the object in place of a value that has more.
    Bounded,
    /// Nothing, and the gateway takes rows from an object that it never holds whole.
    Table,
}

#[derive(Debug, Clone)]
enum Ways {
    /// Nothing is known yet: by turns as they are and pushed down.
    Unknown,
    /// Nothing is known but that the gateway is done sooner: all are pushed down.
    Pushing,
    /// For each class its stages, each with the share of objects that go there or to one before it.
    Planned(Vec<Vec<(u8, f64)>>),
}

impl Ground {
    /// `None` where the gateway could do nothing of use: all values are tables.
    pub(super) fn new(pipeline: &Pipeline, bounds: Vec<u64>, max_expand: f64) -> Option<Self> {
        let size = |kind: &Kind| match (kind, kind.bytes()) {
            (_, Some(bytes)) => Size::Known(bytes),
            (Kind::Table(_), None) => Size::Table,
            _ => Size::Bounded,
        };
        let values: Vec<_> = pipeline.kinds().iter().map(size).collect();
        let model = pipeline
            .steps()
            .iter()
            .position(|step| step.models().next().is_some());
        let last = |until: usize| (1..=until).rev().find(|stage| values[*stage] != Size::Table);
        let mut explored = vec![last(pipeline.len())?];
        explored.extend(model.and_then(last));
        explored.dedup();
        let explored = explored.into_iter().filter_map(|stage| u8::try_from(stage).ok());
        Some(Self {
            bounds,
            explored: explored.collect(),
            values,
            max_expand,
        })
    }

    /// The class of an object of so many bytes; the last one where that is not known.
    pub(super) fn class(&self, stored: Option<u64>) -> usize {
        let last = self.bounds.len().saturating_sub(1);
        let fits = |stored: u64| self.bounds.iter().position(|bound| stored <= *bound);
        stored.and_then(fits).unwrap_or(last)
    }

    /// Whether a value of that stage has no more bytes than it may have, or can be kept from having more.
    fn fits(&self, stage: u8, stored: u64) -> bool {
        match self.values.get(usize::from(stage)) {
            _ if stage == 0 => true,
            Some(Size::Known(value)) => float(*value) <= float(stored) * self.max_expand,
            Some(Size::Bounded) => true,
            Some(Size::Table) | None => false,
        }
    }

    /// The most bytes that a value of that stage may have, where they are not known beforehand.
    fn most(&self, stage: u8, stored: u64) -> Option<u64> {
        let bounded = stage > 0 && self.values.get(usize::from(stage)) == Some(&Size::Bounded);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a size, rounded down"
        )]
        bounded.then(|| (float(stored) * self.max_expand) as u64)
    }
}

impl Assignment {
    pub(super) fn unknown(ground: Arc<Ground>, unlisted: u64) -> Self {
        Self {
            unlisted,
            ways: Ways::Unknown,
            explored: ground.explored.clone(),
            stride: EXPLORED,
            ground,
        }
    }

    /// Whether nothing is known yet.
    pub(crate) const fn is_unknown(&self) -> bool {
        matches!(self.ways, Ways::Unknown)
    }

    /// While nothing is known: the way of what has not been begun when all that was pushed down is here.
    pub(crate) fn pushing(&self) -> Option<Self> {
        self.is_unknown().then(|| Self {
            ways: Ways::Pushing,
            ..self.clone()
        })
    }

    /// The ways of a plan that was made from what a decision was. None is explored for which the host lacks weights: they
    /// would be fetched for a trial. Nor is one that enough objects of every class go by the plan: it would be taken more
    /// often than is best. And none more often than the plan has time for.
    pub(super) fn planned(ground: Arc<Ground>, unlisted: u64, decision: &Decision, plan: &Plan) -> Self {
        let enough = 1.0 / float(EXPLORED);
        let seen = |stage: u8| {
            decision.classes.iter().zip(&plan.shares).all(|(class, shares)| {
                let taken = class.candidates.iter().zip(shares);
                let taken = taken.filter(|(way, _)| way.stage == usize::from(stage));
                taken.map(|(_, share)| share).sum::<f64>() >= enough * class.share
            })
        };
        let lacks_weights = |stage: u8| {
            let candidates = decision.classes.iter().flat_map(|class| &class.candidates);
            let mut there = candidates.filter(|way| way.stage == usize::from(stage));
            there.any(|way| way.weights_bytes > 0.0)
        };
        let worthwhile = |stage: &u8| !seen(*stage) && !lacks_weights(*stage);
        let explored = std::iter::once(0).chain(ground.explored.iter().copied());
        let explored: Vec<u8> = explored.filter(worthwhile).collect();
        let rooms = explored
            .iter()
            .map(|stage| decision.trial_share(plan, usize::from(*stage)));
        let room = rooms.fold(1.0, f64::min);
        let mut stride = EXPLORED;
        while float(stride) * room < 1.0 && stride < FEWEST {
            stride = (stride * 2).min(FEWEST);
        }
        let tried = if explored.contains(&0) {
            1.0 / float(stride * explored.len() as u64)
        } else {
            0.0
        };
        let classes = decision.classes.iter().zip(&plan.shares);
        let ways = classes.map(|(class, shares)| {
            let taken = class.candidates.iter().zip(shares);
            let taken = taken.filter(|(_, share)| **share > 0.0);
            let taken: Vec<_> = taken
                .map(|(way, share)| (way.stage, share / class.share))
                .collect();
            let plain = taken.iter().find(|(stage, _)| *stage == 0);
            let plain = plain.map_or(0.0, |(_, share)| *share);
            // What is read plainly as a trial is a part of what the plan has read plainly, not more of it.
            let rest = ((plain - tried) / (1.0 - tried)).max(0.0);
            let mut sum = 0.0;
            let taken = taken.into_iter().map(|(stage, share)| {
                sum += match stage {
                    _ if plain >= 1.0 => share,
                    0 => rest,
                    _ => share * (1.0 - rest) / (1.0 - plain),
                };
                (u8::try_from(stage).unwrap_or(u8::MAX), sum)
            });
            taken.collect()
        });
        Self {
            ground,
            unlisted,
            ways: Ways::Planned(ways.collect()),
            explored,
            stride,
        }
    }

    /// The stage of an object: by its size, and among objects of a size in turns, so that any stretch of the data set has
    /// the shares of the plan; or another one, to see how that goes. Stage 0 where the value could have more bytes than
    /// it may have.
    pub(crate) fn stage(&self, place: Place, stored: Option<u64>) -> u8 {
        let ground = &self.ground;
        let fits = |stage: u8| ground.fits(stage, stored.unwrap_or(self.unlisted));
        let explored = |turn: u64| {
            let fitting = self.explored.iter().copied();
            let fitting: Vec<u8> = fitting.filter(|stage| fits(*stage)).collect();
            let turn = usize::try_from(turn).unwrap_or_default();
            (!fitting.is_empty()).then(|| fitting[turn % fitting.len()])
        };
        match &self.ways {
            Ways::Unknown if place.position.is_multiple_of(2) => 0,
            Ways::Unknown | Ways::Pushing => explored(place.position / 2).unwrap_or_default(),
            Ways::Planned(ways) => {
                let planned = || {
                    let of_class = ways.get(ground.class(stored)).map_or(&[][..], Vec::as_slice);
                    way(of_class, place.index)
                };
                // Of the positions that a rank has as many are trials as of all.
                let trial = trial(place.position, self.stride);
                let stage = trial.and_then(explored).unwrap_or_else(planned);
                if fits(stage) { stage } else { 0 }
            }
        }
    }

    /// The most bytes that the value of an object may have at a stage, where they are not known beforehand.
    pub(crate) fn most(&self, stage: u8, stored: Option<u64>) -> Option<u64> {
        self.ground.most(stage, stored.unwrap_or(self.unlisted))
    }

    /// The first stage that any object stops at: steps from there on run here.
    pub(super) fn first_stage(&self) -> usize {
        match &self.ways {
            Ways::Unknown | Ways::Pushing => 0,
            Ways::Planned(ways) => {
                let stages = ways.iter().flatten();
                usize::from(stages.map(|(stage, _)| *stage).min().unwrap_or_default())
            }
        }
    }
}

/// The golden ratio. Its multiples are spread evenly between whole numbers, wherever one starts, and whatever step one takes.
const GOLDEN: f64 = 0.618_033_988_749_895;
/// The silver ratio, whose multiples have nothing to do with those.
const SILVER: f64 = 0.414_213_562_373_095;

/// Where a number's multiple of a ratio stands between 0 and 1.
fn turn(number: u64, ratio: f64) -> f64 {
    (float(number) * ratio).fract()
}

/// Which trial the sample at a position is, if it is one; of so many positions one is.
fn trial(position: u64, stride: u64) -> Option<u64> {
    /// As many ways as trials are told apart by.
    const WAYS: f64 = 12.0;
    let among = turn(position, SILVER) * float(stride);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "less than 12"
    )]
    (among < 1.0).then_some((among * WAYS) as u64)
}

/// The way of an object, by its turn among those of its class.
fn way(ways: &[(u8, f64)], index: usize) -> u8 {
    let turn = turn(index as u64, GOLDEN);
    let way = ways.iter().find(|(_, sum)| turn < *sum).or_else(|| ways.last());
    way.map(|(stage, _)| *stage).unwrap_or_default()
}

#[cfg(test)]
mod tests;
