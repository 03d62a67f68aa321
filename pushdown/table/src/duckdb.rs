//! `DuckDB`'s semantics for SQL operators and types where DataFusion's differ.

mod arithmetic;
mod cast;
pub(crate) mod comparison;
mod number;
mod pattern;
mod semantics;
mod substring;
mod text;
mod types;
pub(crate) mod uuid_text;

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

pub(super) use semantics::with_duckdb_semantics;
pub(super) use types::{EXTENSION, UUID};

/// Replaces the functions whose `DuckDB` namesakes differ.
pub(crate) fn with_duckdb_functions(functions: Vec<Arc<ScalarUDF>>) -> Vec<Arc<ScalarUDF>> {
    let substring = substring::function();
    let others = functions
        .into_iter()
        .filter(|function| function.name() != substring.name());
    others.chain([Arc::clone(&substring)]).collect()
}

/// Plans SQL expressions and types as `DuckDB` does.
#[derive(Debug)]
pub(crate) struct DuckDb;

impl ExprPlanner for DuckDb {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        match expr.op {
            BinaryOperator::Divide => arithmetic::division(expr, schema),
            BinaryOperator::DuckIntegerDivide => {
                arithmetic::integer_division(expr, schema).map(PlannerResult::Planned)
            }
            // The parser reads `^` as XOR.
            BinaryOperator::BitwiseXor => Ok(PlannerResult::Planned(arithmetic::power(expr))),
            BinaryOperator::Plus | BinaryOperator::Minus => arithmetic::date_and_interval(expr, schema),
            _ => Ok(PlannerResult::Original(expr)),
        }
    }

    fn plan_substring(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(substring::function().call(args)))
    }
}

impl TypePlanner for DuckDb {
    fn plan_type_field(&self, sql_type: &DataType) -> Result<Option<FieldRef>> {
        Ok(types::arrow_field(sql_type))
    }
}
