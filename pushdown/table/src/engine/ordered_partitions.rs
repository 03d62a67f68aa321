//! Concatenates the partitions of a plan in order.
//!
//! A union has one partition per input. DataFusion merges partitions in the order in which they are ready, so that the order of
//! rows would depend on threads.

use std::{fmt, sync::Arc};

use datafusion::{
    common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion},
    error::Result,
    execution::{SendableRecordBatchStream, TaskContext},
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties as _, Partitioning,
        PhysicalExpr, PlanProperties, coalesce_partitions::CoalescePartitionsExec, limit::GlobalLimitExec,
        sorts::sort_preserving_merge::SortPreservingMergeExec, stream::RecordBatchStreamAdapter,
    },
};
use futures::{StreamExt as _, stream};

/// Returns a plan with one partition whose rows are in the order of the original partitions.
pub(crate) fn concatenate_partitions(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        if let Some(merge) = node.downcast_ref::<CoalescePartitionsExec>() {
            let ordered = OrderedPartitionsExec::wrap(Arc::clone(merge.input()));
            return Ok(Transformed::yes(match merge.fetch() {
                None => ordered,
                fetch => Arc::new(GlobalLimitExec::new(ordered, 0, fetch)),
            }));
        }
        // Rows with equal sort keys keep the order of their partitions.
        if let Some(merge) = node.downcast_ref::<SortPreservingMergeExec>() {
            let stable = SortPreservingMergeExec::new(merge.expr().clone(), Arc::clone(merge.input()))
                .with_fetch(merge.fetch())
                .with_round_robin_repartition(false);
            return Ok(Transformed::yes(Arc::new(stable) as _));
        }
        Ok(Transformed::no(node))
    })?;
    if plan.data.output_partitioning().partition_count() > 1 {
        return Ok(OrderedPartitionsExec::wrap(plan.data));
    }
    Ok(plan.data)
}

#[derive(Debug)]
struct OrderedPartitionsExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl OrderedPartitionsExec {
    fn wrap(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let mut equivalences = input.equivalence_properties().clone();
        equivalences.clear_orderings();
        equivalences.clear_per_partition_constants();
        let properties = PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(1),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Arc::new(Self {
            input,
            properties: Arc::new(properties),
        })
    }
}

impl DisplayAs for OrderedPartitionsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OrderedPartitionsExec")
    }
}

impl ExecutionPlan for OrderedPartitionsExec {
    fn name(&self) -> &'static str {
        "OrderedPartitionsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
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
        Ok(Self::wrap(input))
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let partitions = 0..self.input.output_partitioning().partition_count();
        let input = Arc::clone(&self.input);
        let streams = stream::iter(partitions).flat_map(move |partition| {
            match input.execute(partition, Arc::clone(&context)) {
                Ok(rows) => rows,
                Err(error) => {
                    let failed = stream::iter([Err(error)]);
                    Box::pin(RecordBatchStreamAdapter::new(input.schema(), failed))
                        as SendableRecordBatchStream
                }
            }
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.input.schema(),
            streams,
        )))
    }
}
