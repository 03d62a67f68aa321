//! Function calls.

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

use super::{CheckResult, GrammarChecker, refuse, refuse_if};

/// Aggregate and window functions. DISTINCT, ORDER BY, FILTER and OVER apply only to these; the planner silently ignores the
/// clauses for other functions.
static MULTI_ROW_FUNCTIONS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let aggregates = SessionStateDefaults::default_aggregate_functions();
    let windows = SessionStateDefaults::default_window_functions();
    let aggregates = aggregates
        .iter()
        .map(|function| (function.name(), function.aliases()));
    let windows = windows
        .iter()
        .map(|function| (function.name(), function.aliases()));
    aggregates
        .chain(windows)
        .flat_map(|(name, aliases)| std::iter::once(name).chain(aliases.iter().map(String::as_str)))
        .map(str::to_owned)
        .collect()
});

impl<'a> GrammarChecker<'a> {
    pub(super) fn function(&mut self, function: &'a Function, span: Span) -> CheckResult {
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
        refuse_if(*uses_odbc_syntax, "a function in braces", span)?;
        refuse_if(
            *parameters != FunctionArguments::None,
            "a function with two argument lists",
            span,
        )?;
        let name = name.to_string();
        let is_multi_row = MULTI_ROW_FUNCTIONS.contains(&name.to_lowercase());
        let multi_row_only = |is_present: bool, clause: &str| {
            refuse_if(
                is_present && !is_multi_row,
                &format!("{clause} for `{name}`, a function of one row,"),
                span,
            )
        };
        multi_row_only(filter.is_some(), "FILTER")?;
        multi_row_only(null_treatment.is_some(), "IGNORE NULLS or RESPECT NULLS")?;
        multi_row_only(over.is_some(), "OVER")?;
        multi_row_only(!within_group.is_empty(), "WITHIN GROUP")?;
        self.expressions.extend(filter.iter().map(AsRef::as_ref));
        self.orders(within_group)?;
        match over {
            None => {}
            Some(WindowType::NamedWindow(name)) => self.expansion.add_window(self.place, name),
            Some(WindowType::WindowSpec(window)) => self.window(window)?,
        }
        match args {
            FunctionArguments::None => Ok(()),
            FunctionArguments::Subquery(_) => refuse("a function of a query", span),
            FunctionArguments::List(FunctionArgumentList {
                duplicate_treatment,
                args,
                clauses,
            }) => {
                match duplicate_treatment {
                    None => {}
                    Some(DuplicateTreatment::Distinct) => multi_row_only(true, "DISTINCT")?,
                    Some(DuplicateTreatment::All) => multi_row_only(true, "ALL")?,
                }
                for argument in args {
                    self.argument(argument, &name, span)?;
                }
                for clause in clauses {
                    match clause {
                        FunctionArgumentClause::OrderBy(orders) => {
                            multi_row_only(true, "ORDER BY")?;
                            self.orders(orders)?;
                        }
                        FunctionArgumentClause::IgnoreOrRespectNulls(
                            NullTreatment::IgnoreNulls | NullTreatment::RespectNulls,
                        ) => multi_row_only(true, "IGNORE NULLS or RESPECT NULLS")?,
                        FunctionArgumentClause::Limit(_) => refuse("LIMIT inside a function", span)?,
                        FunctionArgumentClause::OnOverflow(_) => refuse("ON OVERFLOW", span)?,
                        FunctionArgumentClause::Having(_) => refuse("HAVING inside a function", span)?,
                        FunctionArgumentClause::Separator(_) => refuse("SEPARATOR", span)?,
                        FunctionArgumentClause::JsonNullClause(_)
                        | FunctionArgumentClause::JsonReturningClause(_) => {
                            refuse("a JSON clause inside a function", span)?;
                        }
                    }
                }
                Ok(())
            }
        }
    }

    fn argument(&mut self, argument: &'a FunctionArg, name: &str, span: Span) -> CheckResult {
        let argument = match argument {
            FunctionArg::Named { .. } | FunctionArg::ExprNamed { .. } => {
                return refuse("a named argument", span);
            }
            FunctionArg::Unnamed(argument) => argument,
        };
        match argument {
            FunctionArgExpr::Expr(expr) => {
                self.expressions.push(expr);
                Ok(())
            }
            FunctionArgExpr::Wildcard => refuse_if(
                !name.eq_ignore_ascii_case("count"),
                &format!("`*` as an argument of `{name}`"),
                span,
            ),
            FunctionArgExpr::QualifiedWildcard(_) => refuse("`.*` as an argument", span),
            FunctionArgExpr::WildcardWithOptions(_) => refuse("`*` with options as an argument", span),
        }
    }
}
