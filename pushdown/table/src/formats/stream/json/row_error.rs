//! Errors of rows of JSON lines.

use std::fmt;

use pushdown_core::language::excerpt;

/// The error of a row of JSON lines, with the name of the column if a value is wrong.
#[derive(Debug)]
pub(super) struct RowError {
    problem: String,
    scope: ErrorScope,
}

#[derive(Debug)]
enum ErrorScope {
    /// The text is not valid JSON.
    Syntax,
    /// A value is wrong, in a column that is not known yet.
    Value,
    /// A value of this column is wrong.
    Column(String),
}

impl RowError {
    pub(super) fn syntax(problem: impl Into<String>) -> Self {
        Self {
            problem: problem.into(),
            scope: ErrorScope::Syntax,
        }
    }

    pub(super) fn value(problem: impl Into<String>) -> Self {
        Self {
            problem: problem.into(),
            scope: ErrorScope::Value,
        }
    }

    /// Adds the name of the column to the error of a value. An inner column keeps its name.
    pub(super) fn in_column(self, name: &str) -> Self {
        match self.scope {
            ErrorScope::Value => Self {
                problem: self.problem,
                scope: ErrorScope::Column(excerpt(name, 60).into_owned()),
            },
            _ => self,
        }
    }
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)?;
        match &self.scope {
            ErrorScope::Column(name) => write!(f, " in column `{name}`"),
            ErrorScope::Syntax | ErrorScope::Value => Ok(()),
        }
    }
}
