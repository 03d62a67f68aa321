//! The planner: chooses how many steps the gateway runs for each class of samples, to speed up the slowest tier.
//!
//! A plan is a mixture: it assigns a fraction of each class to each split. The cost of a mixture per sample and tier is
//! linear in the fractions, and the slowest tier sets the pace of an epoch, so the best mixture solves a small linear
//! program. Plain reading is a candidate like any other: by the costs that it is computed from, a plan is
//! never slower than plain reading. Pure functions: costs in, plan out.
//!
//! A plan for several epochs minimises their total time: the first one may take longer if later ones find its values in the
//! result cache of the gateway.

mod background;
mod cache_hits;
mod costs;
mod hysteresis;
mod later_epochs;
mod learn;
mod link;
mod links;
mod mean;
mod placement;
mod recent_median;
mod replanner;
mod result_cache;
mod simplex;
pub mod simulate;
mod solve;
mod stage;

use std::collections::BTreeMap;

pub use cache_hits::{ASSUMED_HIT_SECONDS, CacheHits};
pub use costs::{
    Bound, Candidate, Class, InFlight, Load, LoadingCost, Path, Paths, Rules, SetupCosts, Tiers,
};
use later_epochs::add_later_epochs;
pub use later_epochs::{LaterEpochs, LaterLoad};
pub use learn::{Costs, CropAnswer, StepCost};
pub use links::{Links, MeasuredRate};
pub use placement::{LOAD_CAP, MIN_SAMPLES_PER_REPLICA, Placement};
pub use replanner::{CpuUtilization, Decision, MAX_DEMAND_CORES, Replanner};
use solve::{Column, Epoch, Program};
pub use stage::Stage;

/// Plans within this ratio of the fastest count as equally fast. The planner takes the one with the fewest bytes, then the one
/// with the least CPU time on the host.
const TIE_RATIO: f64 = 0.03;
/// Fractions up to this value are rounding errors of the linear program.
const FRACTION_EPSILON: f64 = 1e-9;

/// The fraction of each class that takes each split.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The fractions of the candidates by class, in the order of `Class::candidates`; they sum to the fraction of the class.
    pub fractions: Vec<Vec<f64>>,
    /// Mean time of each tier per sample.
    pub load: Load,
    /// Latency of the first sample on the slowest split in use, with all tiers idle.
    pub tail_seconds: f64,
    /// Mean bytes sent per sample.
    pub bytes_per_sample: f64,
    /// Later epochs after this plan, if the rules have any.
    pub later: Option<LaterLoad>,
}

/// A candidate of a class, by indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SplitIndex {
    class: usize,
    candidate: usize,
}

impl SplitIndex {
    fn candidate(self, classes: &[Class]) -> &Candidate {
        &classes[self.class].candidates[self.candidate]
    }
}

/// The candidates of each class that satisfy `is_possible`, sorted by class. `None` if that leaves a class without one.
fn possible_splits(
    classes: &[Class],
    is_possible: impl Fn(&Class, &Candidate) -> bool,
) -> Option<Vec<SplitIndex>> {
    let mut splits = Vec::new();
    for (class_index, class) in classes.iter().enumerate() {
        let count_before = splits.len();
        let candidates = class.candidates.iter().enumerate();
        let possible = candidates.filter(|(_, candidate)| is_possible(class, candidate));
        splits.extend(possible.map(|(candidate_index, _)| SplitIndex {
            class: class_index,
            candidate: candidate_index,
        }));
        if splits.len() == count_before {
            return None;
        }
    }
    Some(splits)
}

/// The times of the current and of later epochs that count as equal to the best ones. Each is within the tie by itself, since every
/// later epoch is planned again when it is the current one. Together they are no slower than `plain`.
fn tie_of_epochs(program: &Program, best_seconds: &[f64], plain: &Plan) -> Vec<f64> {
    let plain_seconds = [
        plain.load.seconds(),
        plain.later.map_or(0.0, |later| later.load.seconds()),
    ];
    let total = |seconds: &[f64]| -> f64 {
        let epochs = program.epochs.iter().zip(seconds);
        epochs.map(|(epoch, seconds)| epoch.weight * seconds).sum()
    };
    let factor = (total(&plain_seconds) / total(best_seconds)).clamp(1.0, 1.0 + TIE_RATIO);
    best_seconds.iter().map(|seconds| seconds * factor).collect()
}

/// The fraction of a group, which is a class, at a split in an epoch.
fn column(tiers: &Tiers, group: usize, epoch: usize, (class, candidate): (&Class, &Candidate)) -> Column {
    let worth = class.worth(candidate);
    Column {
        group,
        epoch,
        load: tiers.load(candidate),
        bytes: worth.bytes,
        cpu_seconds: worth.cpu_seconds,
    }
}

impl Plan {
    /// Seconds per remaining sample, if the last sample takes the slowest split. Those of later epochs are added.
    pub fn seconds(&self, rules: &Rules) -> f64 {
        let seconds = self.pace_seconds(rules) + self.tail_seconds / rules.samples_left.max(1.0);
        match self.later {
            Some(later) => seconds + rules.later_weight() * later.seconds,
            None => seconds,
        }
    }

