//! Epochs that follow the current one. What it requests at a split may be in the result cache of the gateway then.

use super::{
    Candidate, Class, InFlight, Load, LoadingCost, Plan, Rules, SplitIndex, Tiers, column,
    solve::{Epoch, Limit, Program},
};

/// The epochs after the current one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LaterEpochs {
    /// Number of epochs.
    pub count: f64,
    /// Samples of each epoch.
    pub samples: f64,
}

/// The most later epochs that are planned one by one. Those after them are assumed to be like the last one.
const MAX_PLANNED_EPOCHS: usize = 8;
/// A fraction of samples by which a cache has to grow to make the next epoch another one.
const MIN_GROWTH_FRACTION: f64 = 1e-3;

/// What later epochs cost with the plans that are the fastest then.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaterLoad {
    /// Mean time of each tier per sample in the last epoch.
    pub load: Load,
    /// Seconds per sample, as the mean of all epochs.
    pub seconds: f64,
}

impl LaterLoad {
    /// The later epochs after one with these fractions; `None` if there are none. What each of them requests may be cached in those
    /// after it.
    pub(super) fn after(
        tiers: &Tiers,
        classes: &[Class],
        rules: &Rules,
        fractions: &[Vec<f64>],
    ) -> Option<Self> {
        if rules.later_weight() <= 0.0 {
            return None;
        }
        let rules_then = rules.of_later_epoch();
        let (mut requested, mut seconds, mut epochs_left) = (fractions.to_vec(), 0.0, rules.later.count);
        let mut number = 0;
        loop {
            number += 1;
            let (later_classes, plan) = later_plan(tiers, classes, rules, &requested);
            let growth = add_requests(&mut requested, classes, &later_classes, &plan);
            let is_last = growth < MIN_GROWTH_FRACTION || number == MAX_PLANNED_EPOCHS || epochs_left <= 1.0;
            let epochs = if is_last { epochs_left } else { 1.0 };
            seconds += epochs * plan.seconds(&rules_then);
            epochs_left -= epochs;
            if is_last {
                return Some(Self {
                    load: plan.load,
                    seconds: seconds / rules.later.count,
                });
            }
        }
    }
}

/// Adds what the plan of a later epoch requests without finding it in the cache. Returns the fraction of samples that this adds.
pub(super) fn add_requests(
    requested: &mut [Vec<f64>],
    classes: &[Class],
    later: &[Class],
    plan: &Plan,
) -> f64 {
    let mut growth = 0.0;
    for (index, class) in classes.iter().enumerate() {
        for (split, requested) in class.candidates.iter().zip(&mut requested[index]) {
            let is_new = |then: &Candidate| then.stage == split.stage && then.hits.ratio <= split.hits.ratio;
            let fractions = later[index].candidates.iter().zip(&plan.fractions[index]);
            let added: f64 = fractions
                .filter(|(then, _)| is_new(then))
                .map(|(_, fraction)| fraction)
                .sum();
            let sum = (*requested + added).min(class.fraction);
            if split.hits.later_ratio > split.hits.ratio {
                growth += sum - *requested;
            }
            *requested = sum;
        }
    }
    growth
}

impl Rules {
    /// The factor of the time of a sample in a later epoch: a remaining sample is read once in each of them. Samples that were read
    /// before in the current epoch do not depend on the plan.
    pub(super) fn later_weight(&self) -> f64 {
        let has_samples = self.later.samples > 0.0;
        if has_samples && self.later.count.is_finite() {
            self.later.count.max(0.0)
        } else {
            0.0
        }
    }

    /// The rules of a later epoch: nothing in flight, and all weights on the host.
    pub(super) fn of_later_epoch(&self) -> Self {
        Self {
            samples_left: self.later.samples,
            weights_in_flight: false,
            in_flight: InFlight::default(),
            later: LaterEpochs::default(),
            ..*self
        }
    }
}

