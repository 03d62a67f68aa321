//! Comparisons by value: times, timestamps, dates, spans and numbers of any unit and scale, and UUIDs, with each other and with
//! literals.
//!
//! `DataFusion` casts both sides to one type, the finer one. What does not fit there fails: the year 9999 as nanoseconds, which is
//! what a literal is; and digits that a column lacks get lost. Here a literal becomes one of the column's type, with the operator
//! that has the same result, so that statistics can be compared with it; what is no literal is compared as whole nanoseconds.

mod compare;
mod literal;
mod number;
mod place;
mod text;
mod unit;

use arrow_schema::DataType;
use datafusion::{
    common::{DFSchema, ScalarValue, tree_node::Transformed},
    error::Result,
    execution::SessionState,
    logical_expr::{
        Between, BinaryExpr, Expr, ExprSchemable as _, LogicalPlan, Operator, expr::InList, lit, not,
    },
};

use super::{identifier, rewrite};
use literal::Literals;
use place::{Place, Scale};
use unit::Kind;

/// The plan with such comparisons. Columns keep their names.
///
/// # Errors
/// [`Unsuitable`](crate::ErrorKind::Unsuitable) for a text that is none of what it is compared with.
pub(super) fn exact(plan: LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    rewrite::expressions(plan, |expr, schema| {
        let literals = Literals::new(state);
        Within { literals, schema }.in_place_of(expr)
    })
}

/// Where an expression stands.
struct Within<'a> {
    literals: Literals<'a>,
    schema: &'a DFSchema,
}

