//! Pipelines over some rows of an object, for readers whose samples are rows.

use std::ops::Range;

use super::Pipeline;
use crate::{Error, ErrorKind, Result, Step, step::table::Select};

impl Pipeline {
    /// Checks that rows can be samples: each output row has to follow from one row of the object, at any position.
    ///
    /// # Errors
    /// [`InvalidPipeline`](ErrorKind::InvalidPipeline) with the reason.
    pub fn check_row_preserving(&self) -> Result<()> {
        let Some((Step::Select(select), rest)) = self.steps.split_first() else {
            let found = self.steps.first().map_or("", Step::name);
            return Err(not_row_preserving(format!(
                "expected `select` as first step, found `{found}`"
            )));
        };
        if let Some(argument) = select.rows_or_limit() {
            return Err(not_row_preserving(format!(
                "`{argument}` of `select` chooses rows by position"
            )));
        }
        match rest.iter().find(|step| !matches!(step, Step::Each(_))) {
            None => Ok(()),
            Some(other) => Err(not_row_preserving(format!(
                "expected only `each` after `select`, found `{}`",
                other.name()
            ))),
        }
    }

    /// The same pipeline over a range of the rows of an object. `None` if the first step is not `select`.
    pub fn with_rows(&self, rows: Range<u64>) -> Option<Self> {
        self.with_first(|select| select.with_rows(rows))
    }

    /// The condition of the first step, if any.
    pub fn condition(&self) -> Option<&str> {
        match self.steps.first() {
            Some(Step::Select(select)) => select.condition(),
            _ => None,
        }
    }

    /// A pipeline that returns the numbers of the rows that satisfy the condition of the first step, in a column
    /// `column_name`. `None` if the first step is not `select`.
    pub fn matching_rows(&self, column_name: &str) -> Option<Self> {
        let matching = self.with_first(|select| select.row_numbers(column_name))?;
        Some(Self {
            steps: matching.steps[..1].to_vec(),
            positions: matching.positions[..1].to_vec(),
            kinds: matching.kinds[..2].to_vec(),
        })
    }

    fn with_first(&self, change: impl FnOnce(&Select) -> Select) -> Option<Self> {
        let Some(Step::Select(select)) = self.steps.first() else {
            return None;
        };
        let mut changed = self.clone();
        changed.steps[0] = Step::Select(change(select));
        Some(changed)
    }
}

fn not_row_preserving(message: String) -> Error {
    Error::new(ErrorKind::InvalidPipeline, message)
}
