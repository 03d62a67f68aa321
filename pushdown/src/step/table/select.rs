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

use super::{
    TableQuery, duplicate::first_duplicate, engine, fault, guard, read_options::ReadOptions, syntax,
};
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
    read_options: ReadOptions,
}

impl Select {
    /// The condition on rows.
    pub fn condition(&self) -> Option<&str> {
        self.condition.as_deref()
    }

    /// The name of the argument that selects rows by their number, if there is one.
    pub(crate) fn rows_or_limit(&self) -> Option<&'static str> {
        if self.limit.is_some() {
            Some("limit")
        } else {
            self.read_options.rows.map(|_| "rows")
        }
    }

    /// The same step over a range of row numbers.
    pub(crate) fn with_rows(&self, rows: Range<u64>) -> Self {
        let mut select = self.clone();
        select.read_options.rows = Some(rows.into());
        select
    }

    /// A step that returns only the numbers of the selected rows, in the column `name`.
    pub(crate) fn row_numbers(&self, name: &str) -> Self {
        let mut select = self.clone();
        select.columns = Some(vec![name.to_owned()]);
        select.read_options.row_number = Some(name.to_owned());
        select
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
            "the condition on rows, as after WHERE in SQL",
        ),
        Param::named(
            "limit",
            "rows = all",
            "maximum number of rows: the first ones in the file that fulfil the condition",
        ),
        ReadOptions::FORMAT,
        ReadOptions::HEADER,
        ReadOptions::DELIMITER,
        ReadOptions::ROW_NUMBER,
        ReadOptions::ROWS,
    ];

    fn parse(args: &Args<'_>) -> Result<Self> {
        let select = Self {
            columns: args.optional("columns")?,
            condition: args.optional("where")?,
            limit: args.optional("limit")?,
            read_options: ReadOptions::parse(args)?,
        };
        if let Some(columns) = &select.columns {
            if let Some(name) = first_duplicate(columns.iter().map(String::as_str)) {
                return Err(args.fault(format!("duplicate name in `columns`: `{name}`")));
            }
            if columns.is_empty() {
                return Err(args.fault("`columns` is empty, expected at least one name"));
            }
        }
        if let Some(condition) = &select.condition
            && let Err(error) = syntax::expression(condition)
        {
            return Err(args.fault_inside("where", error.offset, format!("`where`: {}", error.message)));
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
        own.chain(self.read_options.arguments()).collect()
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

impl TableQuery for Select {
    fn read_options(&self) -> &ReadOptions {
        &self.read_options
    }

    async fn plan(&self, state: &SessionState, object: Arc<dyn TableProvider>) -> Result<LogicalPlan> {
        let schema = object.schema();
        let mut plan = LogicalPlanBuilder::scan(engine::OBJECT_TABLE, provider_as_source(object), None)
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
                let table = TableReference::bare(engine::OBJECT_TABLE);
                Ok(Expr::Column(Column::new(Some(table), name)))
            };
            let row_number = self
                .read_options
                .row_number
                .iter()
                .filter(|name| !columns.contains(name));
            let columns = columns
                .iter()
                .chain(row_number)
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

/// Parses the condition as an expression over the table.
fn expression(sql: &str, state: &SessionState, schema: &DFSchema) -> Result<Expr> {
    let invalid = |error: syntax::SyntaxError| Error::new(ErrorKind::InvalidPipeline, error.message);
    let parsed = syntax::expression(sql).map_err(invalid)?;
    let unaliased = ExprWithAlias {
        expr: parsed,
        alias: None,
    };
    let expr = state
        .create_logical_expr_from_sql_expr(unaliased, schema)
        .map_err(fault::query)?;
    guard::check_expression(&expr, schema)?;
    Ok(expr)
}