/// Adds the fractions of later epochs to the program of the current epoch, whose columns are the `splits`. Those epochs may use other
/// splits; what is cached for them is limited by what the current epoch requests.
pub(super) fn add_later_epochs(
    program: &mut Program,
    tiers: &Tiers,
    classes: &[Class],
    rules: &Rules,
    splits: &[SplitIndex],
) {
    let weight = rules.later_weight();
    if weight <= 0.0 {
        return;
    }
    for epoch in &mut program.epochs {
        epoch.weight = 1.0 / (1.0 + weight);
    }
    program.epochs.push(Epoch {
        weight: weight / (1.0 + weight),
        fixed: tiers.fixed_load(LoadingCost::default(), &rules.of_later_epoch()),
    });
    program.groups.extend(classes.iter().map(|class| class.fraction));
    let group = |split: &SplitIndex| classes.len() + split.class;
    for split in splits {
        let candidate = split.candidate(classes).in_later_epoch();
        program.columns.push(column(
            tiers,
            group(split),
            1,
            (&classes[split.class], &candidate),
        ));
    }
    for (requested, split) in splits.iter().enumerate() {
        let candidate = split.candidate(classes);
        if let Some(cached) = candidate.cached_in_later_epoch() {
            program.limits.push(Limit {
                column: program.columns.len(),
                max: 0.0,
                ratio: candidate.hits.later_ratio,
                other: Some(requested),
            });
            program
                .columns
                .push(column(tiers, group(split), 1, (&classes[split.class], &cached)));
        }
    }
}

/// The fastest plan of a later epoch, after the current one has requested these fractions, with its classes: each has its candidates, and
/// after them those for cached samples. Weights and layers that the current epoch does not need are not available.
pub(super) fn later_plan(
    tiers: &Tiers,
    classes: &[Class],
    rules: &Rules,
    fractions: &[Vec<f64>],
) -> (Vec<Class>, Plan) {
    let used = || {
        let candidates = classes.iter().zip(fractions);
        let candidates = candidates.flat_map(|(class, fractions)| class.candidates.iter().zip(fractions));
        candidates
            .filter(|(_, fraction)| **fraction > 0.0)
            .map(|(split, _)| split)
    };
    let weights_bytes = used().map(|split| split.weights_bytes).fold(0.0, f64::max);
    let is_ready = |split: &Candidate| {
        let has_weights = rules.weights_in_flight || split.weights_bytes <= weights_bytes;
        let has_layers =
            !split.has_loading_cost() || used().any(|used| used.stage.steps() == split.stage.steps());
        has_weights && has_layers
    };
    let mut program = Program {
        groups: classes.iter().map(|class| class.fraction).collect(),
        epochs: vec![Epoch {
            weight: 1.0,
            fixed: tiers.fixed_load(LoadingCost::default(), &rules.of_later_epoch()),
        }],
        ..Program::default()
    };
    let mut later_classes = Vec::new();
    for (index, (class, fractions)) in classes.iter().zip(fractions).enumerate() {
        let max_bytes = class
            .object()
            .map_or(f64::INFINITY, |stored| rules.max_expand * stored.bytes);
        let fits =
            |split: &Candidate| split.stage.is_plain() || split.bytes <= max_bytes && tiers.can_run(split);
        let mut candidates = Vec::new();
        let mut add = |candidate: Candidate, max: Option<f64>| {
            if let Some(max) = max {
                program.limits.push(Limit {
                    column: program.columns.len(),
                    max,
                    ratio: 0.0,
                    other: None,
                });
            }
            program.columns.push(column(tiers, index, 0, (class, &candidate)));
            candidates.push(candidate);
        };
        let taken = class.candidates.iter().zip(fractions);
        for (split, fraction) in taken.clone() {
            // What the current epoch uses can be used again.
            if *fraction > 0.0 || fits(split) && is_ready(split) {
                add(split.in_later_epoch(), None);
            }
        }
        for (split, fraction) in taken.filter(|(_, fraction)| **fraction > 0.0) {
            if let Some(cached) = split.cached_in_later_epoch() {
                add(cached, Some(split.hits.later_ratio * fraction));
            }
        }
        later_classes.push(Class {
            fraction: class.fraction,
            candidates,
        });
    }
    let mut solution = program.solve(<[f64]>::to_vec).into_iter();
    let later_fractions = later_classes
        .iter()
        .map(|class| solution.by_ref().take(class.candidates.len()).collect())
        .collect();
    let plan = Plan::from_fractions(tiers, &later_classes, later_fractions, &rules.of_later_epoch());
    (later_classes, plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_epochs_have_their_own_rules() {
        let rules = Rules {
            samples_left: 10.0,
            weights_in_flight: true,
            later: LaterEpochs {
                count: 2.0,
                samples: 1_000.0,
            },
            ..Rules::default()
        };
        assert!((rules.later_weight() - 2.0).abs() < 1e-9);
        let later = rules.of_later_epoch();
        assert!((later.samples_left - 1_000.0).abs() < 1e-9 && !later.weights_in_flight);
        assert!(later.later_weight().abs() < 1e-9);
        assert!(Rules::default().later_weight().abs() < 1e-9);
    }
}
