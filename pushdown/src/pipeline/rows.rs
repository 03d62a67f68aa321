//! Pipelines over some rows of an object, for readers whose samples are rows.

use std::{iter::once, ops::Range};

use super::Pipeline;
use crate::{
    Error, ErrorKind, Kind, Result, Step, limits,
    step::{RowwiseStep, TableReader},
};

/// A stage of the rows of a table: some steps of a pipeline have been applied, and some steps of the pipeline inside of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct RowStage {
    /// Steps that have been applied.
    pub steps: usize,
    /// Steps of the inner pipeline of the next step that have been applied; 0 between steps.
    pub inner: usize,
}

impl Pipeline {
    /// Checks that rows can be samples: each output row has to follow from one row of the object, at any position.
    ///
    /// # Errors
    /// [`InvalidPipeline`](ErrorKind::InvalidPipeline) with the reason.
    pub fn check_row_preserving(&self) -> Result<()> {
        let Some((first, rest)) = self.steps.split_first() else {
            return Err(Error::internal("a pipeline has no steps"));
        };
        let Some(selection) = first.table_reader().and_then(TableReader::row_selection) else {
            return Err(not_row_preserving(format!(
                "expected `select` as first step, found `{}`",
                first.name()
            )));
        };
        if let Some(argument) = selection.positional_argument {
            return Err(not_row_preserving(format!(
                "`{argument}` of `{}` chooses rows by position",
                first.name()
            )));
        }
        let keeps_all_rows = |step: &&Step| step.rowwise().is_some_and(RowwiseStep::keeps_all_rows);
        match rest.iter().find(|step| !keeps_all_rows(step)) {
            None => Ok(()),
            Some(other) => Err(not_row_preserving(format!(
                "expected only `each` after `{}`, found `{}`",
                first.name(),
                other.name()
            ))),
        }
    }

    /// The same pipeline over a range of the rows of an object. `None` if the first step is not `select`.
    pub fn with_rows(&self, rows: Range<u64>) -> Option<Self> {
        self.with_first(|first| first.with_rows(rows))
    }

    /// The condition of the first step, if any.
    pub fn condition(&self) -> Option<&str> {
        let reader = self.steps.first()?.table_reader()?;
        reader.row_selection()?.condition
    }

    /// A pipeline that returns the numbers of the rows that satisfy the condition of the first step, in a column
    /// `column_name`. `None` if the first step is not `select`.
    pub fn matching_rows(&self, column_name: &str) -> Option<Self> {
        let matching = self.with_first(|first| first.row_numbers(column_name))?;
        Some(Self {
            steps: matching.steps[..1].to_vec(),
            positions: matching.positions[..1].to_vec(),
            kinds: matching.kinds[..2].to_vec(),
        })
    }

    /// The stages at which rows can be handed over, in order, beginning with the stored object: after each step, and inside of
    /// `each` wherever its values can be part of a table.
    pub fn row_stages(&self) -> Vec<RowStage> {
        let stages = |(steps, step): (usize, &Step)| {
            let inner_steps = step.inner_steps().map_or(0..0, |inner| inner.steps);
            let inside = (inner_steps.start + 1..inner_steps.end).filter(|inner| step.cut(*inner).is_some());
            let inside = inside.map(move |inner| RowStage { steps, inner });
            once(RowStage { steps, inner: 0 })
                .chain(inside)
                .collect::<Vec<_>>()
        };
        let end = RowStage {
            steps: self.len(),
            inner: 0,
        };
        self.steps
            .iter()
            .enumerate()
            .flat_map(stages)
            .chain([end])
            .collect()
    }

    /// This pipeline with the boundary between two steps at a stage of its rows, and the number of steps before the boundary. The
    /// results are the same. `None` if rows cannot be handed over at that stage, or if its text, with the inner pipeline in both parts,
    /// is longer than that of a pipeline may be.
    pub fn cut_rows(&self, stage: RowStage) -> Option<(Self, usize)> {
        let RowStage { steps, inner } = stage;
        if inner == 0 {
            return (steps <= self.len()).then(|| (self.clone(), steps));
        }
        let (first, second) = self.steps.get(steps)?.cut(inner)?;
        let mut cut = self.clone();
        drop(cut.steps.splice(steps..=steps, [first, second]));
        cut.positions.insert(steps, self.positions[steps]);
        cut.kinds = cut.kinds_for(&Kind::object()).ok()?;
        let has_valid_size =
            cut.len() <= limits::MAX_STEPS && cut.to_string().len() <= limits::MAX_PIPELINE_BYTES;
        has_valid_size.then_some((cut, steps + 1))
    }

    /// The last step that has been applied at a stage of the rows: one of the inner pipeline if the stage is inside of a step. `None` at
    /// the first stage, and beyond the last one.
    pub fn last_step(&self, stage: RowStage) -> Option<&Step> {
        let RowStage { steps, inner } = stage;
        if inner == 0 {
            return self.steps.get(steps.checked_sub(1)?);
        }
        let step = self.steps.get(steps)?;
        let applied = inner.checked_sub(step.inner_steps()?.steps.start)?;
        step.inner().get(applied.checked_sub(1)?)
    }

    /// The kind of the values that an `each` computes in a column, the last one if there are several. `None` if there is none.
    pub fn column_kind(&self, column: &str) -> Option<&Kind> {
        let mut inner = self.steps.iter().rev().filter_map(Step::inner_steps);
        let inner = inner.find(|inner| inner.column == column)?;
        inner.pipeline.kind(inner.steps.end)
    }

    fn with_first(&self, change: impl FnOnce(&Step) -> Option<Step>) -> Option<Self> {
        let first = change(self.steps.first()?)?;
        let mut changed = self.clone();
        changed.steps[0] = first;
        Some(changed)
    }
}

fn not_row_preserving(message: String) -> Error {
    Error::new(ErrorKind::InvalidPipeline, message)
}
