//! What is wrong with a row.

use std::fmt;

use crate::pipeline::excerpt;

/// What is wrong with a row of JSON lines, and under which name, if a value is.
#[derive(Debug)]
pub(super) struct Fault {
    what: String,
    place: Place,
}

#[derive(Debug)]
enum Place {
    /// Of the text, which is no JSON.
    Syntax,
    /// Of a value, whose name is not known yet.
    Value,
    /// Of the value of this name.
    Column(String),
}

impl Fault {
    pub(super) fn syntax(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            place: Place::Syntax,
        }
    }

    pub(super) fn value(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            place: Place::Value,
        }
    }

    /// The fault of a value under this name, or nested in it.
    pub(super) fn under(self, name: &str) -> Self {
        match self.place {
            Place::Value => Self {
                what: self.what,
                place: Place::Column(excerpt(name, 60).into_owned()),
            },
            _ => self,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.place {
            Place::Column(name) => write!(f, " in `{name}`"),
            Place::Syntax | Place::Value => Ok(()),
        }
    }
}
