//! `sql`: a query over the one table `object`.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::{
    catalog::TableProvider,
    execution::SessionState,
    logical_expr::LogicalPlan,
    sql::{parser::Statement, sqlparser::ast},
};

use super::{Query, engine, fault, options::Reading, syntax};
use crate::{
    BytesKind, Error, ErrorKind, Result, Table, TableKind,
    limits::MAX_STAR_COLUMNS,
    pipeline::{Args, Param, Value},
    step::{Operator, Scope},
};

/// `sql`. Without `ORDER BY`, rows keep the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sql {
    query: String,
    reading: Reading,
}

impl Operator for Sql {
    type Input = Bytes;
    type Output = Table;

    const NAME: &'static str = "sql";
    const SUMMARY: &'static str =
        "runs a read-only query over the one table `object`: Parquet, CSV, JSON lines, Arrow";
    const PARAMS: &'static [Param] = &[
        Param::positional(
            "query",
            "SQL",
            "SELECT ... FROM object ..., of functions that depend on their arguments alone",
        ),
        Reading::FORMAT,
        Reading::HEADER,
        Reading::DELIMITER,
        Reading::ROW_NUMBER,
        Reading::ROWS,
    ];

    fn parse(args: &Args<'_>) -> Result<Self> {
        let query: String = args.required("query")?;
        if let Err(found) = syntax::query(&query) {
            return Err(args.fault_inside("query", found.offset, found.message));
        }
        Ok(Self {
            query,
            reading: Reading::parse(args)?,
        })
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        let mut arguments = vec![("query", Value::Text(self.query.clone()))];
        arguments.extend(self.reading.arguments());
        arguments
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

impl Query for Sql {
    fn reading(&self) -> &Reading {
        &self.reading
    }

    async fn plan(&self, state: &SessionState, object: Arc<dyn TableProvider>) -> Result<LogicalPlan> {
        let invalid = |found: syntax::Fault| Error::new(ErrorKind::InvalidPipeline, found.message);
        let query = syntax::query(&self.query).map_err(invalid)?;
        let (columns, stars) = (
            object.schema().fields().len(),
            syntax::wildcards(&self.query).map_err(invalid)?,
        );
        // Planning takes the square of how many there are.
        if columns.saturating_mul(stars) > MAX_STAR_COLUMNS {
            return Err(Error::too_large(format!(
                "`*` stands for {columns} columns of the object, {stars} times, more than {MAX_STAR_COLUMNS} in all: name \
                 those that are needed, or take `select`"
            )));
        }
        state
            .schema_for_ref(engine::OBJECT)
            .and_then(|schema| schema.register_table(engine::OBJECT.to_owned(), object))
            .map_err(fault::query)?;
        let statement = Statement::Statement(Box::new(ast::Statement::Query(query)));
        state.statement_to_plan(statement).await.map_err(fault::planned)
    }
}
