//! The supported grammar of queries. Every accepted struct of the syntax tree is destructured field by field, so that a clause
//! that a later parser version adds does not compile until it is accepted or refused by name.

mod call;
mod expansion;
mod expression;
mod function;
mod operator;
mod pending;
mod query;
mod select;
mod spans;
mod table;
mod value;
mod window;

use datafusion::sql::sqlparser::{
    ast::{Expr, Query, SetExpr},
    tokenizer::Span,
};

use expansion::{Expansion, Place};
use pending::Pending;

/// An error for unsupported syntax.
pub(super) struct UnsupportedSyntax {
    pub(super) message: String,
    pub(super) span: Span,
}

type CheckResult = Result<(), UnsupportedSyntax>;

/// Checks a syntax tree. Keeps a list of the nodes to check instead of recursing, since an expression can be as deep as it has
/// operators.
#[derive(Default)]
struct GrammarChecker<'a> {
    queries: Pending<'a, Query>,
    bodies: Pending<'a, SetExpr>,
    expressions: Pending<'a, Expr>,
    expansion: Expansion,
    /// Of the node that is being checked.
    place: Place,
}

/// Checks a query.
pub(super) fn check_query(query: &Query) -> CheckResult {
    let mut checker = GrammarChecker::default();
    checker.queries.push(query);
    checker.check()
}

/// Checks an expression.
pub(super) fn check_expression(expr: &Expr) -> CheckResult {
    let mut checker = GrammarChecker::default();
    checker.expressions.push(expr);
    checker.check()
}

fn refuse(syntax: &str, span: Span) -> CheckResult {
    Err(UnsupportedSyntax {
        message: format!("{syntax} is not supported"),
        span,
    })
}

/// Refuses a clause that is present.
fn refuse_some<T>(clause: Option<&T>, syntax: &str, span: Span) -> CheckResult {
    refuse_any(clause.as_slice(), syntax, span)
}

/// Refuses a list of clauses that is not empty.
fn refuse_any<T>(clauses: &[T], syntax: &str, span: Span) -> CheckResult {
    refuse_if(!clauses.is_empty(), syntax, span)
}

fn refuse_if(is_present: bool, syntax: &str, span: Span) -> CheckResult {
    if is_present { refuse(syntax, span) } else { Ok(()) }
}

impl GrammarChecker<'_> {
    fn check(&mut self) -> CheckResult {
        loop {
            if let Some((place, expr)) = self.expressions.pop() {
                self.enter(place);
                self.expression(expr)?;
            } else if let Some((place, body)) = self.bodies.pop() {
                self.enter(place);
                self.body(body)?;
            } else if let Some((place, query)) = self.queries.pop() {
                self.enter(place);
                self.query(query)?;
            } else {
                return self.expansion.check();
            }
        }
    }

    /// Sets the place of the nodes that are added from now on.
    const fn enter(&mut self, place: Place) {
        self.place = place;
        self.queries.enter(place);
        self.bodies.enter(place);
        self.expressions.enter(place);
    }
}
