//! Pipelines over some rows of an object: what a reader asks for whose samples are rows.

use std::ops::Range;

use super::Pipeline;
use crate::{Step, step::table::Select};

impl Pipeline {
    /// Why rows cannot be the samples of this pipeline: each row has to come of one row of the object, wherever it stands.
    /// `None` where they can.
    pub fn no_row_for_row(&self) -> Option<String> {
        let Some((Step::Select(select), rest)) = self.steps.split_first() else {
            return Some("the first step has to be `select`".to_owned());
        };
        if let Some(argument) = select.rows_or_limit() {
            return Some(format!("`{argument}` of `select` chooses rows by their place"));
        }
        let other = rest.iter().find(|step| !matches!(step, Step::Each(_)))?;
        Some(format!(
            "behind `select` there can be `each` alone, found `{}`",
            other.name()
        ))
    }

    /// The same over the rows of each object at these places. `None` for a pipeline that does not start with `select`.
    pub fn over(&self, rows: Range<u64>) -> Option<Self> {
        self.with_first(|select| select.over(rows))
    }

    /// The condition of the first step, if it has one.
    pub fn condition(&self) -> Option<&str> {
        match self.steps.first() {
            Some(Step::Select(select)) => select.condition(),
            _ => None,
        }
    }

    /// The places, in a column `name`, of the rows that the condition of the first step holds for. `None` for a pipeline that
    /// does not start with `select`.
    pub fn places(&self, name: &str) -> Option<Self> {
        let places = self.with_first(|select| select.places(name))?;
        Some(Self {
            steps: places.steps[..1].to_vec(),
            positions: places.positions[..1].to_vec(),
            kinds: places.kinds[..2].to_vec(),
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
