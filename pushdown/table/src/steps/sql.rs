//! `sql`: a query over the one table `object`.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::{
    catalog::TableProvider,
    execution::SessionState,
    logical_expr::LogicalPlan,
    sql::{parser::Statement, sqlparser::ast},
};
use futures::{FutureExt as _, future::BoxFuture};

use crate::{
    OBJECT_TABLE,
    engine::query::{self, TableQuery},
    fault,
    formats::read_options::ReadOptions,
    guard::syntax,
};
use pushdown_core::{
    BytesKind, Error, ErrorKind, Family, Limits, Result, Source, Table, TableKind,
    language::{Args, Param, Value},
    limits::MAX_STAR_COLUMNS,
    step::{OpenTable, Operator, RowSelection, Scope, TableReader},
};

/// `sql`. Without `ORDER BY`, rows keep the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sql {
    query: String,
    read_options: ReadOptions,
}

impl Operator for Sql {
    type Input = Bytes;
    type Output = Table;

    const NAME: &'static str = "sql";
    const SUMMARY: &'static str =
        "runs a read-only query over the one table `object`: Parquet, CSV, JSON lines, Arrow";
    const FAMILIES: &'static [Family] = &[Family::Table];
    const PARAMS: &'static [Param] = &[
        Param::positional(
            "query",
            "SQL",
            "SELECT ... FROM object ..., with functions that depend only on their arguments",
        ),
        ReadOptions::FORMAT,
        ReadOptions::HEADER,
        ReadOptions::DELIMITER,
        ReadOptions::ROW_NUMBER,
        ReadOptions::ROWS,
    ];

    fn parse(args: &Args<'_>) -> Result<Self> {
        let query: String = args.required("query")?;
        if let Err(error) = syntax::query(&query) {
            return Err(args.fault_inside("query", error.offset, error.message));
        }
        Ok(Self {
            query,
            read_options: ReadOptions::parse(args)?,
        })
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        let mut arguments = vec![("query", Value::Text(self.query.clone()))];
        arguments.extend(self.read_options.arguments());
        arguments
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

    fn apply(&self, input: Bytes, scope: &Scope<'_>) -> Result<Table> {
        query::run(self, input, scope)
    }
}

impl TableReader for Sql {
    fn open<'a>(
        &'a self,
        source: Arc<dyn Source>,
        sample_id: &'a [u8],
        limits: &'a Limits,
    ) -> BoxFuture<'a, Result<OpenTable>> {
        query::open(self, source, sample_id, limits).boxed()
    }

    fn row_selection(&self) -> Option<RowSelection<'_>> {
        None
    }
}

impl TableQuery for Sql {
    fn read_options(&self) -> &ReadOptions {
        &self.read_options
    }

    async fn plan(&self, state: &SessionState, object: Arc<dyn TableProvider>) -> Result<LogicalPlan> {
        let invalid = |error: syntax::SyntaxError| Error::new(ErrorKind::InvalidPipeline, error.message);
        let query = syntax::query(&self.query).map_err(invalid)?;
        let columns = object.schema().fields().len();
        let wildcards = syntax::count_wildcards(&self.query).map_err(invalid)?;
        // Planning takes time quadratic in the number of columns.
        if columns.saturating_mul(wildcards) > MAX_STAR_COLUMNS {
            return Err(Error::too_large(format!(
                "`*` selects {columns} columns of the object, {wildcards} times, more than {MAX_STAR_COLUMNS} in all: name the \
                 columns, or use `select`"
            )));
        }
        state
            .schema_for_ref(OBJECT_TABLE)
            .and_then(|schema| schema.register_table(OBJECT_TABLE.to_owned(), object))
            .map_err(fault::query)?;
        let statement = Statement::Statement(Box::new(ast::Statement::Query(query)));
        state.statement_to_plan(statement).await.map_err(fault::sql)
    }
}
