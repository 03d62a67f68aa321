//! Plans a query over an object and runs it: one partition, one thread, no caches, nothing but the object within reach.

use std::{future::Future, panic::AssertUnwindSafe, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use datafusion::{
    catalog::TableProvider,
    execution::{
        SessionState, SessionStateBuilder, SessionStateDefaults,
        disk_manager::{DiskManagerBuilder, DiskManagerMode},
        memory_pool::GreedyMemoryPool,
        runtime_env::{RuntimeEnv, RuntimeEnvBuilder},
    },
    logical_expr::LogicalPlan,
    physical_plan::execute_stream,
    prelude::SessionConfig,
};
use futures::{FutureExt as _, StreamExt as _, stream::BoxStream};

use super::{
    bounded::bounded,
    comparison,
    duckdb::{self, DuckDb},
    estimate, extremes, fault,
    filtered::filtered,
    format::TableFile,
    functions, guard,
    held::counted,
    in_order::in_order,
    object::Object,
    options::Reading,
    output, overflow,
};
use crate::{
    Error, Estimate, Limits, Result, Source, Table, TableBuilder,
    limits::{BATCH_ROWS, TableLimits},
    step::Scope,
    table::batch_bytes,
};

/// The name of the table.
pub(super) const OBJECT: &str = "object";

/// Stack that the planner has left before it goes deeper, or else takes another one: some of what it does there goes as deep as
/// queries inside each other without looking.
const STACK_BYTES: usize = 512 << 10;

/// A step that makes a table of an object.
pub(crate) trait Query: Sync {
    /// How the object is read.
    fn reading(&self) -> &Reading;

    /// What to compute from the object's columns.
    fn plan(
        &self,
        state: &SessionState,
        object: Arc<dyn TableProvider>,
    ) -> impl Future<Output = Result<LogicalPlan>> + Send;
}

/// A query that is about to run.
pub(crate) struct Opened {
    /// The columns of the answer.
    pub(crate) schema: SchemaRef,
    /// What it will read and give.
    pub(crate) estimate: Estimate,
    /// The rows.
    pub(crate) batches: BoxStream<'static, Result<RecordBatch>>,
}

/// Reads what an object is, and plans a query over it. Has to be polled within a tokio runtime, as the rows have.
///
/// # Errors
/// [`Undecodable`](crate::ErrorKind::Undecodable) for an object that is no table;
/// [`Unsuitable`](crate::ErrorKind::Unsuitable) for one without a column of the query;
/// [`InvalidPipeline`](crate::ErrorKind::InvalidPipeline) for a query that no object can answer;
/// [`TooLarge`](crate::ErrorKind::TooLarge) past a limit; and what `source` fails with.
pub(crate) async fn open<Q: Query>(
    query: &Q,
    source: Arc<dyn Source>,
    sample_id: &[u8],
    limits: &Limits,
) -> Result<Opened> {
    let opening = AssertUnwindSafe(plan(query, source, sample_id, &limits.tables)).catch_unwind();
    let opened = opening.await.map_err(|_| panicked())??;
    let batches = AssertUnwindSafe(opened.batches).catch_unwind();
    let batches = batches.map(|batch| batch.map_err(|_| panicked())?).boxed();
    Ok(Opened { batches, ..opened })
}

/// Runs a query on an object that is in memory.
///
/// # Errors
/// As [`open`].
pub(crate) fn run<Q: Query>(query: &Q, object: Bytes, scope: &Scope<'_>) -> Result<Table> {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| Error::internal(format!("no runtime for a query: {error}")))?;
    runtime.block_on(async {
        let mut opened = open(query, Arc::new(object), scope.sample_id, scope.limits).await?;
        let mut table = TableBuilder::new(opened.schema, scope.limits.max_value_bytes);
        while let Some(batch) = opened.batches.next().await.transpose()? {
            table.push(batch)?;
        }
        Ok(table.build())
    })
}

async fn plan<Q: Query>(
    query: &Q,
    source: Arc<dyn Source>,
    sample_id: &[u8],
    limits: &TableLimits,
) -> Result<Opened> {
    recursive::set_minimum_stack_size(STACK_BYTES);
    let reading = query.reading();
    let stored = TableFile::open(reading, source, sample_id, limits).await?;
    let object = Arc::new(Object::new(stored, reading)?);
    let mut state = state(limits)?;
    let logical = query.plan(&state, Arc::clone(&object) as _).await?;
    let logical = prepared(logical, &state)?;
    let physical = state.create_physical_plan(&logical).await;
    let rows = object.batch_rows();
    *state.config_mut() = state.config().clone().with_batch_size(rows);
    let physical = physical
        .and_then(|plan| filtered(plan, rows))
        .and_then(in_order)
        .and_then(counted)
        .map_err(fault::query)?;
    let schema = output::schema(&physical.schema());
    let estimate = estimate::of(&object, &logical, &schema);
    let stream = execute_stream(physical, state.task_ctx()).map_err(fault::query)?;
    let (plain, most) = (SchemaRef::clone(&schema), limits.max_batch_bytes);
    let batches = stream
        .map(move |found| {
            let batch = output::batch(&found.map_err(fault::query)?, &plain)?;
            if batch_bytes(&batch) > most {
                return Err(Error::too_large(format!(
                    "a record batch of the answer has more bytes than the limit of {most}"
                )));
            }
            Ok(batch)
        })
        .boxed();
    Ok(Opened {
        schema,
        estimate,
        batches,
    })
}

/// A plan as it runs. A function of its own: what it sets aside on the stack, the planner of deep plans needs.
fn prepared(plan: LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    guard::check(&plan)?;
    // Comparisons compute what is made of literals alone, with DuckDB's meaning.
    duckdb::meant(plan)
        .and_then(|plan| comparison::exact(plan, state))
        .and_then(overflow::checked)
        .and_then(|plan| bounded(plan, &state.runtime_env().memory_pool))
        .map_err(fault::query)
}

/// A session of its own for each query: what one caller may read is never within another's reach.
fn state(limits: &TableLimits) -> Result<SessionState> {
    let mut planners = SessionStateDefaults::default_expr_planners();
    planners.insert(0, Arc::new(DuckDb));
    Ok(SessionStateBuilder::new()
        .with_config(config())
        .with_runtime_env(environment(limits)?)
        .with_expr_planners(planners)
        .with_type_planner(Arc::new(DuckDb))
        .with_scalar_functions(duckdb::functions(functions::portable(
            SessionStateDefaults::default_scalar_functions(),
        )))
        .with_aggregate_functions(extremes::with_floats(overflow::with_checked_sum(
            SessionStateDefaults::default_aggregate_functions(),
        )))
        .with_window_functions(SessionStateDefaults::default_window_functions())
        .build())
}

fn config() -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_target_partitions(1)
        .with_batch_size(BATCH_ROWS)
        .with_information_schema(false);
    let options = config.options_mut();
    options.execution.planning_concurrency = 1;
    options.execution.enable_recursive_ctes = false;
    // Names are those of the file, upper case and lower.
    options.sql_parser.enable_ident_normalization = false;
    // Numbers are decimals, orders end with NULL, and a query inside another one keeps its order, as in DuckDB.
    options.sql_parser.parse_float_as_decimal = true;
    "nulls_last".clone_into(&mut options.sql_parser.default_null_ordering);
    options.sql_parser.enable_subquery_sort_elimination = false;
    // What is wrong is told with its place.
    options.sql_parser.collect_spans = true;
    options.sql_parser.map_string_types_to_utf8view = false;
    // Filters that a running query makes would have what is read depend on how far it has come.
    options.optimizer.enable_dynamic_filter_pushdown = false;
    options.optimizer.enable_topk_dynamic_filter_pushdown = false;
    options.optimizer.enable_join_dynamic_filter_pushdown = false;
    options.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    config
}

fn environment(limits: &TableLimits) -> Result<Arc<RuntimeEnv>> {
    let memory = usize::try_from(limits.max_query_bytes).unwrap_or(usize::MAX);
    RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(GreedyMemoryPool::new(memory)))
        .with_disk_manager_builder(DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled))
        .with_metadata_cache_limit(0)
        .with_object_list_cache_limit(0)
        .with_file_statistics_cache_limit(0)
        .build_arc()
        .map_err(fault::query)
}

/// What a panic of a decoder means: its file is not what it should be.
pub(super) fn panicked() -> Error {
    Error::undecodable("a decoder gave up on the object: it is malformed, or a defect of the decoder")
}
