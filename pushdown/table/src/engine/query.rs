//! Plans a query over an object and runs it: one partition, one thread, no caches, and access to the object only.

use std::{
    future::{Future, poll_fn},
    panic::AssertUnwindSafe,
    sync::Arc,
};

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
use futures::{FutureExt as _, StreamExt as _};
use tokio::task::yield_now;

use crate::{
    duckdb::{self, DuckDb, comparison},
    engine::{
        filter_batches::limit_filter_batches, object::ObjectTable,
        ordered_partitions::concatenate_partitions, output,
    },
    fault,
    formats::{format::TableFile, read_options::ReadOptions},
    guard::{
        checks, distinct_keys::without_repeated_keys, extremes, function_memory::limit_function_memory,
        functions, inlining, overflow, window_memory::reserve_window_memory,
    },
    pruning::estimate,
};
use pushdown_core::{
    Error, Limits, Result, Source, Table, TableBuilder,
    limits::{BATCH_ROWS, TableLimits},
    step::{OpenTable, Scope},
    table::batch_bytes,
};

/// Minimum stack that the planner has before each checked recursion; with less it continues on a new stack. Large, because some
/// of its code recurses once per nested query without a check.
const MIN_STACK_BYTES: usize = 512 << 10;

/// Stack on which a query is planned, of which only what is used takes memory. The planner checks the stack in some of its
/// recursions only: an expression with as many operators as are allowed takes more than a thread has.
const PLANNING_STACK_BYTES: usize = 16 << 20;

/// A step that reads an object as a table.
pub(crate) trait TableQuery: Sync {
    /// How the object is read.
    fn read_options(&self) -> &ReadOptions;

    /// The logical plan over the object's columns.
    fn plan(
        &self,
        state: &SessionState,
        object: Arc<dyn TableProvider>,
    ) -> impl Future<Output = Result<LogicalPlan>> + Send;
}

/// Reads an object's metadata and plans a query over it. It and the rows must be polled within a tokio runtime.
///
/// # Errors
/// [`Undecodable`](pushdown_core::ErrorKind::Undecodable) for an object that is not a table;
/// [`Unsuitable`](pushdown_core::ErrorKind::Unsuitable) for one without a column of the query;
/// [`InvalidPipeline`](pushdown_core::ErrorKind::InvalidPipeline) for a query that is invalid for every object;
/// [`TooLarge`](pushdown_core::ErrorKind::TooLarge) past a limit; and errors of `source`.
pub(crate) async fn open<Q: TableQuery>(
    query: &Q,
    source: Arc<dyn Source>,
    sample_id: &[u8],
    limits: &Limits,
) -> Result<OpenTable> {
    let mut planning = plan(query, source, sample_id, &limits.tables).boxed();
    let planning = poll_fn(|task| {
        let poll = || planning.poll_unpin(task);
        stacker::maybe_grow(PLANNING_STACK_BYTES / 2, PLANNING_STACK_BYTES, poll)
    });
    let planning = AssertUnwindSafe(planning).catch_unwind();
    let opened = planning.await.map_err(|_| decoder_panicked())??;
    let batches = AssertUnwindSafe(opened.batches)
        .catch_unwind()
        .map(|batch| batch.map_err(|_| decoder_panicked())?)
        .boxed();
    Ok(OpenTable { batches, ..opened })
}

/// Runs a query over an object in memory.
///
/// # Errors
/// As [`open`].
pub(crate) fn run<Q: TableQuery>(query: &Q, object: Bytes, scope: &Scope<'_>) -> Result<Table> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| Error::internal(format!("cannot start a tokio runtime for a query: {error}")))?;
    runtime.block_on(async {
        let mut opened = open(query, Arc::new(object), scope.sample_id, scope.limits).await?;
        let mut table = TableBuilder::new(opened.schema, scope.limits.max_value_bytes);
        while let Some(batch) = opened.batches.next().await.transpose()? {
            table.push(batch)?;
        }
        Ok(table.build())
    })
}

/// Yields to the executor after each phase, so that planning ends early if nobody waits for it any more.
async fn plan<Q: TableQuery>(
    query: &Q,
    source: Arc<dyn Source>,
    sample_id: &[u8],
    limits: &TableLimits,
) -> Result<OpenTable> {
    recursive::set_minimum_stack_size(MIN_STACK_BYTES);
    let options = query.read_options();
    let stored = TableFile::open(options, source, sample_id, limits).await?;
    let object = Arc::new(ObjectTable::new(stored, options)?);
    let planned = AssertUnwindSafe(plan_over(query, object, limits)).catch_unwind();
    match planned.await {
        Ok(opened) => opened.map_err(fault::planning),
        Err(_) => Err(fault::planning(Error::internal("the planner panicked"))),
    }
}

