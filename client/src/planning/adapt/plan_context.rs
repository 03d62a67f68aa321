//! What is known of a data set before any plan.

use pushdown::{Kind, Pipeline, plan::Stage};

use super::float;
use crate::planning::cropped::CropEstimate;

/// What all plans of a data set have in common.
#[derive(Debug)]
pub(super) struct PlanContext {
    /// The most bytes of an object of each class; any number for the last.
    pub(super) bounds: Vec<u64>,
    /// What is known in advance of a value's bytes, by stage.
    pub(super) values: Vec<ValueSize>,
    /// The stages that trials use: the last stage, the last one before any model, and the one with the fewest bytes if both have
    /// more. Pixels of bytes may fit where the floats after them do not. After them a cropped JPEG, if there are any.
    pub(super) trial_stages: Vec<Stage>,
    /// What a pipeline reads of JPEGs; `None` if nothing is ever cropped.
    pub(super) cropped: Option<CropEstimate>,
    /// The most bytes of a value, as a multiple of its object's bytes.
    pub(super) max_expand: f64,
}

/// What is known in advance of the bytes of a stage's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueSize {
    Known(u64),
    /// Unknown. The request states a maximum, and the gateway sends the object in place of a larger value.
    Bounded,
    /// Unknown, and the gateway streams rows from an object that it never holds whole.
    Table,
}

impl PlanContext {
    /// `None` if all values are tables, so that the gateway cannot help.
    pub(super) fn new(pipeline: &Pipeline, bounds: Vec<u64>, max_expand: f64) -> Option<Self> {
        let size = |kind: &Kind| match (kind, kind.bytes()) {
            (_, Some(bytes)) => ValueSize::Known(bytes),
            (Kind::Table(_), None) => ValueSize::Table,
            _ => ValueSize::Bounded,
        };
        let values: Vec<_> = pipeline.kinds().iter().map(size).collect();
        let model = pipeline.steps().iter().position(|step| !step.models().is_empty());
        let last = |until: usize| (1..=until).rev().find(|stage| values[*stage] != ValueSize::Table);
        let mut stages = vec![last(pipeline.len())?];
        stages.extend(model.and_then(last));
        stages.extend(smaller_stage(&values, &stages));
        stages.dedup();
        stages.retain(|stage| u8::try_from(*stage).is_ok());
        // A crop has fewer bytes than its object, and how many is only known then.
        let cropped = CropEstimate::new(pipeline).filter(|_| max_expand >= 1.0);
        let trial_stages = stages.into_iter().map(Stage::after);
        Some(Self {
            bounds,
            trial_stages: trial_stages.chain(cropped.map(|_| Stage::CroppedJpeg)).collect(),
            cropped,
            values,
            max_expand,
        })
    }

    /// The class of an object of `stored` bytes; the last one if that is unknown.
    pub(super) fn class(&self, stored: Option<u64>) -> usize {
        let last = self.bounds.len().saturating_sub(1);
        let fits = |stored: u64| self.bounds.iter().position(|bound| stored <= *bound);
        stored.and_then(fits).unwrap_or(last)
    }

    /// Whether a value of that stage is within its maximum, or can be kept within it.
    pub(super) fn fits(&self, stage: Stage, stored: u64) -> bool {
        let steps = match stage {
            Stage::Object => return true,
            Stage::CroppedJpeg => return self.cropped.is_some(),
            Stage::After(steps) => steps,
        };
        match self.values.get(steps) {
            Some(ValueSize::Known(value)) => float(*value) <= float(stored) * self.max_expand,
            Some(ValueSize::Bounded) => true,
            Some(ValueSize::Table) | None => false,
        }
    }

    /// Why no object of at most `stored` bytes is tried at the gateway. `None` if one is.
    pub(super) fn reason_against_trials(&self, stored: u64, may_crop: bool) -> Option<String> {
        let stages = || {
            let stages = self.trial_stages.iter().copied();
            stages.filter(move |stage| may_crop || *stage != Stage::CroppedJpeg)
        };
        if stages().any(|stage| self.fits(stage, stored)) {
            return None;
        }
        let sizes = stages().filter_map(|stage| {
            let size = self.values.get(stage.steps());
            size.and_then(|size| match size {
                ValueSize::Known(bytes) => Some(*bytes),
                ValueSize::Bounded | ValueSize::Table => None,
            })
        });
        let smallest = sizes.min()?;
        let factor = self.max_expand;
        Some(format!(
            "values are too large: expected at most {factor} times the bytes of their objects (max_expand), found {smallest} bytes \
             for objects of at most {stored} bytes"
        ))
    }

    /// The most bytes that a value of that stage may have, if its size is not known in advance.
    pub(super) fn max_value_bytes(&self, stage: u8, stored: u64) -> Option<u64> {
        let bounded = stage > 0 && self.values.get(usize::from(stage)) == Some(&ValueSize::Bounded);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a size, rounded down"
        )]
        bounded.then(|| (float(stored) * self.max_expand) as u64)
    }
}

/// The stage with the fewest bytes, and the last of equal ones. `None` unless it has fewer than every stage of `tried`.
fn smaller_stage(values: &[ValueSize], tried: &[usize]) -> Option<usize> {
    let known = |stage: usize| match values[stage] {
        ValueSize::Known(bytes) => Some(bytes),
        ValueSize::Bounded | ValueSize::Table => None,
    };
    let stages = (1..values.len())
        .rev()
        .filter_map(|stage| Some((known(stage)?, stage)));
    let (fewest, stage) = stages.min_by_key(|(bytes, _)| *bytes)?;
    let has_more = |tried: &usize| known(*tried).is_some_and(|bytes| bytes > fewest);
    tried.iter().all(has_more).then_some(stage)
}
