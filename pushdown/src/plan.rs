//! The planner: how far the gateway takes which samples, so that the slowest tier is as fast as it can be.
//!
//! A plan is a mixture: of each class of samples a share goes by each split. What a mixture costs each tier per sample
//! is linear in the shares, and an epoch is as slow as its slowest tier, so the best mixture is the solution of a small
//! linear program. Not to push is split 0, a candidate like any other: a plan is never slower than reading plainly, by
//! the costs it was made from. Pure: costs in, plan out.

mod costs;
mod hysteresis;
mod learn;
mod link;
mod mean;
mod others;
mod recent;
mod replanner;
mod simplex;
pub mod simulate;
mod solve;

use std::collections::BTreeMap;

pub use costs::{Bound, Candidate, Class, Lacking, Load, Loading, Rules, Tiers, UnderWay};
pub use learn::Costs;
pub(crate) use learn::float;
pub use link::Link;
pub use replanner::{Decision, Ends, Replanner};
use solve::solve;

/// Plans this close to the fastest count as fast; among them the one with the fewest bytes is taken, and of equal bytes the
/// one that takes least of the host's CPU.
const TIE: f64 = 0.03;
/// Shares up to here are a program's rounding.
const NOTHING: f64 = 1e-9;

/// Which share of each class goes which way.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// For each class the shares of its candidates, in their order; they add up to the class's share.
    pub shares: Vec<Vec<f64>>,
    /// What each tier needs.
    pub load: Load,
    /// Seconds that the first sample of its slowest way takes when no other is there.
    pub tail: f64,
    /// Mean bytes of a value.
    pub bytes: f64,
}

// === impl Plan ===

impl Plan {
    /// Seconds for each sample that is left, if the last one goes the slowest way.
    pub fn seconds(&self, rules: &Rules) -> f64 {
        self.paced(rules) + self.tail / rules.samples_left.max(1.0)
    }

    /// The same without a slowest way.
    fn paced(&self, rules: &Rules) -> f64 {
        rules.paced(self.load.before_trainer(), self.load.trainer)
    }

    /// The best mixture: of those within 3 % of the fastest the one with the fewest bytes.
    ///
    /// Each class needs a candidate with stage 0, which stays whatever the rules say.
    pub fn best(tiers: &Tiers, classes: &[Class], rules: &Rules) -> Self {
        let plain = Self::plain(tiers, classes, rules);
        let slowest = plain.seconds(rules);
        // Weights come once and whole, however few samples need them: a mixture that has them pays before it gains.
        let candidates = classes.iter().flat_map(|class| &class.candidates);
        let weights = candidates.map(|candidate| candidate.weights).fold(0.0, f64::max);
        let with = Self::among(tiers, classes, rules, weights).filter(|with| with.seconds(rules) <= slowest);
        let with = with.unwrap_or(plain);
        let without = (weights > 0.0).then(|| Self::among(tiers, classes, rules, 0.0));
        let about_as_fast = |without: &Self| {
            let seconds = without.seconds(rules);
            seconds <= slowest && seconds * (1.0 - TIE) <= with.seconds(rules)
        };
        without.flatten().filter(about_as_fast).unwrap_or(with)
    }

    /// The best mixture of those ways that need no weights which the host lacks, to begin with while they come; none where
    /// a class has no such way.
    pub fn meanwhile(tiers: &Tiers, classes: &[Class], rules: &Rules) -> Option<Self> {
        Self::among(tiers, classes, rules, 0.0)
    }

    /// The best mixture of those ways for which `weights` bytes, fetched once, are enough; none where that leaves a class
    /// without any way. What is the fastest for many samples is not for a few, if one of its ways takes long, or has layers
    /// loaded first: where all of them are there sooner without it, it is left out.
    fn among(tiers: &Tiers, classes: &[Class], rules: &Rules, weights: f64) -> Option<Self> {
        let mixture = |may: &dyn Fn(&Candidate) -> bool| Self::mixture(tiers, classes, rules, weights, may);
        let mut best = mixture(&|_| true)?;
        while let Some(sooner) = mixture(&|way| tiers.alone(way) < best.tail)
            .filter(|sooner| sooner.seconds(rules) < best.seconds(rules))
        {
            best = sooner;
        }
        // Of the ways that have layers loaded none alone may be worth leaving out.
        let loaded = mixture(&|way| !way.loads());
        Some(
            loaded
                .filter(|loaded| loaded.seconds(rules) < best.seconds(rules))
                .unwrap_or(best),
        )
    }

