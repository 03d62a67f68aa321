//! Checks what a query may do: read `object` in bounded memory, with functions that depend only on their arguments.
//!
//! Operators that pair rows with rows, and functions that compute long values from short ones, can need more memory than any
//! object has bytes. They are refused, or limited to the memory of the query (`function_memory`, `window_memory`).

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

use crate::{fault, guard::pattern};
use pushdown_core::{
    Error, ErrorKind, Result,
    limits::{MAX_PLAN_NODES, MAX_PLAN_SCANS, MAX_PLAN_WINDOWS},
};

/// Functions whose result can be arbitrarily longer than their arguments.
const UNBOUNDED_FUNCTIONS: [&str; 11] = [
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
/// Functions whose time is proportional to the product of their arguments' lengths.
const SLOW_FUNCTIONS: [&str; 3] = ["array_has_all", "array_has_any", "levenshtein"];
/// Functions without arguments whose result the engine determines. DataFusion declares the other ones as volatile.
const ENGINE_FUNCTIONS: [&str; 1] = ["version"];
/// Functions that cast their first argument.
const CAST_FUNCTIONS: [&str; 4] = ["arrow_cast", "arrow_try_cast", "cast_to_type", "try_cast_to_type"];
/// Aggregates that are computed incrementally over windows.
const WINDOW_AGGREGATES: [&str; 5] = ["avg", "count", "max", "min", "sum"];

/// Counts of the plan's parts checked so far.
#[derive(Debug, Default)]
struct Guard {
    nodes: usize,
    scans: usize,
    windows: usize,
    /// Regular expressions with a counted repetition.
    counted_patterns: usize,
}

/// Checks a plan before it is optimised.
///
/// # Errors
/// [`InvalidPipeline`](ErrorKind::InvalidPipeline) for an unsupported operator or function, by name, and for
/// a query that is too large.
pub(crate) fn check(plan: &LogicalPlan) -> Result<()> {
    let mut guard = Guard::default();
    let no_columns = DFSchema::empty();
    let walked: PlanResult<_> = plan.apply_with_subqueries(|plan| {
        fault::to_plan_result(guard.operator(plan))?;
        let inputs = plan.inputs();
        let schema = inputs
            .first()
            .map_or(&no_columns, |input| input.schema().as_ref());
        plan.apply_expressions(|expr| {
            expr.apply(|expr| {
                fault::to_plan_result(guard.expression(expr, schema))?;
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map(drop).map_err(fault::query)
}

/// Checks an expression over the columns of `schema` before it is optimised.
///
/// # Errors
/// As [`check`].
pub(crate) fn check_expression(expr: &Expr, schema: &DFSchema) -> Result<()> {
    let mut guard = Guard::default();
    let walked: PlanResult<_> = expr.apply(|expr| {
        fault::to_plan_result(guard.expression(expr, schema))?;
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map(drop).map_err(fault::query)
}

impl Guard {
    fn operator(&mut self, plan: &LogicalPlan) -> Result<()> {
        self.count_node()?;
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
            LogicalPlan::RecursiveQuery(_) => Err(refused(
                "a recursive query is not supported: its size has no bound",
            )),
            LogicalPlan::Join(_) => Err(unbounded("a join (also INTERSECT and EXCEPT)")),
            LogicalPlan::Unnest(_) => Err(unbounded("unnest")),
            _ => Err(refused(
                "expected a query: SELECT ... FROM object, found another statement",
            )),
        }
    }

    fn expression(&mut self, expr: &Expr, schema: &DFSchema) -> Result<()> {
        self.count_node()?;
        match expr {
            Expr::ScalarFunction(call) => {
                let (name, arguments) = (call.func.name(), call.args.as_slice());
                check_function(name, call.func.signature().volatility)?;
                pattern::check_call(name, arguments, &mut self.counted_patterns)?;
                match arguments.first() {
                    Some(value) if CAST_FUNCTIONS.contains(&name) => check_cast(value, schema),
                    _ => Ok(()),
                }
            }
            Expr::AggregateFunction(call) => {
                check_function(call.func.name(), call.func.signature().volatility)
            }
            Expr::WindowFunction(call) => self.window(expr, call, schema),
            Expr::BinaryExpr(binary) => match binary.op {
                Operator::StringConcat => Err(refused("`||` is not supported: write concat(a, b)")),
                Operator::RegexMatch | Operator::RegexNotMatch => {
                    pattern::check(&binary.right, "", &mut self.counted_patterns)
                }
                Operator::RegexIMatch | Operator::RegexNotIMatch => {
                    pattern::check(&binary.right, "i", &mut self.counted_patterns)
                }
                _ => Ok(()),
            },
            Expr::Like(like) => pattern::check_like(like),
            Expr::SimilarTo(like) => pattern::check(&like.pattern, "", &mut self.counted_patterns),
            Expr::Cast(to) if is_text(to.field.data_type()) => check_cast(&to.expr, schema),
            Expr::TryCast(to) if is_text(to.field.data_type()) => check_cast(&to.expr, schema),
            Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_) => {
                Err(unbounded("a condition on another query: IN, EXISTS, ANY, ALL"))
            }
            Expr::OuterReferenceColumn(..) => {
                Err(unbounded("a subquery that refers to columns of the outer query"))
            }
            Expr::ScalarSubquery(_) if !is_short(&type_of(expr, schema)?) => {
                Err(unbounded("a subquery that returns a text or a list"))
            }
            Expr::GroupingSet(_) => Err(unbounded("grouping by several sets of columns")),
            Expr::HigherOrderFunction(_) | Expr::Lambda(_) | Expr::Unnest(_) => {
                Err(unbounded("a lambda function or unnest"))
            }
            _ => Ok(()),
        }
    }

    /// Each row contains a copy of the result, so it must be short. An aggregate must be incremental: otherwise each row computes
    /// it from scratch.
    fn window(&mut self, expr: &Expr, call: &WindowFunction, schema: &DFSchema) -> Result<()> {
        self.windows += 1;
        if self.windows > MAX_PLAN_WINDOWS {
            return Err(refused(format!(
                "the query has more than {MAX_PLAN_WINDOWS} window functions"
            )));
        }
        let name = call.fun.name();
        check_function(name, call.fun.signature().volatility)?;
        let is_aggregate = matches!(call.fun, WindowFunctionDefinition::AggregateUDF(_));
        if is_aggregate && (call.params.distinct || !WINDOW_AGGREGATES.contains(&name)) {
            let supported = WINDOW_AGGREGATES.join(", ");
            return Err(refused(format!(
                "unsupported window aggregate: expected one of {supported}, without DISTINCT, found `{name}` over windows"
            )));
        }
        if call.params.null_treatment == Some(NullTreatment::IgnoreNulls) {
            return Err(unbounded("IGNORE NULLS"));
        }
        if !is_short(&type_of(expr, schema)?) {
            return Err(unbounded("a window function that returns a text or a list"));
        }
        Ok(())
    }

    fn count_node(&mut self) -> Result<()> {
        self.nodes += 1;
        if self.nodes > MAX_PLAN_NODES {
            return Err(refused(format!(
                "the query has more than {MAX_PLAN_NODES} operators and expressions"
            )));
        }
        Ok(())
    }
}

fn check_function(name: &str, volatility: Volatility) -> Result<()> {
    if volatility != Volatility::Immutable || ENGINE_FUNCTIONS.contains(&name) {
        return Err(refused(format!(
            "the function `{name}` is not supported: it depends on more than its arguments, and two hosts can compute different values"
        )));
    }
    if UNBOUNDED_FUNCTIONS.contains(&name) {
        return Err(unbounded(&format!("the function `{name}`")));
    }
    if SLOW_FUNCTIONS.contains(&name) {
        return Err(refused(format!(
            "the function `{name}` is not supported: its time has no bound by the size of the object"
        )));
    }
    Ok(())
}

fn check_cast(value: &Expr, schema: &DFSchema) -> Result<()> {
    if type_of(value, schema)?.is_nested() {
        return Err(unbounded("a list, map or struct as text"));
    }
    Ok(())
}

fn type_of(expr: &Expr, schema: &DFSchema) -> Result<DataType> {
    expr.get_type(schema).map_err(fault::query)
}

fn is_short(data_type: &DataType) -> bool {
    data_type.primitive_width().is_some() || matches!(data_type, DataType::Boolean | DataType::Null)
}

const fn is_text(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

fn unbounded(what: &str) -> Error {
    refused(format!(
        "{what} is not supported: its memory has no bound by the size of the object"
    ))
}

fn refused(message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidPipeline, message)
}
