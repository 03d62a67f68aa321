//! Operators and types of SQL with `DuckDB`'s meaning, where DataFusion gives them another one.

mod arithmetic;
mod cast;
mod meaning;
mod number;
mod pattern;
mod substring;
mod text;
mod types;

use std::sync::Arc;

use datafusion::{
    arrow::datatypes::FieldRef,
    common::DFSchema,
    error::Result,
    logical_expr::{
        Expr, ScalarUDF,
        planner::{ExprPlanner, PlannerResult, RawBinaryExpr, TypePlanner},
    },
    sql::sqlparser::ast::{BinaryOperator, DataType},
};

pub(super) use meaning::meant;
pub(super) use types::{EXTENSION, UUID};

/// `functions` with `DuckDB`'s in place of their namesakes.
pub(super) fn functions(functions: Vec<Arc<ScalarUDF>>) -> Vec<Arc<ScalarUDF>> {
    let ours = substring::function();
    let others = functions
        .into_iter()
        .filter(|function| function.name() != ours.name());
    others.chain([Arc::clone(&ours)]).collect()
}

/// Plans the text of a query as `DuckDB` does.
#[derive(Debug)]
pub(super) struct DuckDb;

impl ExprPlanner for DuckDb {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        match expr.op {
            BinaryOperator::Divide => arithmetic::quotient(expr, schema),
            BinaryOperator::DuckIntegerDivide => {
                arithmetic::whole_quotient(expr, schema).map(PlannerResult::Planned)
            }
            // The parser has `^` as XOR.
            BinaryOperator::BitwiseXor => Ok(PlannerResult::Planned(arithmetic::power(expr))),
            BinaryOperator::Plus | BinaryOperator::Minus => arithmetic::later(expr, schema),
            _ => Ok(PlannerResult::Original(expr)),
        }
    }

    fn plan_substring(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(substring::function().call(args)))
    }
}

impl TypePlanner for DuckDb {
    fn plan_type_field(&self, sql_type: &DataType) -> Result<Option<FieldRef>> {
        Ok(types::of(sql_type))
    }
}
