//! `/`, `//` and `^`, and dates plus or minus intervals.

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

use crate::guard::{functions, overflow};

/// `/`: a double for integers and decimals, a float for floats. DataFusion divides intervals.
pub(super) fn division(expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
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
    let (dividend, divisor) = (
        cast_unless(expr.left, &left, &data_type),
        cast_unless(expr.right, &right, &data_type),
    );
    Ok(PlannerResult::Planned(Expr::BinaryExpr(BinaryExpr::new(
        Box::new(dividend),
        Operator::Divide,
        Box::new(divisor),
    ))))
}

/// `//`: the truncated quotient of two integers.
pub(super) fn integer_division(expr: RawBinaryExpr, schema: &DFSchema) -> Result<Expr> {
    let (left, right) = (expr.left.get_type(schema)?, expr.right.get_type(schema)?);
    if !(left.is_integer() && right.is_integer()) {
        return plan_err!("invalid operands of `//`: expected integers, found {left} // {right}");
    }
    let data_type = if left == right {
        left.clone()
    } else {
        BinaryTypeCoercer::new(&left, &Operator::Divide, &right).get_result_type()?
    };
    let (dividend, divisor) = (
        cast_unless(expr.left, &left, &data_type),
        cast_unless(expr.right, &right, &data_type),
    );
    Ok(overflow::integer_quotient(dividend, divisor, data_type))
}

/// Casts an expression of type `from`, unless it has the type already.
fn cast_unless(expr: Expr, from: &DataType, to: &DataType) -> Expr {
    if from == to { expr } else { cast(expr, to.clone()) }
}

/// A date plus or minus an interval is a timestamp.
pub(super) fn date_and_interval(
    expr: RawBinaryExpr,
    schema: &DFSchema,
) -> Result<PlannerResult<RawBinaryExpr>> {
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

/// `^`: the power, a double.
pub(super) fn power(expr: RawBinaryExpr) -> Expr {
    functions::power().call(vec![expr.left, expr.right])
}

/// Whether `DuckDB` divides this type as doubles. Includes NULL.
fn is_exact(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_decimal() || data_type.is_null()
}
