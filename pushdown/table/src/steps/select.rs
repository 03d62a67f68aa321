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
use futures::{FutureExt as _, future::BoxFuture};

use crate::{
    OBJECT_TABLE,
    engine::query::{self, TableQuery},
    fault,
    formats::read_options::ReadOptions,
    guard::{checks, duplicate::first_duplicate, syntax},
};
use pushdown_core::{
    BytesKind, Error, ErrorKind, Family, Limits, Result, Source, Table, TableKind,
    language::{Args, Param, Value},
    step::{OpenTable, Operator, RowSelection, Scope, TableReader},
};

/// `select`. The rows keep the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Select {
    columns: Option<Vec<String>>,
    condition: Option<String>,
    limit: Option<u64>,
    read_options: ReadOptions,
}

impl Operator for Select {
    type Input = Bytes;
    type Output = Table;

    const NAME: &'static str = "select";
    const SUMMARY: &'static str = "reads columns and rows of a table: Parquet, CSV, JSON lines, Arrow";
    const FAMILIES: &'static [Family] = &[Family::Table];
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

    fn table_reader(&self) -> Option<&dyn TableReader> {
        Some(self)
    }

    fn with_rows(&self, rows: Range<u64>) -> Option<Self> {
        let mut select = self.clone();
        select.read_options.rows = Some(rows.into());
        Some(select)
    }

    fn row_numbers(&self, column_name: &str) -> Option<Self> {
        let mut select = self.clone();
        select.columns = Some(vec![column_name.to_owned()]);
        select.read_options.row_number = Some(column_name.to_owned());
        Some(select)
    }

    fn apply(&self, input: Bytes, scope: &Scope<'_>) -> Result<Table> {
        query::run(self, input, scope)
    }
}

impl TableReader for Select {
    fn open<'a>(
        &'a self,
        source: Arc<dyn Source>,
        sample_id: &'a [u8],
        limits: &'a Limits,
    ) -> BoxFuture<'a, Result<OpenTable>> {
        query::open(self, source, sample_id, limits).boxed()
    }

    fn row_selection(&self) -> Option<RowSelection<'_>> {
        let rows = self.read_options.rows.map(|_| "rows");
        Some(RowSelection {
            condition: self.condition.as_deref(),
            positional_argument: self.limit.map(|_| "limit").or(rows),
        })
    }
}

impl TableQuery for Select {
    fn read_options(&self) -> &ReadOptions {
        &self.read_options
    }

    async fn plan(&self, state: &SessionState, object: Arc<dyn TableProvider>) -> Result<LogicalPlan> {
        let schema = object.schema();
        let mut plan =
            LogicalPlanBuilder::scan(OBJECT_TABLE, provider_as_source(object), None).map_err(fault::query)?;
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
                let table = TableReference::bare(OBJECT_TABLE);
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
    checks::check_expression(&expr, schema)?;
    Ok(expr)
}