/// Plans a query over an object whose metadata is read.
async fn plan_over<Q: TableQuery>(
    query: &Q,
    object: Arc<ObjectTable>,
    limits: &TableLimits,
) -> Result<OpenTable> {
    let mut state = session_state(limits)?;
    let plan = query.plan(&state, Arc::clone(&object) as _).await?;
    yield_now().await;
    let logical = rewrite_plan(plan, &state)?;
    yield_now().await;
    let optimized = state.optimize(&logical).map_err(fault::query)?;
    yield_now().await;
    let planner = Arc::clone(state.query_planner());
    let planned = planner.create_physical_plan(&optimized, &state).await;
    yield_now().await;
    // Planning has registered the scans, which determine the batch size.
    let batch_rows = object.batch_rows();
    *state.config_mut() = state.config().clone().with_batch_size(batch_rows);
    let physical = planned
        .and_then(|plan| limit_filter_batches(plan, batch_rows))
        .and_then(concatenate_partitions)
        .and_then(reserve_window_memory)
        .map_err(fault::query)?;
    let schema = output::without_views(&physical.schema());
    let estimate = estimate::estimate_query(&object, &logical, &schema);
    let stream = execute_stream(physical, state.task_ctx()).map_err(fault::query)?;
    let (output_schema, max_bytes) = (SchemaRef::clone(&schema), limits.max_batch_bytes);
    let batches = stream
        .map(move |batch| {
            let batch = output::cast_batch(&batch.map_err(fault::query)?, &output_schema)?;
            let bytes = batch_bytes(&batch);
            if bytes > max_bytes {
                return Err(Error::too_large(format!(
                    "record batch too large: expected at most {max_bytes} bytes, found {bytes}"
                )));
            }
            Ok(batch)
        })
        .boxed();
    Ok(OpenTable {
        schema,
        estimate,
        batches,
    })
}

/// Checks a plan and applies all rewrites. A separate function, so that its stack frame is gone while deep plans are planned.
fn rewrite_plan(plan: LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    checks::check(&plan)?;
    inlining::check(&plan)?;
    let plan = without_repeated_keys(plan).map_err(fault::query)?;
    // DuckDB's semantics are applied first, because `compare_by_value` evaluates constant expressions.
    duckdb::with_duckdb_semantics(plan)
        .and_then(|plan| comparison::compare_by_value(plan, state))
        .and_then(overflow::check_overflow)
        .and_then(|plan| limit_function_memory(plan, &state.runtime_env().memory_pool))
        .map_err(fault::query)
}

/// A session for one query, so that no caller can access what another caller reads.
fn session_state(limits: &TableLimits) -> Result<SessionState> {
    let mut planners = SessionStateDefaults::default_expr_planners();
    planners.insert(0, Arc::new(DuckDb));
    Ok(SessionStateBuilder::new()
        .with_config(session_config())
        .with_runtime_env(runtime_env(limits)?)
        .with_expr_planners(planners)
        .with_type_planner(Arc::new(DuckDb))
        .with_scalar_functions(duckdb::with_duckdb_functions(functions::with_portable_functions(
            SessionStateDefaults::default_scalar_functions(),
        )))
        .with_aggregate_functions(extremes::with_total_order(overflow::with_checked_sum(
            SessionStateDefaults::default_aggregate_functions(),
        )))
        .with_window_functions(SessionStateDefaults::default_window_functions())
        .build())
}

fn session_config() -> SessionConfig {
    let mut config = SessionConfig::new()
        .with_target_partitions(1)
        .with_batch_size(BATCH_ROWS)
        .with_information_schema(false);
    let options = config.options_mut();
    options.execution.planning_concurrency = 1;
    options.execution.enable_recursive_ctes = false;
    // Names are case-sensitive, as in the file.
    options.sql_parser.enable_ident_normalization = false;
    // As in DuckDB: number literals are decimals, NULL sorts last, and a subquery keeps its order.
    options.sql_parser.parse_float_as_decimal = true;
    "nulls_last".clone_into(&mut options.sql_parser.default_null_ordering);
    options.sql_parser.enable_subquery_sort_elimination = false;
    // Errors contain a position in the query.
    options.sql_parser.collect_spans = true;
    options.sql_parser.map_string_types_to_utf8view = false;
    // With filters that a running query generates, the bytes read would depend on timing.
    options.optimizer.enable_dynamic_filter_pushdown = false;
    options.optimizer.enable_topk_dynamic_filter_pushdown = false;
    options.optimizer.enable_join_dynamic_filter_pushdown = false;
    options.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    config
}

fn runtime_env(limits: &TableLimits) -> Result<Arc<RuntimeEnv>> {
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

/// The error for a panic of a decoder. Some malformed files cause one.
pub(crate) fn decoder_panicked() -> Error {
    Error::undecodable("a decoder failed on the object: the object is malformed, or the decoder has a defect")
}
