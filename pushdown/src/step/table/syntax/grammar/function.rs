//! Calls of functions.

use std::{collections::HashSet, sync::LazyLock};

use datafusion::{
    execution::SessionStateDefaults,
    sql::sqlparser::{
        ast::{
            DuplicateTreatment, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
            FunctionArgumentList, FunctionArguments, NullTreatment, WindowType,
        },
        tokenizer::Span,
    },
};

use super::{Checked, Pending, not, refused};

/// The functions over several rows, for which DISTINCT, ORDER BY, FILTER and OVER say something. The planner passes these over
/// for any other function.
static OVER_ROWS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let aggregates = SessionStateDefaults::default_aggregate_functions();
    let aggregates = aggregates.iter().flat_map(|function| {
        std::iter::once(function.name()).chain(function.aliases().iter().map(String::as_str))
    });
    let windows = SessionStateDefaults::default_window_functions();
    let windows = windows.iter().flat_map(|function| {
        std::iter::once(function.name()).chain(function.aliases().iter().map(String::as_str))
    });
    aggregates.chain(windows).map(str::to_owned).collect()
});

impl<'a> Pending<'a> {
    pub(super) fn function(&mut self, function: &'a Function, span: Span) -> Checked {
        let Function {
            name,
            uses_odbc_syntax,
            parameters,
            args,
            filter,
            null_treatment,
            over,
            within_group,
        } = function;
        not(*uses_odbc_syntax, "a function in braces", span)?;
        not(
            *parameters != FunctionArguments::None,
            "a function with two lists",
            span,
        )?;
        let name = name.to_string();
        let over_rows = OVER_ROWS.contains(&name.to_lowercase());
        let only_over_rows = |found: bool, clause: &str| {
            not(
                found && !over_rows,
                &format!("{clause} for `{name}`, which is a function of one row,"),
                span,
            )
        };
        only_over_rows(filter.is_some(), "FILTER")?;
        only_over_rows(null_treatment.is_some(), "IGNORE NULLS or RESPECT NULLS")?;
        only_over_rows(over.is_some(), "OVER")?;
        only_over_rows(!within_group.is_empty(), "WITHIN GROUP")?;
        self.expressions.extend(filter.iter().map(AsRef::as_ref));
        self.orders(within_group)?;
        match over {
            None | Some(WindowType::NamedWindow(_)) => {}
            Some(WindowType::WindowSpec(window)) => self.window(window)?,
        }
        match args {
            FunctionArguments::None => Ok(()),
            FunctionArguments::Subquery(_) => refused("a function of a query", span),
            FunctionArguments::List(FunctionArgumentList {
                duplicate_treatment,
                args,
                clauses,
            }) => {
                match duplicate_treatment {
                    None => {}
                    Some(DuplicateTreatment::Distinct) => only_over_rows(true, "DISTINCT")?,
                    Some(DuplicateTreatment::All) => only_over_rows(true, "ALL")?,
                }
                for argument in args {
                    self.argument(argument, &name, span)?;
                }
                for clause in clauses {
                    match clause {
                        FunctionArgumentClause::OrderBy(orders) => {
                            only_over_rows(true, "ORDER BY")?;
                            self.orders(orders)?;
                        }
                        FunctionArgumentClause::IgnoreOrRespectNulls(
                            NullTreatment::IgnoreNulls | NullTreatment::RespectNulls,
                        ) => only_over_rows(true, "IGNORE NULLS or RESPECT NULLS")?,
                        FunctionArgumentClause::Limit(_) => refused("LIMIT inside of a function", span)?,
                        FunctionArgumentClause::OnOverflow(_) => refused("ON OVERFLOW", span)?,
                        FunctionArgumentClause::Having(_) => refused("HAVING inside of a function", span)?,
                        FunctionArgumentClause::Separator(_) => refused("SEPARATOR", span)?,
                        FunctionArgumentClause::JsonNullClause(_)
                        | FunctionArgumentClause::JsonReturningClause(_) => {
                            refused("a clause of JSON inside of a function", span)?;
                        }
                    }
                }
                Ok(())
            }
        }
    }

    fn argument(&mut self, argument: &'a FunctionArg, name: &str, span: Span) -> Checked {
        let argument = match argument {
            FunctionArg::Named { .. } | FunctionArg::ExprNamed { .. } => {
                return refused("an argument with a name", span);
            }
            FunctionArg::Unnamed(argument) => argument,
        };
        match argument {
            FunctionArgExpr::Expr(expr) => {
                self.expressions.push(expr);
                Ok(())
            }
            FunctionArgExpr::Wildcard => not(
                !name.eq_ignore_ascii_case("count"),
                &format!("`*` as an argument of `{name}`"),
                span,
            ),
            FunctionArgExpr::QualifiedWildcard(_) => refused("`.*` as an argument", span),
            FunctionArgExpr::WildcardWithOptions(_) => refused("`*` with options as an argument", span),
        }
    }
}
