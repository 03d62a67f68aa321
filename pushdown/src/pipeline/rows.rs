//! Pipelines over some rows of an object, for readers whose samples are rows.

use std::ops::Range;

use super::Pipeline;
use crate::{
    Error, ErrorKind, Result, Step,
    step::{RowwiseStep, TableReader},
};

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
