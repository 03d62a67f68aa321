//! What a query may do: read `object`, by functions that depend on their arguments alone.

use datafusion::{
    common::tree_node::{TreeNode as _, TreeNodeRecursion},
    error::Result as PlanResult,
    logical_expr::{Expr, LogicalPlan, Volatility},
};

use super::fault;
use crate::{
    Error, ErrorKind, Result,
    limits::{MAX_PLAN_NODES, MAX_PLAN_SCANS},
};

/// Checks a plan that was not optimised yet.
///
/// # Errors
/// [`InvalidPipeline`](ErrorKind::InvalidPipeline) for what a query may not do, by name, and for one that is too large.
pub(super) fn check(plan: &LogicalPlan) -> Result<()> {
    let (mut nodes, mut scans) = (0, 0);
    let mut node = |plan: &LogicalPlan| {
        nodes += 1;
        scans += usize::from(matches!(plan, LogicalPlan::TableScan(_)));
        fault::checked(operator(plan))?;
        plan.apply_expressions(|expr| {
            expr.apply(|expr| {
                nodes += 1;
                fault::checked(function(expr))?;
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        fault::checked(size(nodes, scans))?;
        Ok(TreeNodeRecursion::Continue)
    };
    let walked: PlanResult<_> = plan.apply_with_subqueries(&mut node);
    walked.map(drop).map_err(fault::query)
}

/// Checks an expression that was not optimised yet.
///
/// # Errors
/// As [`check`].
pub(super) fn check_expression(expr: &Expr) -> Result<()> {
    let mut nodes = 0;
    let walked: PlanResult<_> = expr.apply(|expr| {
        nodes += 1;
        fault::checked(function(expr).and_then(|()| size(nodes, 0)))?;
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map(drop).map_err(fault::query)
}

fn size(nodes: usize, scans: usize) -> Result<()> {
    if nodes > MAX_PLAN_NODES {
        return Err(refused(format!(
            "the query has more than {MAX_PLAN_NODES} operators and expressions"
        )));
    }
    if scans > MAX_PLAN_SCANS {
        return Err(refused(format!(
            "the query reads `object` more than {MAX_PLAN_SCANS} times"
        )));
    }
    Ok(())
}

fn operator(plan: &LogicalPlan) -> Result<()> {
    match plan {
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::Window(_)
        | LogicalPlan::Aggregate(_)
        | LogicalPlan::Sort(_)
        | LogicalPlan::Join(_)
        | LogicalPlan::Union(_)
        | LogicalPlan::TableScan(_)
        | LogicalPlan::EmptyRelation(_)
        | LogicalPlan::Subquery(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Limit(_)
        | LogicalPlan::Values(_)
        | LogicalPlan::Distinct(_)
        | LogicalPlan::Unnest(_) => Ok(()),
        LogicalPlan::RecursiveQuery(_) => Err(refused("a recursive query is not supported: it has no bound")),
        _ => Err(refused(
            "found another statement, expected a query: SELECT ... FROM object",
        )),
    }
}

fn function(expr: &Expr) -> Result<()> {
    let (name, volatility) = match expr {
        Expr::ScalarFunction(call) => (call.func.name(), call.func.signature().volatility),
        Expr::AggregateFunction(call) => (call.func.name(), call.func.signature().volatility),
        Expr::WindowFunction(call) => {
            let volatility = call.fun.signature().volatility;
            return volatile(&call.fun.to_string(), volatility);
        }
        _ => return Ok(()),
    };
    volatile(name, volatility)
}

fn volatile(name: &str, volatility: Volatility) -> Result<()> {
    match volatility {
        Volatility::Immutable => Ok(()),
        Volatility::Stable | Volatility::Volatile => Err(refused(format!(
            "the function `{name}` depends on more than its arguments, so that two hosts would compute different values"
        ))),
    }
}

fn refused(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidPipeline, message)
}
