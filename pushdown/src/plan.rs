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
mod recent;
mod replanner;
mod simplex;
pub mod simulate;
mod solve;

pub use costs::{Bound, Candidate, Class, Load, Rules, Tiers};
pub use learn::Costs;
pub use link::Link;
pub use replanner::{Decision, Replanner};
use solve::solve;

/// Plans this close to the fastest count as fast; among them the one with the fewest bytes is taken.
const TIE: f64 = 0.03;

/// Which share of each class goes which way.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// For each class the shares of its candidates, in their order; they add up to the class's share.
    pub shares: Vec<Vec<f64>>,
    /// What each tier needs.
    pub load: Load,
    /// Mean bytes of a value.
    pub bytes: f64,
}

// === impl Plan ===

impl Plan {
    /// The best mixture: of those within 3 % of the fastest the one with the fewest bytes.
    ///
    /// Each class needs a candidate with stage 0, which stays whatever the rules say.
    pub fn best(tiers: &Tiers, classes: &[Class], rules: &Rules) -> Self {
        let plain = Self::plain(tiers, classes).load.seconds();
        let without = Self::among(tiers, classes, rules, 0.0, plain);
        // Weights come once and whole, however few samples need them: a mixture that has them pays before it gains.
        let candidates = classes.iter().flat_map(|class| &class.candidates);
        let weights = candidates.map(|candidate| candidate.weights).fold(0.0, f64::max);
        if weights == 0.0 {
            return without;
        }
        let with = Self::among(tiers, classes, rules, weights, plain);
        if with.load.seconds() < without.load.seconds() * (1.0 - TIE) {
            with
        } else {
            without
        }
    }

    /// The best mixture of those ways for which `weights` bytes, fetched once, are enough.
    fn among(tiers: &Tiers, classes: &[Class], rules: &Rules, weights: f64, plain: f64) -> Self {
        // (class, candidate), the plain one of each class first.
        let mut ways = Vec::new();
        for (index, class) in classes.iter().enumerate() {
            let plain = class.candidates.iter().position(|candidate| candidate.stage == 0);
            let stored = plain.map_or(f64::INFINITY, |plain| class.candidates[plain].bytes);
            ways.extend(plain.map(|plain| (index, plain)));
            ways.extend(
                class
                    .candidates
                    .iter()
                    .enumerate()
                    .filter_map(|(place, candidate)| {
                        let fits =
                            candidate.bytes <= rules.max_expand * stored && candidate.weights <= weights;
                        (Some(place) != plain && fits && tiers.can(candidate)).then_some((index, place))
                    }),
            );
        }
        let loads: Vec<Load> = ways
            .iter()
            .map(|(class, place)| tiers.load(&classes[*class].candidates[*place]))
            .collect();
        let fetching = weights / rules.samples_left.max(1.0) / tiers.link_bytes;
        let taken = solve(classes, &ways, &loads, fetching, |best| {
            // A tie costs no one who reads plainly, and the trainer waits for no one anyway.
            (best.max(tiers.trainer_seconds) * (1.0 + TIE)).min(plain)
        });
        let mut shares: Vec<Vec<f64>> = classes
            .iter()
            .map(|class| vec![0.0; class.candidates.len()])
            .collect();
        for ((class, place), share) in ways.iter().zip(&taken) {
            shares[*class][*place] = *share;
        }
        let mut plan = Self::of(tiers, classes, shares);
        plan.load.link += fetching;
        plan
    }

    /// The plan with these shares, weights apart.
    pub fn of(tiers: &Tiers, classes: &[Class], shares: Vec<Vec<f64>>) -> Self {
        let mut load = Load {
            gateway: 0.0,
            link: 0.0,
            host: 0.0,
            trainer: tiers.trainer_seconds,
        };
        let mut bytes = 0.0;
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
            }
        }
        Self { shares, load, bytes }
    }

    /// Reading all objects as they are.
    pub fn plain(tiers: &Tiers, classes: &[Class]) -> Self {
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
        Self::of(tiers, classes, shares)
    }
}

#[cfg(test)]
mod tests;
