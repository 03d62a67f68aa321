//! `SELECT DISTINCT ON` with a key that is written twice, for which DataFusion's optimiser builds a plan with other columns.

use std::collections::HashSet;

use datafusion::{
    common::tree_node::Transformed,
    error::Result,
    logical_expr::{Distinct, DistinctOn, LogicalPlan},
};

/// Keeps the first of equal keys. Rows that agree in a key agree in its repetitions, and an order by it has no ties that a repetition
/// could break.
pub(crate) fn without_repeated_keys(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|plan| match plan {
        LogicalPlan::Distinct(Distinct::On(distinct)) => {
            let keys = distinct.on_expr.len();
            let DistinctOn {
                on_expr,
                select_expr,
                sort_expr,
                input,
                schema: _,
            } = distinct;
            let mut seen = HashSet::new();
            let on_expr: Vec<_> = on_expr
                .into_iter()
                .filter(|key| seen.insert(key.clone()))
                .collect();
            let mut seen = HashSet::new();
            let sort_expr = sort_expr.map(|orders| {
                let first = orders.into_iter().filter(|order| seen.insert(order.expr.clone()));
                first.collect()
            });
            let is_changed = on_expr.len() < keys;
            let distinct = DistinctOn::try_new(on_expr, select_expr, sort_expr, input)?;
            let plan = LogicalPlan::Distinct(Distinct::On(distinct));
            Ok(if is_changed {
                Transformed::yes(plan)
            } else {
                Transformed::no(plan)
            })
        }
        plan => Ok(Transformed::no(plan)),
    })?;
    Ok(plan.data)
}
