//! The size of conditions once the planner has moved them towards the object.
//!
//! On the way it replaces each column that an inner query computes by its expression. If that expression has the column of a
//! further inner query twice, and so on, the condition grows exponentially with the number of queries.

use datafusion::{
    common::{
        DFSchema,
        tree_node::{TreeNode as _, TreeNodeRecursion, TreeNodeVisitor},
    },
    error::Result as PlanResult,
    logical_expr::{Distinct, Expr, LogicalPlan},
};

use crate::fault;
use pushdown_core::{Error, ErrorKind, Result, limits::MAX_INLINED_NODES};

/// Checks the conditions of a plan before it is optimised. Takes time proportional to the size of the plan.
///
/// # Errors
/// [`InvalidPipeline`](ErrorKind::InvalidPipeline) for a condition that becomes too large.
pub(crate) fn check(plan: &LogicalPlan) -> Result<()> {
    let walked = plan.apply_with_subqueries(|node| {
        // The visitor below stays inside of one query.
        if matches!(node, LogicalPlan::Subquery(_)) {
            node.visit(&mut Inlining::default())?;
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked
        .and_then(|_| plan.visit(&mut Inlining::default()))
        .map(drop)
        .map_err(fault::query)
}

/// Visits the operators of a plan, inputs first.
#[derive(Default)]
struct Inlining {
    /// For each operator whose consumer has not been visited yet, the sizes of its columns.
    inputs: Vec<Vec<usize>>,
}

impl<'a> TreeNodeVisitor<'a> for Inlining {
    type Node = LogicalPlan;

    fn f_down(&mut self, _: &'a LogicalPlan) -> PlanResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn f_up(&mut self, plan: &'a LogicalPlan) -> PlanResult<TreeNodeRecursion> {
        let inputs = plan.inputs();
        let mut sizes = self
            .inputs
            .split_off(self.inputs.len().saturating_sub(inputs.len()));
        let columns = plan.schema().fields().len();
        let mut output = match (plan, inputs.first()) {
            (LogicalPlan::Projection(projection), Some(input)) => {
                let sizes = sizes.first().map_or(&[][..], Vec::as_slice);
                let size = |expr| inlined_size(expr, input.schema(), sizes).map(Size::total);
                projection.expr.iter().map(size).collect::<PlanResult<_>>()?
            }
            (LogicalPlan::Distinct(Distinct::On(distinct)), Some(input)) => {
                let sizes = sizes.first().map_or(&[][..], Vec::as_slice);
                let size = |expr| inlined_size(expr, input.schema(), sizes).map(Size::total);
                distinct.select_expr.iter().map(size).collect::<PlanResult<_>>()?
            }
            // A condition on a group moves below the aggregation.
            (LogicalPlan::Aggregate(aggregate), Some(input)) => {
                let sizes = sizes.first().map_or(&[][..], Vec::as_slice);
                let size = |expr| inlined_size(expr, input.schema(), sizes).map(Size::total);
                aggregate.group_expr.iter().map(size).collect::<PlanResult<_>>()?
            }
            (LogicalPlan::Filter(filter), Some(input)) => {
                let sizes = sizes.pop().unwrap_or_default();
                let Size { inlined, .. } = inlined_size(&filter.predicate, input.schema(), &sizes)?;
                if inlined > MAX_INLINED_NODES {
                    return Err(fault::to_datafusion(too_large(inlined)));
                }
                sizes
            }
            (LogicalPlan::Union(_), _) => {
                let largest = |column| sizes.iter().filter_map(|input| input.get(column)).max();
                let largest = (0..columns).map(|column| largest(column).copied().unwrap_or(1));
                largest.collect()
            }
            _ => sizes.into_iter().next().unwrap_or_default(),
        };
        // Columns that no expression computes, such as those of the object and of windows.
        output.resize(columns, 1);
        self.inputs.push(output);
        Ok(TreeNodeRecursion::Continue)
    }
}

/// The size of an expression.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    /// Operators and columns.
    own: usize,
    /// What is added if columns are replaced by their expressions.
    inlined: usize,
}

impl Size {
    const fn total(self) -> usize {
        self.own.saturating_add(self.inlined)
    }
}

fn inlined_size(expr: &Expr, schema: &DFSchema, columns: &[usize]) -> PlanResult<Size> {
    let mut size = Size::default();
    expr.apply(|expr| {
        match expr {
            // Not a part of the condition.
            Expr::Alias(_) => return Ok(TreeNodeRecursion::Continue),
            Expr::Column(column) => {
                let index = schema.maybe_index_of_column(column);
                let column = index.and_then(|index| columns.get(index));
                let more = column.copied().unwrap_or(1).saturating_sub(1);
                size.inlined = size.inlined.saturating_add(more);
            }
            _ => {}
        }
        size.own = size.own.saturating_add(1);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(size)
}

fn too_large(found: usize) -> Error {
    Error::new(
        ErrorKind::InvalidPipeline,
        format!(
            "a condition of the query is too large: expected at most {MAX_INLINED_NODES} operators and columns in the expressions \
             of the columns that it names, found {found}; filter in an inner query"
        ),
    )
}