impl Within<'_> {
    fn in_place_of(&self, expr: Expr) -> Result<Transformed<Expr>> {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
                self.compared(left, op, right)
            }
            Expr::Between(between) => self.between(between),
            Expr::InList(list) => self.in_list(list),
            Expr::Cast(cast) if cast.field.data_type().is_string() && self.is_uuid(&cast.expr)? => {
                let text = identifier::text(*cast.expr);
                Ok(Transformed::yes(
                    text.cast_to(cast.field.data_type(), self.schema)?,
                ))
            }
            Expr::Cast(cast) => Ok(match literal::of_cast(&cast)? {
                Some(value) => Transformed::yes(lit(value)),
                None => Transformed::no(Expr::Cast(cast)),
            }),
            other => Ok(Transformed::no(other)),
        }
    }

    fn is_uuid(&self, value: &Expr) -> Result<bool> {
        let scale = Scale::of(value, self.schema)?;
        Ok(scale.is_some_and(|scale| scale.kind == Kind::Identifier))
    }

    /// A comparison by value, unless the engine's is one. Nothing is copied: it may be deep.
    fn compared(&self, left: Box<Expr>, op: Operator, right: Box<Expr>) -> Result<Transformed<Expr>> {
        if let Some((scale, place)) = self.against(&left, &right)? {
            return self.with_literal(*left, op, &scale, place);
        }
        if let Some(op) = swapped(op)
            && let Some((scale, place)) = self.against(&right, &left)?
        {
            return self.with_literal(*right, op, &scale, place);
        }
        let (of_left, of_right) = (left.get_type(self.schema)?, right.get_type(self.schema)?);
        Ok(if compare::needed(&of_left, &of_right) {
            Transformed::yes(compare::call(*left, op, *right))
        } else {
            Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        })
    }

    /// Where a literal is among the values that it is compared with.
    fn against(&self, value: &Expr, literal: &Expr) -> Result<Option<(Scale, Place)>> {
        let Some(scale) = Scale::of(value, self.schema)? else {
            return Ok(None);
        };
        let place = self.literals.place(literal, &scale)?;
        Ok(place.map(|place| (scale, place)))
    }

    /// `value op literal`.
    fn with_literal(
        &self,
        value: Expr,
        op: Operator,
        scale: &Scale,
        place: Place,
    ) -> Result<Transformed<Expr>> {
        let value = match value.get_type(self.schema)? {
            DataType::Dictionary(_, of) => value.cast_to(&of, self.schema)?,
            _ => value,
        };
        Ok(Transformed::yes(scale.compared(value, op, place)?))
    }

    /// Two comparisons, where one of them is to be by value.
    fn between(&self, between: Between) -> Result<Transformed<Expr>> {
        let (first, second) = if between.negated {
            (Operator::Lt, Operator::Gt)
        } else {
            (Operator::GtEq, Operator::LtEq)
        };
        let from = self.compared(between.expr.clone(), first, between.low.clone())?;
        let to = self.compared(between.expr.clone(), second, between.high.clone())?;
        if !from.transformed && !to.transformed {
            return Ok(Transformed::no(Expr::Between(between)));
        }
        let (from, to) = (from.data, to.data);
        Ok(Transformed::yes(if between.negated {
            from.or(to)
        } else {
            from.and(to)
        }))
    }

    /// A list of literals of the value's type, without those that it cannot have; or as many comparisons.
    fn in_list(&self, list: InList) -> Result<Transformed<Expr>> {
        let unchanged = |list| Ok(Transformed::no(Expr::InList(list)));
        let Some(scale) = Scale::of(&list.expr, self.schema)? else {
            return unchanged(list);
        };
        let places: Vec<_> = list
            .list
            .iter()
            .map(|item| self.literals.place(item, &scale))
            .collect::<Result<_>>()?;
        if scale.is_plain() && places.iter().all(Option::is_some) {
            let literals = places.iter().flatten().filter_map(|place| scale.literal(place));
            let literals: Vec<_> = literals.map(lit).collect();
            let value = match list.expr.get_type(self.schema)? {
                DataType::Dictionary(_, of) => list.expr.cast_to(&of, self.schema)?,
                _ => *list.expr,
            };
            return Ok(Transformed::yes(if literals.is_empty() {
                // None of them is a value of the type.
                let op = if list.negated {
                    Operator::NotEq
                } else {
                    Operator::Eq
                };
                scale.compared(value, op, Place::Above)?
            } else {
                Expr::InList(InList::new(Box::new(value), literals, list.negated))
            }));
        }
        let of_list = list.list.iter().map(|item| item.get_type(self.schema));
        let of_list = of_list.collect::<Result<Vec<_>>>()?;
        let is_needed = |of: &DataType| compare::needed(&scale.data_type, of);
        if places.iter().all(Option::is_none) && !of_list.iter().any(is_needed) {
            return unchanged(list);
        }
        let mut any = Vec::with_capacity(list.list.len());
        for item in list.list {
            let exact = self.compared(list.expr.clone(), Operator::Eq, Box::new(item))?;
            any.push(exact.data);
        }
        let any = any_of(any);
        Ok(Transformed::yes(if list.negated { not(any) } else { any }))
    }
}

/// Whether one of them holds, no deeper inside each other than it takes.
fn any_of(mut conditions: Vec<Expr>) -> Expr {
    while conditions.len() > 1 {
        let mut pairs = Vec::with_capacity(conditions.len().div_ceil(2));
        let mut rest = conditions.into_iter();
        while let Some(one) = rest.next() {
            pairs.push(match rest.next() {
                Some(other) => one.or(other),
                None => one,
            });
        }
        conditions = pairs;
    }
    conditions.pop().unwrap_or_else(|| lit(known(false)))
}

const fn is_comparison(op: Operator) -> bool {
    matches!(
        op,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}

/// The operator with the same result when its operands change places.
fn swapped(op: Operator) -> Option<Operator> {
    match op {
        Operator::IsDistinctFrom | Operator::IsNotDistinctFrom => Some(op),
        other => other.swap(),
    }
}

/// `value`, if it is not null.
fn known(value: bool) -> ScalarValue {
    ScalarValue::Boolean(Some(value))
}
