//! What is tried without being planned: before the first plan, since nothing is known, and beside a plan, since costs change.
//!
//! Objects and row groups differ in number. An epoch has thousands of objects: a trial costs little, and is chosen by the position
//! of the object, so that every rank and worker makes some without counting. A data set may have a few row groups, with a hundred
//! times the bytes: they are counted over all epochs, and the plan says how many trials it has time for.

use pushdown::plan::Stage;

use crate::measure::float;

/// Batches of objects that try both routes before the first plan.
pub(crate) const EXPLORATION_BATCHES: usize = 2;
/// Before the first plan, one of this many row groups is read plainly,
#[cfg(feature = "tables")]
const EXPLORATION_PERIOD: usize = 4;
/// among the first ones of an epoch.
#[cfg(feature = "tables")]
const EXPLORED_GROUPS: usize = 12;

/// One object in this many takes a route other than the planned one, in turn each route that is worth a trial. That is
/// enough to correct the plan within three batches of a change (tested in `plan::replanner`); with half as many, some
/// plans are still worse than plain reading by then.
pub(super) const TRIAL_STRIDE: u64 = 100;
/// At most one in this many row groups tries another stage than most.
#[cfg(feature = "tables")]
const GROUP_TRIAL_STRIDE: u64 = 16;
/// The longest stride, for trials that take far longer than planned routes. Without them a link that becomes faster would
/// go unnoticed.
pub(super) const MAX_TRIAL_STRIDE: u64 = 1024;

/// The golden ratio. Its multiples modulo 1 are spread evenly, for any start and any step.
const GOLDEN: f64 = 0.618_033_988_749_895;
/// The silver ratio. Its multiples are independent of those of the golden ratio.
const SILVER: f64 = 0.414_213_562_373_095;

/// The stages of a plan with their fractions, dealt out to samples or row groups by number so that any stretch of numbers has these
/// fractions.
#[derive(Debug, Clone, Default)]
pub(super) struct StageFractions(Vec<StageFraction>);

/// A planned stage.
#[derive(Debug, Clone, Copy)]
struct StageFraction {
    stage: Stage,
    /// The fraction at this and all earlier entries.
    cumulative_fraction: f64,
}

impl StageFractions {
    /// Stages with their fractions, whose sum is 1.
    pub(super) fn new(fractions: impl IntoIterator<Item = (Stage, f64)>) -> Self {
        let cumulative = fractions.into_iter().scan(0.0, |sum, (stage, fraction)| {
            *sum += fraction;
            Some(StageFraction {
                stage,
                cumulative_fraction: *sum,
            })
        });
        Self(cumulative.collect())
    }

    /// The stage of a sample or row group. Plain reading if there are no stages.
    pub(super) fn stage(&self, number: u64) -> Stage {
        let point = multiple(number, GOLDEN);
        let found = self.0.iter().find(|entry| point < entry.cumulative_fraction);
        found
            .or_else(|| self.0.last())
            .map_or(Stage::Object, |entry| entry.stage)
    }

    /// The lowest number of steps that the gateway runs.
    pub(super) fn first_stage(&self) -> Option<usize> {
        self.0.iter().map(|entry| entry.stage.steps()).min()
    }
}

/// A number's multiple of a ratio, modulo 1.
fn multiple(number: u64, ratio: f64) -> f64 {
    (float(number) * ratio).fract()
}

/// The number of the trial at the position of an object, if it is one; one in `stride` positions is. It chooses the stage that is tried.
pub(super) fn trial_number(position: u64, stride: u64) -> Option<u64> {
    /// How many numbers there are.
    const NUMBERS: f64 = 12.0;
    let among = multiple(position, SILVER) * float(stride);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "less than 12"
    )]
    (among < 1.0).then_some((among * NUMBERS) as u64)
}

/// Before the first plan: whether a row group is read plainly, by its number in the epoch.
#[cfg(feature = "tables")]
pub(super) const fn is_explored_group(number: usize) -> bool {
    number < EXPLORED_GROUPS && number % EXPLORATION_PERIOD == 1
}

/// Whether a row group is a trial, by its number over all epochs. The plan has time for this fraction of them.
#[cfg(feature = "tables")]
pub(super) fn is_group_trial(number: u64, fraction: f64) -> bool {
    let fraction = fraction.clamp(1.0 / float(MAX_TRIAL_STRIDE), 1.0 / float(GROUP_TRIAL_STRIDE));
    // The row groups at which the number of trials so far goes up.
    let trials = |groups: u64| (float(groups) * fraction).floor();
    trials(number + 1) > trials(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_stretch_has_the_fractions_of_the_plan() {
        let fractions = StageFractions::new([
            (Stage::Object, 0.3),
            (Stage::After(4), 0.0),
            (Stage::CroppedJpeg, 0.7),
        ]);
        assert_eq!(fractions.first_stage(), Some(0));
        for first in [0, 17, 1000] {
            let plain = (first..first + 100).filter(|number| fractions.stage(*number) == Stage::Object);
            assert!((28..=32).contains(&plain.count()), "from {first}");
            assert!((first..first + 100).all(|number| fractions.stage(number) != Stage::After(4)));
        }
        assert_eq!(StageFractions::default().stage(3), Stage::Object);
    }
}
