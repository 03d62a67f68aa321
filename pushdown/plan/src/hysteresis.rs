//! Replaces the plan in force only for a clearly better one.

use super::{Candidate, Class, Plan, Rules, Stage, Tiers};

/// Speed-up that replaces a plan. Smaller differences are measurement noise.
const MIN_SPEEDUP_RATIO: f64 = 0.04;
/// Reduction of the bytes sent that replaces a plan.
const MIN_BYTES_SAVED_RATIO: f64 = 0.10;

/// The ratio of samples that may be cropped in vain. Cropping costs CPU time.
const MAX_NEEDLESS_CROP_RATIO: f64 = 0.10;

/// The plan in force.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Hysteresis {
    /// The splits in use, by class.
    splits: Option<Vec<Vec<SplitInUse>>>,
}

/// A split in use, and its fraction of the samples of the class.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SplitInUse {
    stage: Stage,
    class_ratio: f64,
}

impl Hysteresis {
    /// The plan to continue with, from the current observations. The plan in force stays while it is about as good as the best
    /// one and no slower than plain reading.
    pub(super) fn decide(&mut self, tiers: &Tiers, classes: &[Class], rules: &Rules) -> Plan {
        let best = Plan::best(tiers, classes, rules);
        let seconds = best.seconds(rules);
        let plain = Plan::plain(tiers, classes, rules).seconds(rules);
        if let Some(current) = self.current(tiers, classes, rules)
            && current.seconds(rules) <= (seconds * (1.0 + MIN_SPEEDUP_RATIO)).min(plain)
            && current.bytes_per_sample * (1.0 - MIN_BYTES_SAVED_RATIO) <= best.bytes_per_sample
            && current.cropped_ratio(classes) <= best.cropped_ratio(classes) + MAX_NEEDLESS_CROP_RATIO
        {
            return current;
        }
        let splits = classes.iter().zip(&best.fractions).map(|(class, fractions)| {
            let used = class
                .candidates
                .iter()
                .zip(fractions)
                .filter(|(_, fraction)| **fraction > 0.0);
            used.map(|(split, fraction)| SplitInUse {
                stage: split.stage,
                class_ratio: fraction / class.fraction,
            })
            .collect()
        });
        self.splits = Some(splits.collect());
        best
    }

    /// The plan in force at the current costs; `None` if a split is no longer possible.
    fn current(&self, tiers: &Tiers, classes: &[Class], rules: &Rules) -> Option<Plan> {
        let splits = self
            .splits
            .as_ref()
            .filter(|splits| splits.len() == classes.len())?;
        let mut fractions = Vec::new();
        for (class, splits) in classes.iter().zip(splits) {
            let candidates = &class.candidates;
            let object_bytes = class.object()?.bytes;
            let mut class_fractions = vec![0.0; candidates.len()];
            for in_use in splits {
                let index = candidates.iter().position(|split| split.stage == in_use.stage)?;
                let split: &Candidate = &candidates[index];
                if !in_use.stage.is_plain()
                    && (split.bytes > rules.max_expand * object_bytes || !tiers.can_run(split))
                {
                    return None;
                }
                class_fractions[index] = in_use.class_ratio * class.fraction;
            }
            fractions.push(class_fractions);
        }
        Some(Plan::from_fractions(tiers, classes, fractions, rules))
    }
}
