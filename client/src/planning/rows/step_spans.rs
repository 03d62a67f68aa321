//! The steps of a planner that contain steps inside of `each`.

use std::ops::Range;

use pushdown::{Pipeline, Step, pipeline::RowStage};

use super::InnerTime;

/// Assigns times of steps to the stages around them.
#[derive(Debug)]
pub(super) struct StepSpans {
    /// Where rows can be handed over.
    stages: Vec<RowStage>,
    /// Steps with a pipeline inside.
    each: Vec<EachStep>,
}

/// A step with a pipeline inside.
#[derive(Debug)]
struct EachStep {
    column: String,
    /// Index of the step.
    index: usize,
    /// The steps inside that it runs.
    steps: Range<usize>,
}

impl StepSpans {
    /// Of a pipeline whose rows can be handed over at these stages, in ascending order.
    pub(super) fn new(pipeline: &Pipeline, stages: Vec<RowStage>) -> Self {
        let each = |(index, step): (usize, &Step)| {
            let inner = step.inner_steps()?;
            Some(EachStep {
                column: inner.column.to_owned(),
                index,
                steps: inner.steps,
            })
        };
        let steps = pipeline.steps().iter().enumerate();
        Self {
            stages,
            each: steps.filter_map(each).collect(),
        }
    }

    /// The seconds of all steps from `stage` on, by steps of the planner that ran as one.
    pub(super) fn of_rest(&self, stage: usize, times: &[InnerTime]) -> Vec<(Range<usize>, f64)> {
        let last = self.stages.len().saturating_sub(1);
        // Steps without a pipeline inside take no time worth mentioning.
        let mut spans: Vec<_> = (stage..last).map(|step| (step..step + 1, 0.0)).collect();
        spans.extend(times.iter().filter_map(|time| {
            let steps = self.steps_of(time)?;
            (stage <= steps.start).then_some((steps, time.time.as_secs_f64()))
        }));
        spans.sort_by_key(|(steps, _)| steps.start);
        let mut merged: Vec<(Range<usize>, f64)> = Vec::new();
        for (steps, seconds) in spans {
            match merged.last_mut() {
                Some((known, sum)) if steps.start < known.end => {
                    known.end = known.end.max(steps.end);
                    *sum += seconds;
                }
                _ => merged.push((steps, seconds)),
            }
        }
        merged
    }

    /// The steps of the planner that contain the steps of a time.
    fn steps_of(&self, time: &InnerTime) -> Option<Range<usize>> {
        let InnerTime { column, steps, .. } = time;
        let is_step = |each: &&EachStep| {
            each.column == *column && each.steps.start <= steps.start && steps.end <= each.steps.end
        };
        let each = self.each.iter().find(is_step)?;
        let begin = RowStage {
            steps: each.index,
            inner: steps.start,
        };
        let end = if steps.end < each.steps.end {
            RowStage {
                steps: each.index,
                inner: steps.end,
            }
        } else {
            RowStage {
                steps: each.index + 1,
                inner: 0,
            }
        };
        let first = self
            .stages
            .partition_point(|stage| *stage <= begin)
            .checked_sub(1)?;
        let last = self.stages.partition_point(|stage| *stage < end);
        (first < last && last < self.stages.len()).then_some(first..last)
    }
}