    /// The same of those ways that `may` be taken.
    fn mixture(
        tiers: &Tiers,
        classes: &[Class],
        rules: &Rules,
        weights: f64,
        may: &dyn Fn(&Candidate) -> bool,
    ) -> Option<Self> {
        let plain = Self::plain(tiers, classes, rules).paced(rules);
        // (class, candidate), the ways of each class together.
        let mut ways = Vec::new();
        for (index, class) in classes.iter().enumerate() {
            let stored = class.candidates.iter().find(|candidate| candidate.stage == 0);
            let most = stored.map_or(f64::INFINITY, |plain| rules.max_expand * plain.bytes);
            let can = |candidate: &Candidate| {
                let fits = candidate.stage == 0 || candidate.bytes <= most && tiers.can(candidate);
                fits && candidate.weights <= weights && may(candidate)
            };
            let before = ways.len();
            let of_class = class.candidates.iter().enumerate();
            ways.extend(of_class.filter_map(|(place, candidate)| can(candidate).then_some((index, place))));
            if ways.len() == before {
                return None;
            }
        }
        let loads: Vec<Load> = ways
            .iter()
            .map(|(class, place)| tiers.load(&classes[*class].candidates[*place]))
            .collect();
        let mut before = tiers.before(Loading::default(), rules);
        before.link += tiers.fetching(weights, rules);
        let taken = solve(classes, &ways, &loads, &before, |best| {
            // A tie costs no one who reads plainly, and a trainer that takes longer waits for no one but at first.
            let trainer = tiers.trainer_seconds;
            let tie = (rules.paced(best, trainer) * (1.0 + TIE)).min(plain);
            rules.most(tie, trainer)
        });
        let mut shares: Vec<Vec<f64>> = classes
            .iter()
            .map(|class| vec![0.0; class.candidates.len()])
            .collect();
        for ((class, place), share) in ways.iter().zip(&taken).filter(|(_, share)| **share > NOTHING) {
            shares[*class][*place] = *share;
        }
        Some(Self::of(tiers, classes, shares, rules))
    }

    /// The plan with these shares. Weights that one of its ways needs are fetched, and the layers of each way loaded, once.
    pub fn of(tiers: &Tiers, classes: &[Class], shares: Vec<Vec<f64>>, rules: &Rules) -> Self {
        let taken = classes
            .iter()
            .zip(&shares)
            .flat_map(|(class, shares)| class.candidates.iter().zip(shares));
        let begun: BTreeMap<_, _> = taken
            .filter(|(_, share)| **share > 0.0)
            .map(|(way, _)| (way.stage, way.loading))
            .collect();
        let mut load = Load {
            trainer: tiers.trainer_seconds,
            ..tiers.before(begun.into_values().sum(), rules)
        };
        let (mut bytes, mut weights, mut tail) = (0.0, 0.0_f64, 0.0_f64);
        for (class, shares) in classes.iter().zip(&shares) {
            let taken = class
                .candidates
                .iter()
                .zip(shares)
                .filter(|(_, share)| **share > 0.0);
            for (candidate, share) in taken {
                let part = tiers.load(candidate);
                load.gateway += share * part.gateway;
                load.link += share * part.link;
                load.host += share * part.host;
                bytes += share * candidate.bytes;
                weights = weights.max(candidate.weights);
                tail = tail.max(tiers.alone(candidate));
            }
        }
        load.link += tiers.fetching(weights, rules);
        Self {
            shares,
            load,
            tail,
            bytes,
        }
    }

    /// The share of samples that may go another way, to see how it goes: as many of them as this plan has time for besides,
    /// or 3 % more.
    pub fn room(&self, load: &Load) -> f64 {
        let seconds = self.load.seconds() * (1.0 + TIE);
        let tiers: [fn(&Load) -> f64; 3] = [|load| load.gateway, |load| load.link, |load| load.host];
        let rooms = tiers.map(|tier| match tier(load) {
            needed if needed > 0.0 => ((seconds - tier(&self.load)) / needed).max(0.0),
            _ => 1.0,
        });
        rooms.into_iter().fold(1.0, f64::min)
    }

    /// Reading all objects as they are.
    pub fn plain(tiers: &Tiers, classes: &[Class], rules: &Rules) -> Self {
        let share =
            |class: &Class, candidate: &Candidate| if candidate.stage == 0 { class.share } else { 0.0 };
        let shares = classes
            .iter()
            .map(|class| {
                class
                    .candidates
                    .iter()
                    .map(|candidate| share(class, candidate))
                    .collect()
            })
            .collect();
        Self::of(tiers, classes, shares, rules)
    }
}

#[cfg(test)]
mod tests;
