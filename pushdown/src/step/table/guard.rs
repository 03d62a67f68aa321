//! What a query may do: go through `object` in bounded memory, by functions that depend on their arguments alone.
//!
//! What pairs rows with rows, or makes long values of short ones, can outgrow any object: it is refused here, or held to the
//! memory of the query (`bounded`, `held`).

use std::borrow::Cow;

use datafusion::{
    arrow::datatypes::DataType,
    common::{
        DFSchema,
        tree_node::{TreeNode as _, TreeNodeRecursion},
    },
    error::Result as PlanResult,
    logical_expr::{
        Expr, ExprSchemable as _, LogicalPlan, Operator, Volatility, WindowFunctionDefinition,
        expr::{NullTreatment, WindowFunction},
    },
};

use super::{fault, pattern};
use crate::{
    Error, ErrorKind, Result,
    limits::{MAX_PLAN_NODES, MAX_PLAN_SCANS, MAX_PLAN_WINDOWS},
};

/// Functions whose result has any length, whatever that of their arguments.
const LENGTHENING: [&str; 11] = [
    "array_repeat",
    "array_replace",
    "array_replace_all",
    "array_replace_n",
    "array_resize",
    "array_to_string",
    "generate_series",
    "lpad",
    "range",
    "repeat",
    "rpad",
];
/// Functions whose time grows with the product of their arguments' lengths.
const SLOW: [&str; 3] = ["array_has_all", "array_has_any", "levenshtein"];
/// Functions that give their first argument as another type.
const CASTS: [&str; 4] = ["arrow_cast", "arrow_try_cast", "cast_to_type", "try_cast_to_type"];
/// Aggregates that go on from row to row where they are computed over windows.
const OVER_WINDOWS: [&str; 5] = ["avg", "count", "max", "min", "sum"];

/// What was found in a plan so far.
#[derive(Debug, Default)]
struct Guard {
    nodes: usize,
    scans: usize,
    windows: usize,
}

