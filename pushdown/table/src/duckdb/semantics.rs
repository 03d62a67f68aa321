//! Rewrites the expressions of a plan whose results differ between DataFusion and `DuckDB`.

use std::mem;

use arrow_schema::DataType;
use datafusion::{
    common::{DFSchema, tree_node::Transformed},
    error::Result,
    functions::string::expr_fn::upper,
    logical_expr::{Expr, ExprSchemable as _, LogicalPlan, Operator, cast, expr::ScalarFunction, lit},
};

use super::{cast as casts, pattern};
use crate::guard::rewrite::rewrite_expressions;

/// Rewrites a plan to `DuckDB`'s semantics, before types are coerced. Columns keep their names.
pub(crate) fn with_duckdb_semantics(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite_expressions(plan, rewrite)
}

fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    // Without clones, since an expression can be as deep as a query is long.
    let mut expr = match expr {
        Expr::Cast(cast) => return casts::rewrite_cast(cast, schema),
        Expr::TryCast(cast) => return casts::rewrite_try_cast(cast, schema),
        Expr::Like(like) => return pattern::rewrite_like(like),
        Expr::SimilarTo(like) => return pattern::rewrite_similar_to(like),
        Expr::ScalarFunction(call) => return rewrite_function(call, schema),
        other => other,
    };
    let changed = match &mut expr {
        Expr::BinaryExpr(binary) if is_numeric_operator(binary.op) => {
            decimals_to_floats([&mut *binary.left, &mut *binary.right], schema)?
        }
        Expr::Between(between) => decimals_to_floats(
            [&mut *between.expr, &mut *between.low, &mut *between.high],
            schema,
        )?,
        Expr::InList(list) => decimals_to_floats(
            std::iter::once(&mut *list.expr).chain(list.list.iter_mut()),
            schema,
        )?,
        Expr::Case(case) => {
            let (mut conditions, mut results) = (Vec::new(), Vec::new());
            for (when, then) in &mut case.when_then_expr {
                conditions.push(&mut **when);
                results.push(&mut **then);
            }
            results.extend(case.else_expr.as_deref_mut());
            let results_changed = decimals_to_floats(results, schema)?;
            match &mut case.expr {
                Some(value) => {
                    decimals_to_floats(std::iter::once(&mut **value).chain(conditions), schema)?
                        || results_changed
                }
                None => results_changed,
            }
        }
        Expr::AggregateFunction(call) if call.func.name() == "avg" => {
            decimals_to_doubles(&mut call.params.args, schema)?
        }
        Expr::WindowFunction(call) if call.fun.name() == "avg" => {
            decimals_to_doubles(&mut call.params.args, schema)?
        }
        _ => false,
    };
    Ok(if changed {
        Transformed::yes(expr)
    } else {
        Transformed::no(expr)
    })
}

/// Whether an operator converts two numbers to one type.
const fn is_numeric_operator(op: Operator) -> bool {
    matches!(
        op,
        Operator::Plus
            | Operator::Minus
            | Operator::Multiply
            | Operator::Divide
            | Operator::Modulo
            | Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}

/// Casts decimals to floats if there are both; returns whether it did. DataFusion casts floats to decimals; that fails for
/// NaN and large numbers.
fn decimals_to_floats<'a>(exprs: impl IntoIterator<Item = &'a mut Expr>, schema: &DFSchema) -> Result<bool> {
    let (mut float_type, mut decimals) = (None, Vec::new());
    for expr in exprs {
        match expr.get_type(schema)? {
            DataType::Float64 => float_type = Some(DataType::Float64),
            DataType::Float32 | DataType::Float16 => float_type = float_type.or(Some(DataType::Float32)),
            data_type if data_type.is_decimal() => decimals.push(expr),
            _ => {}
        }
    }
    let Some(float_type) = float_type.filter(|_| !decimals.is_empty()) else {
        return Ok(false);
    };
    for decimal in decimals {
        *decimal = cast(mem::take(decimal), float_type.clone());
    }
    Ok(true)
}

/// Casts decimals to doubles, as the mean of decimals is a double; returns whether there were any.
fn decimals_to_doubles(exprs: &mut [Expr], schema: &DFSchema) -> Result<bool> {
    let mut changed = false;
    for expr in exprs {
        if expr.get_type(schema)?.is_decimal() {
            *expr = cast(mem::take(expr), DataType::Float64);
            changed = true;
        }
    }
    Ok(changed)
}

fn rewrite_function(mut call: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let changed = match call.func.name() {
        "concat" | "concat_ws" => {
            let mut changed = false;
            for argument in &mut call.args {
                let data_type = argument.get_type(schema)?;
                changed |= casts::cast_to_text(argument, &data_type);
            }
            changed
        }
        // DuckDB's hexadecimal digits are in upper case.
        "to_hex" => return Ok(Transformed::yes(upper(Expr::ScalarFunction(call)))),
        "array_sort" if call.args.len() == 1 => {
            call.args.extend([lit("ASC"), lit("NULLS LAST")]);
            true
        }
        "coalesce" | "greatest" | "least" | "nullif" | "nvl" | "nvl2" | "make_array" => {
            decimals_to_floats(&mut call.args, schema)?
        }
        _ => false,
    };
    let call = Expr::ScalarFunction(call);
    Ok(if changed {
        Transformed::yes(call)
    } else {
        Transformed::no(call)
    })
}
