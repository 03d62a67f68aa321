//! `select`: some columns and some rows of a table.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use datafusion::{
    catalog::TableProvider,
    common::{Column, DFSchema, TableReference},
    datasource::provider_as_source,
    execution::SessionState,
    logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder},
    sql::sqlparser::ast::ExprWithAlias,
};

use super::{Query, engine, fault, guard, options::Reading, syntax, twice::twice};
use crate::{
    BytesKind, Error, ErrorKind, Result, Table, TableKind,
    pipeline::{Args, Param, Value},
    step::{Operator, Scope},
};

/// `select`. The rows keep the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Select {
    columns: Option<Vec<String>>,
    condition: Option<String>,
    limit: Option<u64>,
    reading: Reading,
}

impl Select {
    /// The condition that rows fulfil.
    pub fn condition(&self) -> Option<&str> {
        self.condition.as_deref()
    }

    /// The argument that chooses rows by their place, if there is one.
    pub(crate) fn rows_or_limit(&self) -> Option<&'static str> {
        if self.limit.is_some() {
            Some("limit")
        } else {
            self.reading.rows.map(|_| "rows")
        }
    }

    /// The same over rows at these places.
    pub(crate) fn over(&self, rows: Range<u64>) -> Self {
        let mut over = self.clone();
        over.reading.rows = Some(rows.into());
        over
    }

    /// The places of the rows that fulfil the condition, in the column `name`.
    pub(crate) fn places(&self, name: &str) -> Self {
        let mut places = self.clone();
        places.columns = Some(vec![name.to_owned()]);
        places.reading.row_number = Some(name.to_owned());
        places
    }
}

impl Operator for Select {
    type Input = Bytes;
    type Output = Table;

    const NAME: &'static str = "select";
    const SUMMARY: &'static str = "reads columns and rows of a table: Parquet, CSV, JSON lines, Arrow";
    const PARAMS: &'static [Param] = &[
        Param::positional("columns", "names = all", "the columns, in this order"),
        Param::named(
            "where",
            "SQL = true",
            "the condition that rows fulfil, as behind WHERE in SQL",
        ),
        Param::named(
            "limit",
            "rows = all",
            "the most rows, the first ones in the file that fulfil the condition",
        ),
        Reading::FORMAT,
        Reading::HEADER,
        Reading::DELIMITER,
        Reading::ROW_NUMBER,
        Reading::ROWS,
    ];

    fn parse(args: &Args<'_>) -> Result<Self> {
        let select = Self {
            columns: args.optional("columns")?,
            condition: args.optional("where")?,
            limit: args.optional("limit")?,
            reading: Reading::parse(args)?,
        };
        if let Some(columns) = &select.columns {
            if let Some(twice) = twice(columns.iter().map(String::as_str)) {
                return Err(args.fault(format!("`columns` has `{twice}` twice, expected it once")));
            }
            if columns.is_empty() {
                return Err(args.fault("`columns` is empty, expected at least one name"));
            }
        }
        if let Some(condition) = &select.condition
            && let Err(found) = syntax::expression(condition)
        {
            return Err(args.fault_inside("where", found.offset, format!("`where`: {}", found.message)));
        }
        Ok(select)
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        let columns = self.columns.as_ref().map(|columns| {
            let names = columns.iter().cloned().map(Value::Text);
            ("columns", Value::List(names.collect()))
        });
        let condition = self.condition.clone().map(|sql| ("where", Value::Text(sql)));
        let limit = self
            .limit
            .map(|rows| ("limit", Value::Int(i64::try_from(rows).unwrap_or(i64::MAX))));
        let own = [columns, condition, limit].into_iter().flatten();
        own.chain(self.reading.arguments()).collect()
    }

    fn output(&self, _input: &BytesKind) -> Result<TableKind, String> {
        Ok(TableKind::default())
    }

    fn scratch_bytes(&self, _input: &BytesKind) -> Option<u64> {
        None
    }

    fn apply(&self, input: Bytes, scope: &Scope<'_>) -> Result<Table> {
        engine::run(self, input, scope)
    }
}

impl Query for Select {
    fn reading(&self) -> &Reading {
        &self.reading
    }

    async fn plan(&self, state: &SessionState, object: Arc<dyn TableProvider>) -> Result<LogicalPlan> {
        let schema = object.schema();
        let mut plan = LogicalPlanBuilder::scan(engine::OBJECT, provider_as_source(object), None)
            .map_err(fault::query)?;
        if let Some(condition) = &self.condition {
            let condition = expression(condition, state, plan.schema())?;
            plan = plan.filter(condition).map_err(fault::query)?;
        }
        if let Some(columns) = &self.columns {
            let column = |name: &String| {
                if schema.index_of(name).is_err() {
                    let names = schema.fields().iter().map(|field| field.name().as_str());
                    return Err(fault::unknown_column(name, names));
                }
                let table = TableReference::bare(engine::OBJECT);
                Ok(Expr::Column(Column::new(Some(table), name)))
            };
            let number = self
                .reading
                .row_number
                .iter()
                .filter(|name| !columns.contains(name));
            let columns = columns
                .iter()
                .chain(number)
                .map(column)
                .collect::<Result<Vec<_>>>()?;
            plan = plan.project(columns).map_err(fault::query)?;
        }
        if let Some(limit) = self.limit {
            let limit = usize::try_from(limit).unwrap_or(usize::MAX);
            plan = plan.limit(0, Some(limit)).map_err(fault::query)?;
        }
        plan.build().map_err(fault::query)
    }
}

/// The condition as an expression over the table.
fn expression(sql: &str, state: &SessionState, schema: &DFSchema) -> Result<Expr> {
    let invalid = |found: syntax::Fault| Error::new(ErrorKind::InvalidPipeline, found.message);
    let parsed = syntax::expression(sql).map_err(invalid)?;
    let parsed = ExprWithAlias {
        expr: parsed,
        alias: None,
    };
    let expr = state
        .create_logical_expr_from_sql_expr(parsed, schema)
        .map_err(fault::query)?;
    guard::check_expression(&expr, schema)?;
    Ok(expr)
}
