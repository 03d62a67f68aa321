//! Expressions of a plan that DataFusion computes otherwise than `DuckDB`, and what is computed in their place.

use std::mem;

use arrow_schema::DataType;
use datafusion::{
    common::{DFSchema, tree_node::Transformed},
    error::Result,
    functions::string::expr_fn::upper,
    logical_expr::{Expr, ExprSchemable as _, LogicalPlan, Operator, cast, expr::ScalarFunction, lit},
};

use super::{cast as casts, pattern};
use crate::step::table::rewrite;

/// The plan with `DuckDB`'s meaning, before types are coerced. Columns keep their names.
pub(in crate::step::table) fn meant(plan: LogicalPlan) -> Result<LogicalPlan> {
    rewrite::expressions(plan, in_place_of)
}

fn in_place_of(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    // Nothing is cloned: an expression may be as deep as a query is long.
    let mut expr = match expr {
        Expr::Cast(to) => return casts::in_place_of(to, schema),
        Expr::TryCast(to) => return casts::in_place_of_try(to, schema),
        Expr::Like(like) => return pattern::like(like),
        Expr::SimilarTo(like) => return pattern::similar(like),
        Expr::ScalarFunction(call) => return function(call, schema),
        other => other,
    };
    let changed = match &mut expr {
        Expr::BinaryExpr(binary) if is_of_numbers(binary.op) => {
            as_floats([&mut *binary.left, &mut *binary.right], schema)?
        }
        Expr::Between(between) => as_floats(
            [&mut *between.expr, &mut *between.low, &mut *between.high],
            schema,
        )?,
        Expr::InList(list) => as_floats(
            std::iter::once(&mut *list.expr).chain(list.list.iter_mut()),
            schema,
        )?,
        Expr::Case(case) => {
            let (mut compared, mut given) = (Vec::new(), Vec::new());
            for (when, then) in &mut case.when_then_expr {
                compared.push(&mut **when);
                given.push(&mut **then);
            }
            given.extend(case.else_expr.as_deref_mut());
            let given = as_floats(given, schema)?;
            match &mut case.expr {
                Some(value) => as_floats(std::iter::once(&mut **value).chain(compared), schema)? || given,
                None => given,
            }
        }
        Expr::AggregateFunction(call) if call.func.name() == "avg" => {
            as_doubles(&mut call.params.args, schema)?
        }
        Expr::WindowFunction(call) if call.fun.name() == "avg" => as_doubles(&mut call.params.args, schema)?,
        _ => false,
    };
    Ok(if changed {
        Transformed::yes(expr)
    } else {
        Transformed::no(expr)
    })
}

/// Operators that bring two numbers to one type.
const fn is_of_numbers(op: Operator) -> bool {
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

/// Of floats and decimals, the decimals become floats: DataFusion has it the other way round, for which NaN and large numbers
/// have no value. Whether there were any.
fn as_floats<'a>(exprs: impl IntoIterator<Item = &'a mut Expr>, schema: &DFSchema) -> Result<bool> {
    let (mut float, mut decimals) = (None, Vec::new());
    for expr in exprs {
        match expr.get_type(schema)? {
            DataType::Float64 => float = Some(DataType::Float64),
            DataType::Float32 | DataType::Float16 => float = float.or(Some(DataType::Float32)),
            found if found.is_decimal() => decimals.push(expr),
            _ => {}
        }
    }
    let Some(float) = float.filter(|_| !decimals.is_empty()) else {
        return Ok(false);
    };
    for decimal in decimals {
        *decimal = cast(mem::take(decimal), float.clone());
    }
    Ok(true)
}

/// Decimals as doubles: a mean is one.
fn as_doubles(exprs: &mut [Expr], schema: &DFSchema) -> Result<bool> {
    let mut changed = false;
    for expr in exprs {
        if expr.get_type(schema)?.is_decimal() {
            *expr = cast(mem::take(expr), DataType::Float64);
            changed = true;
        }
    }
    Ok(changed)
}

fn function(mut call: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let changed = match call.func.name() {
        "concat" | "concat_ws" => {
            let mut changed = false;
            for argument in &mut call.args {
                let found = argument.get_type(schema)?;
                changed |= casts::as_text(argument, &found);
            }
            changed
        }
        // In upper case.
        "to_hex" => return Ok(Transformed::yes(upper(Expr::ScalarFunction(call)))),
        "array_sort" if call.args.len() == 1 => {
            call.args.extend([lit("ASC"), lit("NULLS LAST")]);
            true
        }
        "coalesce" | "greatest" | "least" | "nullif" | "nvl" | "nvl2" | "make_array" => {
            as_floats(&mut call.args, schema)?
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
