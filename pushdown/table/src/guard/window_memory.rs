//! Reserves memory for the rows that window operators buffer: DataFusion's window operators do not.

use std::{fmt, sync::Arc};

use datafusion::{
    common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion},
    error::Result,
    execution::{SendableRecordBatchStream, TaskContext, memory_pool::MemoryConsumer},
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties,
        execution_plan::replace_children_if_necessary,
        stream::RecordBatchStreamAdapter,
        windows::{BoundedWindowAggExec, WindowAggExec},
    },
};
use futures::StreamExt as _;

use pushdown_core::table::batch_bytes;

/// Adds an operator below each window operator that reserves memory for its input.
pub(crate) fn reserve_window_memory(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        if !node.is::<WindowAggExec>() && !node.is::<BoundedWindowAggExec>() {
            return Ok(Transformed::no(node));
        }
        let reserved = |input: &Arc<dyn ExecutionPlan>| Arc::new(WindowMemoryExec(Arc::clone(input))) as _;
        let inputs = node.children().into_iter().map(reserved).collect();
        replace_children_if_necessary(node, inputs).map(Transformed::yes)
    })?;
    Ok(plan.data)
}

/// Reserves memory for rows that stay in memory until the input ends.
#[derive(Debug)]
struct WindowMemoryExec(Arc<dyn ExecutionPlan>);

impl DisplayAs for WindowMemoryExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WindowMemoryExec")
    }
}

impl ExecutionPlan for WindowMemoryExec {
    fn name(&self) -> &'static str {
        "WindowMemoryExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.0.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.0]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = datafusion::common::utils::take_function_args(self.name(), children)?;
        Ok(Arc::new(Self(input)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let reservation = MemoryConsumer::new(self.name()).register(context.memory_pool());
        let rows = self.0.execute(partition, context)?.map(move |batch| {
            let batch = batch?;
            reservation.try_grow(usize::try_from(batch_bytes(&batch)).unwrap_or(usize::MAX))?;
            Ok(batch)
        });
        // The window operator drops this stream, and its reservation with it, after its own last row.
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.0.schema(), rows)))
    }
}