    /// Seconds per remaining sample without the tail.
    fn pace_seconds(&self, rules: &Rules) -> f64 {
        rules.pace_seconds(self.load.upstream_seconds(), self.load.trainer_seconds)
    }

    /// The best mixture: among those within 3 % of the fastest, the one with the fewest bytes.
    ///
    /// Each class needs a candidate with [`Stage::Object`]. The rules never exclude that candidate.
    pub fn best(tiers: &Tiers, classes: &[Class], rules: &Rules) -> Self {
        let plain = Self::plain(tiers, classes, rules);
        let slowest = plain.seconds(rules);
        // Weights are fetched once and whole, even for a few samples: a mixture that needs them pays before it gains.
        let candidates = classes.iter().flat_map(|class| &class.candidates);
        let weights_bytes = candidates
            .map(|candidate| candidate.weights_bytes)
            .fold(0.0, f64::max);
        let with_weights = Self::best_with_weights(tiers, classes, rules, weights_bytes)
            .filter(|with_weights| with_weights.seconds(rules) <= slowest)
            .unwrap_or(plain);
        let without_weights =
            (weights_bytes > 0.0).then(|| Self::best_without_weights(tiers, classes, rules));
        let is_about_as_fast = |without_weights: &Self| {
            let seconds = without_weights.seconds(rules);
            seconds <= slowest && seconds * (1.0 - TIE_RATIO) <= with_weights.seconds(rules)
        };
        without_weights
            .flatten()
            .filter(is_about_as_fast)
            .unwrap_or(with_weights)
    }

    /// The best mixture of splits that need no weights that the host lacks, for use while the host fetches them. `None` if a
    /// class has no such split.
    pub fn best_without_weights(tiers: &Tiers, classes: &[Class], rules: &Rules) -> Option<Self> {
        Self::best_with_weights(tiers, classes, rules, 0.0)
    }

    /// The best mixture of splits that need at most `weights_bytes` of weights, fetched once. `None` if that leaves a class
    /// without a split. A split with a long latency, or with layers to load first, may pay for many samples and not for a few:
    /// it is left out if the remaining samples finish earlier without it.
    fn best_with_weights(
        tiers: &Tiers,
        classes: &[Class],
        rules: &Rules,
        weights_bytes: f64,
    ) -> Option<Self> {
        let mixture = |is_allowed: &dyn Fn(&Candidate) -> bool| {
            Self::mixture(tiers, classes, rules, weights_bytes, is_allowed)
        };
        // More crops have to be worth it, beyond a tie.
        let is_faster = |plan: &Self, than: &Self| {
            let crops_more = plan.cropped_ratio(classes) > than.cropped_ratio(classes);
            let min_speedup = if crops_more { 1.0 + TIE_RATIO } else { 1.0 };
            plan.seconds(rules) * min_speedup < than.seconds(rules)
        };
        let mut best = mixture(&|_| true)?;
        while let Some(faster) = mixture(&|split| tiers.latency_seconds(split) < best.tail_seconds)
            .filter(|faster| is_faster(faster, &best))
        {
            best = faster;
        }
        // Leaving out every split that loads layers may pay even if leaving out any single one does not.
        let already_loaded = mixture(&|split| !split.has_loading_cost())
            .filter(|already_loaded| is_faster(already_loaded, &best));
        Some(already_loaded.unwrap_or(best))
    }

