//! The size of a query once each name of WITH, and of a named window, stands for what it names. The planner puts a copy in
//! the place of each name, so that a query that names another one twice, which names a third one twice, contains four of it:
//! planning such a chain takes time exponential in its length.

use std::ops::AddAssign;

use datafusion::sql::sqlparser::{
    ast::{Ident, ObjectName},
    tokenizer::Span,
};

use super::{CheckResult, UnsupportedSyntax};
use pushdown_core::limits::{MAX_QUERY_READS, MAX_QUERY_SELECTS, MAX_STAR_COLUMNS};

/// Where a node of the syntax tree is: the fragment that contains it, and the names that it can use.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    fragment: usize,
    /// The innermost name; `None` if there is none.
    scope: Option<usize>,
}

/// What a name can stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameKind {
    Query,
    Window,
}

/// The fragments of a query: the first is the query itself, each other one has a name.
#[derive(Debug)]
pub(super) struct Expansion {
    fragments: Vec<Fragment>,
    names: Vec<Name>,
}

#[derive(Debug, Default)]
struct Fragment {
    /// Its parts, each at its position.
    parts: Vec<(Span, Part)>,
    /// The largest number of columns of its SELECTs, without `*`.
    columns: usize,
    /// The number of `*`.
    stars: usize,
    /// Its size, once it is counted.
    size: Option<Size>,
}

#[derive(Debug, Clone, Copy)]
enum Part {
    Select,
    /// A table that is not a query of WITH.
    Read,
    Fragment(usize),
}

/// A name of a fragment.
#[derive(Debug)]
struct Name {
    kind: NameKind,
    text: String,
    fragment: usize,
    /// The next name to compare with.
    outer: Option<usize>,
}

/// Numbers of parts, with fragments in the place of their names.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    selects: usize,
    reads: usize,
    /// Columns that queries compute, without those of the object.
    columns: usize,
}

impl Default for Expansion {
    fn default() -> Self {
        Self {
            fragments: vec![Fragment::default()],
            names: Vec::new(),
        }
    }
}

impl Expansion {
    /// Adds a SELECT or VALUES.
    pub(super) fn add_select(&mut self, place: Place, span: Span) {
        self.add(place, span, Part::Select);
    }

    /// Adds the columns of a SELECT or VALUES, and its `*`.
    pub(super) fn add_columns(&mut self, place: Place, columns: usize, stars: usize) {
        let fragment = &mut self.fragments[place.fragment];
        fragment.columns = fragment.columns.max(columns);
        fragment.stars += stars;
    }

    /// Adds a table of FROM. Only a name of a single part can be a query of WITH, and names are case-sensitive.
    pub(super) fn add_table(&mut self, place: Place, name: &ObjectName, span: Span) {
        let identifiers = name.0.iter().map(|part| part.as_ident());
        let texts: Vec<&str> = identifiers.flatten().map(|ident| ident.value.as_str()).collect();
        let part = self.find(place, NameKind::Query, &texts.join("."));
        self.add(place, span, part.map_or(Part::Read, Part::Fragment));
    }

    /// Adds a use of a named window. An unknown name is an error of the planner.
    pub(super) fn add_window(&mut self, place: Place, name: &Ident) {
        if let Some(fragment) = self.find(place, NameKind::Window, &name.value) {
            self.add(place, name.span, Part::Fragment(fragment));
        }
    }

    /// A new fragment at `place`, which sees the names there.
    pub(super) fn fragment(&mut self, place: Place) -> Place {
        self.fragments.push(Fragment::default());
        Place {
            fragment: self.fragments.len() - 1,
            ..place
        }
    }

    /// The place that sees `fragment` by a name, too.
    pub(super) fn named(&mut self, place: Place, kind: NameKind, name: &Ident, fragment: Place) -> Place {
        self.names.push(Name {
            kind,
            text: name.value.clone(),
            fragment: fragment.fragment,
            outer: place.scope,
        });
        Place {
            scope: Some(self.names.len() - 1),
            ..place
        }
    }

    /// Checks the size of each fragment, since the planner plans a query of WITH even if nothing names it, and the columns of all
    /// `*`. Those of the object are checked when it is known.
    pub(super) fn check(&mut self) -> CheckResult {
        let mut columns = 0_usize;
        for index in 0..self.fragments.len() {
            let position = self.fragments[index].parts.first().map(|(span, _)| *span);
            let size = self.count(index)?;
            let added = size.columns.saturating_mul(self.fragments[index].stars);
            columns = columns.saturating_add(added);
            if columns > MAX_STAR_COLUMNS {
                return Err(UnsupportedSyntax {
                    message: format!(
                        "`*` selects more than {MAX_STAR_COLUMNS} columns of inner queries in all: name the columns"
                    ),
                    span: position.unwrap_or_else(Span::empty),
                });
            }
        }
        Ok(())
    }

    fn add(&mut self, place: Place, span: Span, part: Part) {
        self.fragments[place.fragment].parts.push((span, part));
    }

    fn find(&self, place: Place, kind: NameKind, text: &str) -> Option<usize> {
        let mut next = place.scope;
        while let Some(name) = next.map(|index| &self.names[index]) {
            if name.kind == kind && name.text == text {
                return Some(name.fragment);
            }
            next = name.outer;
        }
        None
    }

    /// The size of a fragment. A fragment names only those defined before it or inside of it, so that the recursion ends: it is
    /// at most as deep as there are queries.
    fn count(&mut self, index: usize) -> Result<Size, UnsupportedSyntax> {
        if let Some(size) = self.fragments[index].size {
            return Ok(size);
        }
        // The tree is not walked in the order of the text.
        let mut parts = self.fragments[index].parts.clone();
        parts.sort_by_key(|(span, _)| span.start);
        let mut size = Size::default();
        for (span, part) in &parts {
            size += match part {
                Part::Select => Size {
                    selects: 1,
                    ..Size::default()
                },
                Part::Read => Size {
                    reads: 1,
                    ..Size::default()
                },
                Part::Fragment(fragment) => self.count(*fragment)?,
            };
            let excess = if size.selects > MAX_QUERY_SELECTS {
                format!("{MAX_QUERY_SELECTS} SELECTs")
            } else if size.reads > MAX_QUERY_READS {
                format!("{MAX_QUERY_READS} tables in FROM")
            } else {
                continue;
            };
            return Err(UnsupportedSyntax {
                message: format!(
                    "the query has more than {excess}, with each name of WITH replaced by its query: name them less often"
                ),
                span: *span,
            });
        }
        let (columns, stars) = (self.fragments[index].columns, self.fragments[index].stars);
        let inner = if stars > 0 { size.columns } else { 0 };
        size.columns = columns.saturating_add(inner);
        self.fragments[index].size = Some(size);
        Ok(size)
    }
}

impl AddAssign for Size {
    fn add_assign(&mut self, other: Self) {
        self.selects = self.selects.saturating_add(other.selects);
        self.reads = self.reads.saturating_add(other.reads);
        // The parts of a union have the same columns.
        self.columns = self.columns.max(other.columns);
    }
}