/// Checks a plan that was not optimised yet.
///
/// # Errors
/// [`InvalidPipeline`](ErrorKind::InvalidPipeline) for what a query may not do, by name, and for one that is too large.
pub(super) fn check(plan: &LogicalPlan) -> Result<()> {
    let mut guard = Guard::default();
    let nothing = DFSchema::empty();
    let walked: PlanResult<_> = plan.apply_with_subqueries(|plan| {
        fault::checked(guard.operator(plan))?;
        let inputs = plan.inputs();
        let schema = inputs.first().map_or(&nothing, |input| input.schema().as_ref());
        plan.apply_expressions(|expr| {
            expr.apply(|expr| {
                fault::checked(guard.expression(expr, schema))?;
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map(drop).map_err(fault::query)
}

/// Checks an expression over the columns of `schema` that was not optimised yet.
///
/// # Errors
/// As [`check`].
pub(super) fn check_expression(expr: &Expr, schema: &DFSchema) -> Result<()> {
    let mut guard = Guard::default();
    let walked: PlanResult<_> = expr.apply(|expr| {
        fault::checked(guard.expression(expr, schema))?;
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map(drop).map_err(fault::query)
}

impl Guard {
    fn operator(&mut self, plan: &LogicalPlan) -> Result<()> {
        self.count()?;
        match plan {
            LogicalPlan::TableScan(_) => {
                self.scans += 1;
                if self.scans > MAX_PLAN_SCANS {
                    return Err(refused(format!(
                        "the query reads `object` more than {MAX_PLAN_SCANS} times"
                    )));
                }
                Ok(())
            }
            LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Union(_)
            | LogicalPlan::EmptyRelation(_)
            | LogicalPlan::Subquery(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::Values(_)
            | LogicalPlan::Distinct(_) => Ok(()),
            LogicalPlan::RecursiveQuery(_) => {
                Err(refused("a recursive query is not supported: it has no bound"))
            }
            LogicalPlan::Join(_) => Err(unbounded("a join (and so is INTERSECT, and EXCEPT)")),
            LogicalPlan::Unnest(_) => Err(unbounded("unnest")),
            _ => Err(refused(
                "found another statement, expected a query: SELECT ... FROM object",
            )),
        }
    }

    fn expression(&mut self, expr: &Expr, schema: &DFSchema) -> Result<()> {
        self.count()?;
        match expr {
            Expr::ScalarFunction(call) => {
                let (name, arguments) = (call.func.name(), call.args.as_slice());
                function(name, call.func.signature().volatility)?;
                pattern::check_call(name, arguments)?;
                match arguments.first() {
                    Some(value) if CASTS.contains(&name) => cast(value, schema),
                    _ => Ok(()),
                }
            }
            Expr::AggregateFunction(call) => function(call.func.name(), call.func.signature().volatility),
            Expr::WindowFunction(call) => self.window(expr, call, schema),
            Expr::BinaryExpr(binary) => match binary.op {
                Operator::StringConcat => Err(refused("`||` is not offered: write concat(a, b)")),
                Operator::RegexMatch | Operator::RegexNotMatch => pattern::check(&binary.right, ""),
                Operator::RegexIMatch | Operator::RegexNotIMatch => pattern::check(&binary.right, "i"),
                _ => Ok(()),
            },
            Expr::Like(like) => pattern::check_like(like),
            Expr::SimilarTo(like) => pattern::check(&like.pattern, ""),
            Expr::Cast(to) if is_text(to.field.data_type()) => cast(&to.expr, schema),
            Expr::TryCast(to) if is_text(to.field.data_type()) => cast(&to.expr, schema),
            Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_) => {
                Err(unbounded("a condition on another query: IN, EXISTS, ANY, ALL"))
            }
            Expr::OuterReferenceColumn(..) => {
                Err(unbounded("a query inside another one that takes columns of it"))
            }
            Expr::ScalarSubquery(_) if !is_short(&type_of(expr, schema)?) => Err(unbounded(
                "a query inside another one that gives a text or a list",
            )),
            Expr::GroupingSet(_) => Err(unbounded("grouping by several sets of columns")),
            Expr::HigherOrderFunction(_) | Expr::Lambda(_) | Expr::Unnest(_) => {
                Err(unbounded("a function of functions, or of rows,"))
            }
            _ => Ok(()),
        }
    }

    /// What is copied into each row has to be short, and what is computed for it must not start anew with each row.
    fn window(&mut self, expr: &Expr, call: &WindowFunction, schema: &DFSchema) -> Result<()> {
        self.windows += 1;
        if self.windows > MAX_PLAN_WINDOWS {
            return Err(refused(format!(
                "the query has more than {MAX_PLAN_WINDOWS} window functions"
            )));
        }
        let name = call.fun.name();
        function(name, call.fun.signature().volatility)?;
        let aggregates = matches!(call.fun, WindowFunctionDefinition::AggregateUDF(_));
        if aggregates && (call.params.distinct || !OVER_WINDOWS.contains(&name)) {
            let known = OVER_WINDOWS.join(", ");
            return Err(refused(format!(
                "found `{name}` over windows, expected one of {known}, none of them DISTINCT"
            )));
        }
        if call.params.null_treatment == Some(NullTreatment::IgnoreNulls) {
            return Err(unbounded("IGNORE NULLS"));
        }
        if !is_short(&type_of(expr, schema)?) {
            return Err(unbounded("a window function that gives a text or a list"));
        }
        Ok(())
    }

    fn count(&mut self) -> Result<()> {
        self.nodes += 1;
        if self.nodes > MAX_PLAN_NODES {
            return Err(refused(format!(
                "the query has more than {MAX_PLAN_NODES} operators and expressions"
            )));
        }
        Ok(())
    }
}

fn function(name: &str, volatility: Volatility) -> Result<()> {
    if volatility != Volatility::Immutable {
        return Err(refused(format!(
            "the function `{name}` depends on more than its arguments, so that two hosts would compute different values"
        )));
    }
    if LENGTHENING.contains(&name) {
        return Err(unbounded(&format!("the function `{name}`")));
    }
    if SLOW.contains(&name) {
        return Err(refused(format!(
            "the function `{name}` is not offered: its time has no bound by the size of the object"
        )));
    }
    Ok(())
}

fn cast(value: &Expr, schema: &DFSchema) -> Result<()> {
    if type_of(value, schema)?.is_nested() {
        return Err(unbounded("a list, map or struct as text"));
    }
    Ok(())
}

fn type_of(expr: &Expr, schema: &DFSchema) -> Result<DataType> {
    expr.get_type(schema).map_err(fault::query)
}

fn is_short(found: &DataType) -> bool {
    found.primitive_width().is_some() || matches!(found, DataType::Boolean | DataType::Null)
}

const fn is_text(found: &DataType) -> bool {
    matches!(found, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn unbounded(what: &str) -> Error {
    refused(format!(
        "{what} is not offered: what it holds has no bound by the size of the object"
    ))
}

fn refused(message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidPipeline, message)
}