    /// The best mixture of the splits that satisfy `is_allowed`.
    fn mixture(
        tiers: &Tiers,
        classes: &[Class],
        rules: &Rules,
        weights_bytes: f64,
        is_allowed: &dyn Fn(&Candidate) -> bool,
    ) -> Option<Self> {
        let plain = Self::plain(tiers, classes, rules);
        let plain_seconds = plain.pace_seconds(rules);
        let max_bytes = |class: &Class| {
            class
                .object()
                .map_or(f64::INFINITY, |stored| rules.max_expand * stored.bytes)
        };
        let splits = possible_splits(classes, |class, candidate| {
            let fits =
                candidate.stage.is_plain() || candidate.bytes <= max_bytes(class) && tiers.can_run(candidate);
            fits && candidate.weights_bytes <= weights_bytes && is_allowed(candidate)
        })?;
        let mut fixed = tiers.fixed_load(LoadingCost::default(), rules);
        tiers.add_weights(&mut fixed, weights_bytes, rules);
        let mut program = Program {
            groups: classes.iter().map(|class| class.fraction).collect(),
            columns: Vec::new(),
            limits: Vec::new(),
            epochs: vec![Epoch { weight: 1.0, fixed }],
        };
        for split in &splits {
            let of_class = (&classes[split.class], split.candidate(classes));
            program.columns.push(column(tiers, split.class, 0, of_class));
        }
        let plan = |program: &Program| {
            let solution = program.solve(|best_seconds| {
                // A tie is never slower than plain reading. A trainer that is slower than the other tiers waits for its first
                // batch only.
                let tie = |best_seconds: f64, plain_seconds: f64| {
                    let trainer = tiers.trainer_seconds;
                    let tie_seconds =
                        (rules.pace_seconds(best_seconds, trainer) * (1.0 + TIE_RATIO)).min(plain_seconds);
                    rules.max_upstream_seconds(tie_seconds, trainer)
                };
                match best_seconds {
                    [best_seconds] => vec![tie(*best_seconds, plain_seconds)],
                    _ => tie_of_epochs(program, best_seconds, &plain),
                }
            });
            let mut fractions: Vec<Vec<f64>> = classes
                .iter()
                .map(|class| vec![0.0; class.candidates.len()])
                .collect();
            let used = splits
                .iter()
                .zip(&solution)
                .filter(|(_, fraction)| **fraction > FRACTION_EPSILON);
            for (split, fraction) in used {
                fractions[split.class][split.candidate] = *fraction;
            }
            Self::from_fractions(tiers, classes, fractions, rules)
        };
        let own = plan(&program);
        // A plan that takes longer now may pay later. If each epoch does best by itself, the cache is filled in idle time.
        add_later_epochs(&mut program, tiers, classes, rules, &splits);
        let investing = (program.epochs.len() > 1).then(|| plan(&program));
        let is_faster = |investing: &Self| investing.seconds(rules) < own.seconds(rules);
        Some(investing.filter(is_faster).unwrap_or(own))
    }

    /// The plan with these fractions. It fetches the weights that its splits need once, and loads the layers of each split once.
    pub fn from_fractions(tiers: &Tiers, classes: &[Class], fractions: Vec<Vec<f64>>, rules: &Rules) -> Self {
        let used: Vec<(&Candidate, f64)> = classes
            .iter()
            .zip(&fractions)
            .flat_map(|(class, fractions)| class.candidates.iter().zip(fractions.iter().copied()))
            .filter(|(_, fraction)| *fraction > 0.0)
            .collect();
        let loading_by_steps: BTreeMap<_, _> = used
            .iter()
            .map(|(candidate, _)| (candidate.stage.steps(), candidate.loading))
            .collect();
        let mut load = Load {
            trainer_seconds: tiers.trainer_seconds,
            ..tiers.fixed_load(loading_by_steps.into_values().sum(), rules)
        };
        let (mut bytes_per_sample, mut weights_bytes, mut tail_seconds) = (0.0, 0.0_f64, 0.0_f64);
        for (candidate, fraction) in used {
            load.add(fraction, &tiers.load(candidate));
            bytes_per_sample += fraction * candidate.bytes;
            weights_bytes = weights_bytes.max(candidate.weights_bytes);
            tail_seconds = tail_seconds.max(tiers.latency_seconds(candidate));
        }
        tiers.add_weights(&mut load, weights_bytes, rules);
        let later = LaterLoad::after(tiers, classes, rules, &fractions);
        Self {
            fractions,
            load,
            tail_seconds,
            bytes_per_sample,
            later,
        }
    }

    /// The fraction of samples that may try another split with this `load`: what fits into the idle time of this plan and 3 % of
    /// its time.
    pub fn trial_fraction(&self, load: &Load) -> f64 {
        let seconds = self.load.seconds() * (1.0 + TIE_RATIO);
        let tiers: [fn(&Load) -> f64; 5] = [
            |load| load.gateway_seconds,
            |load| load.gateway_path_seconds,
            |load| load.store_path_seconds,
            |load| load.link_seconds,
            |load| load.host_seconds,
        ];
        let fractions = tiers.map(|tier| match tier(load) {
            needed if needed > 0.0 => ((seconds - tier(&self.load)) / needed).max(0.0),
            _ => 1.0,
        });
        fractions.into_iter().fold(1.0, f64::min)
    }

    /// The ratio of samples that arrive as cropped JPEGs.
    fn cropped_ratio(&self, classes: &[Class]) -> f64 {
        let splits = classes
            .iter()
            .zip(&self.fractions)
            .flat_map(|(class, fractions)| class.candidates.iter().zip(fractions));
        let cropped = splits.filter(|(split, _)| split.stage == Stage::CroppedJpeg);
        cropped.map(|(_, fraction)| fraction).sum()
    }

    /// The plan that reads every object unchanged.
    pub fn plain(tiers: &Tiers, classes: &[Class], rules: &Rules) -> Self {
        let fraction = |class: &Class, candidate: &Candidate| {
            if candidate.stage.is_plain() {
                class.fraction
            } else {
                0.0
            }
        };
        let fractions = classes
            .iter()
            .map(|class| {
                class
                    .candidates
                    .iter()
                    .map(|candidate| fraction(class, candidate))
                    .collect()
            })
            .collect();
        Self::from_fractions(tiers, classes, fractions, rules)
    }
}

#[cfg(test)]
mod tests;
