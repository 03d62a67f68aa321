//! `/`, `//` and `^`, and what is later or earlier than a date.

use arrow_schema::{DataType, TimeUnit};
use datafusion::{
    common::{DFSchema, plan_err},
    error::Result,
    logical_expr::{
        BinaryExpr, Expr, ExprSchemable as _, Operator, cast,
        planner::{PlannerResult, RawBinaryExpr},
        type_coercion::binary::BinaryTypeCoercer,
    },
};

use super::super::{functions, overflow};

/// `/`, which gives a double of whole numbers and decimals, and a float of floats. Intervals are left to DataFusion.
pub(super) fn quotient(expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
    let (left, right) = (expr.left.get_type(schema)?, expr.right.get_type(schema)?);
    let data_type = match (&left, &right) {
        (left, right) if is_exact(left) && is_exact(right) => DataType::Float64,
        (float @ (DataType::Float32 | DataType::Float64), exact)
        | (exact, float @ (DataType::Float32 | DataType::Float64))
            if is_exact(exact) =>
        {
            float.clone()
        }
        _ => return Ok(PlannerResult::Original(expr)),
    };
    let operand = |operand: Expr, found: &DataType| {
        if *found == data_type {
            operand
        } else {
            cast(operand, data_type.clone())
        }
    };
    Ok(PlannerResult::Planned(Expr::BinaryExpr(BinaryExpr::new(
        Box::new(operand(expr.left, &left)),
        Operator::Divide,
        Box::new(operand(expr.right, &right)),
    ))))
}

/// `//`, which cuts the fraction off the quotient of two whole numbers.
pub(super) fn whole_quotient(expr: RawBinaryExpr, schema: &DFSchema) -> Result<Expr> {
    let (left, right) = (expr.left.get_type(schema)?, expr.right.get_type(schema)?);
    if !(left.is_integer() && right.is_integer()) {
        return plan_err!("found {left} // {right}, expected whole numbers on both sides of `//`");
    }
    let data_type = if left == right {
        left.clone()
    } else {
        BinaryTypeCoercer::new(&left, &Operator::Divide, &right).get_result_type()?
    };
    let operand = |operand: Expr, found: &DataType| {
        if *found == data_type {
            operand
        } else {
            cast(operand, data_type.clone())
        }
    };
    let (left, right) = (operand(expr.left, &left), operand(expr.right, &right));
    Ok(overflow::whole_quotient(left, right, data_type.clone()))
}

/// A date and an interval, which give a timestamp.
pub(super) fn later(expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
    let (left, right) = (expr.left.get_type(schema)?, expr.right.get_type(schema)?);
    let timestamp = |date: Expr| cast(date, DataType::Timestamp(TimeUnit::Microsecond, None));
    Ok(PlannerResult::Original(match (left, right) {
        (DataType::Date32, DataType::Interval(_)) => RawBinaryExpr {
            left: timestamp(expr.left),
            ..expr
        },
        (DataType::Interval(_), DataType::Date32) => RawBinaryExpr {
            right: timestamp(expr.right),
            ..expr
        },
        _ => expr,
    }))
}

/// `^`, a double.
pub(super) fn power(expr: RawBinaryExpr) -> Expr {
    functions::power().call(vec![expr.left, expr.right])
}

/// Whether `DuckDB` divides such numbers as doubles. NULL is one of them.
fn is_exact(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_decimal() || data_type.is_null()
}
