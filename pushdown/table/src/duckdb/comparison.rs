//! Comparisons by value: times, timestamps, dates, intervals and numbers of any unit and scale, and UUIDs, with each other and
//! with literals.
//!
//! `DataFusion` casts both sides to the type with the finer unit. That fails for values out of its range (the year 9999 in
//! nanoseconds, the unit of literals), and loses digits of a literal that a column type does not have. This module converts a
//! literal to the column's type and adapts the operator so that the result is the same, which also lets statistics be compared
//! with it. Other values of time are compared as nanoseconds.

mod compare;
mod literal;
mod number;
mod ordered_type;
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

use crate::{duckdb::uuid_text::uuid_text, guard::rewrite::rewrite_expressions};
use literal::LiteralResolver;
use ordered_type::{LiteralPosition, OrderedType};
use unit::ValueKind;

/// Rewrites the comparisons of a plan. Columns keep their names.
///
/// # Errors
/// [`Unsuitable`](pushdown_core::ErrorKind::Unsuitable) for a text that cannot be parsed as the type it is compared with.
pub(crate) fn compare_by_value(plan: LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    rewrite_expressions(plan, |expr, schema| {
        let literals = LiteralResolver::new(state);
        ComparisonRewriter { literals, schema }.rewrite(expr)
    })
}

/// Rewrites comparisons over the columns of a schema.
struct ComparisonRewriter<'a> {
    literals: LiteralResolver<'a>,
    schema: &'a DFSchema,
}

impl ComparisonRewriter<'_> {
    fn rewrite(&self, expr: Expr) -> Result<Transformed<Expr>> {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
                self.compare(left, op, right)
            }
            Expr::Between(between) => self.rewrite_between(between),
            Expr::InList(list) => self.rewrite_in_list(list),
            Expr::Cast(cast) if cast.field.data_type().is_string() && self.is_uuid(&cast.expr)? => {
                let text = uuid_text(*cast.expr);
                Ok(Transformed::yes(
                    text.cast_to(cast.field.data_type(), self.schema)?,
                ))
            }
            Expr::Cast(cast) => Ok(match literal::parse_cast(&cast)? {
                Some(value) => Transformed::yes(lit(value)),
                None => Transformed::no(Expr::Cast(cast)),
            }),
            other => Ok(Transformed::no(other)),
        }
    }

    fn is_uuid(&self, value: &Expr) -> Result<bool> {
        let ordered_type = OrderedType::for_expr(value, self.schema)?;
        Ok(ordered_type.is_some_and(|ordered_type| ordered_type.kind == ValueKind::Uuid))
    }

    /// A comparison by value; unchanged if the engine compares by value already. Without clones, since operands can be deep.
    fn compare(&self, left: Box<Expr>, op: Operator, right: Box<Expr>) -> Result<Transformed<Expr>> {
        if let Some((ordered_type, position)) = self.resolve_literal(&left, &right)? {
            return self.compare_with_literal(*left, op, &ordered_type, position);
        }
        if let Some(op) = swapped(op)
            && let Some((ordered_type, position)) = self.resolve_literal(&right, &left)?
        {
            return self.compare_with_literal(*right, op, &ordered_type, position);
        }
        let (left_type, right_type) = (left.get_type(self.schema)?, right.get_type(self.schema)?);
        Ok(if compare::is_required(&left_type, &right_type) {
            Transformed::yes(compare::compare_nanoseconds(*left, op, *right))
        } else {
            Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right }))
        })
    }

    /// The position of a literal among the values of another expression's type.
    fn resolve_literal(
        &self,
        value: &Expr,
        literal: &Expr,
    ) -> Result<Option<(OrderedType, LiteralPosition)>> {
        let Some(ordered_type) = OrderedType::for_expr(value, self.schema)? else {
            return Ok(None);
        };
        let position = self.literals.position(literal, &ordered_type)?;
        Ok(position.map(|position| (ordered_type, position)))
    }

    /// `value op literal`.
    fn compare_with_literal(
        &self,
        value: Expr,
        op: Operator,
        ordered_type: &OrderedType,
        position: LiteralPosition,
    ) -> Result<Transformed<Expr>> {
        let value = match value.get_type(self.schema)? {
            DataType::Dictionary(_, value_type) => value.cast_to(&value_type, self.schema)?,
            _ => value,
        };
        Ok(Transformed::yes(ordered_type.compare(value, op, position)?))
    }

    /// BETWEEN as two comparisons, if one of them needs a rewrite.
    fn rewrite_between(&self, between: Between) -> Result<Transformed<Expr>> {
        let (first, second) = if between.negated {
            (Operator::Lt, Operator::Gt)
        } else {
            (Operator::GtEq, Operator::LtEq)
        };
        let from = self.compare(between.expr.clone(), first, between.low.clone())?;
        let to = self.compare(between.expr.clone(), second, between.high.clone())?;
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

    /// IN as a list of literals of the value's type, without those that the type cannot represent; or as comparisons joined by OR.
    fn rewrite_in_list(&self, list: InList) -> Result<Transformed<Expr>> {
        let unchanged = |list| Ok(Transformed::no(Expr::InList(list)));
        let Some(ordered_type) = OrderedType::for_expr(&list.expr, self.schema)? else {
            return unchanged(list);
        };
        let positions: Vec<_> = list
            .list
            .iter()
            .map(|item| self.literals.position(item, &ordered_type))
            .collect::<Result<_>>()?;
        if ordered_type.has_literals() && positions.iter().all(Option::is_some) {
            let literals = positions
                .iter()
                .flatten()
                .filter_map(|position| ordered_type.literal(position));
            let literals: Vec<_> = literals.map(lit).collect();
            let value = match list.expr.get_type(self.schema)? {
                DataType::Dictionary(_, value_type) => list.expr.cast_to(&value_type, self.schema)?,
                _ => *list.expr,
            };
            return Ok(Transformed::yes(if literals.is_empty() {
                // The type can represent none of them: always false (or true if negated), or NULL.
                let op = if list.negated {
                    Operator::NotEq
                } else {
                    Operator::Eq
                };
                ordered_type.compare(value, op, LiteralPosition::Above)?
            } else {
                Expr::InList(InList::new(Box::new(value), literals, list.negated))
            }));
        }
        let item_types = list
            .list
            .iter()
            .map(|item| item.get_type(self.schema))
            .collect::<Result<Vec<_>>>()?;
        let is_required = |item_type: &DataType| compare::is_required(&ordered_type.data_type, item_type);
        if positions.iter().all(Option::is_none) && !item_types.iter().any(is_required) {
            return unchanged(list);
        }
        let mut conditions = Vec::with_capacity(list.list.len());
        for item in list.list {
            let comparison = self.compare(list.expr.clone(), Operator::Eq, Box::new(item))?;
            conditions.push(comparison.data);
        }
        let any = any_of(conditions);
        Ok(Transformed::yes(if list.negated { not(any) } else { any }))
    }
}

/// The conditions joined by OR, as a balanced tree to keep it shallow.
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
    conditions.pop().unwrap_or_else(|| lit(boolean(false)))
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

/// The operator with the same result when its operands are swapped.
fn swapped(op: Operator) -> Option<Operator> {
    match op {
        Operator::IsDistinctFrom | Operator::IsNotDistinctFrom => Some(op),
        other => other.swap(),
    }
}

/// A Boolean that is not NULL.
fn boolean(value: bool) -> ScalarValue {
    ScalarValue::Boolean(Some(value))
}
