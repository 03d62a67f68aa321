//! Rewrites the expressions of a plan.

use datafusion::{
    common::{DFSchema, tree_node::Transformed, tree_node::TreeNode as _},
    error::Result,
    logical_expr::{Expr, LogicalPlan, expr_rewriter::NamePreserver},
};

/// Replaces each expression of a plan, inner ones first, by the result of `replace` for it and its input schema. Columns keep
/// their names.
pub(crate) fn rewrite_expressions(
    plan: LogicalPlan,
    replace: impl Fn(Expr, &DFSchema) -> Result<Transformed<Expr>>,
) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|plan| {
        let no_columns = DFSchema::empty();
        let inputs = plan.inputs();
        let schema = inputs
            .first()
            .map_or(no_columns, |input| input.schema().as_ref().clone());
        let names = NamePreserver::new(&plan);
        let changed = plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.transform_up(|expr| replace(expr, &schema))?;
            Ok(changed.update_data(|expr| name.restore(expr)))
        })?;
        if changed.transformed {
            changed.map_data(LogicalPlan::recompute_schema)
        } else {
            Ok(changed)
        }
    })?;
    Ok(plan.data)
}
