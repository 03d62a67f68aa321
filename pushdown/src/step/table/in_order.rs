//! Several partitions as one, one after the other.
//!
//! A union has a partition for each of its parts, and DataFusion takes rows from whichever is ready: what comes first would
//! depend on threads.

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

/// The plan with rows in the order of its partitions, and one partition in the end.
pub(super) fn in_order(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        if let Some(merge) = node.downcast_ref::<CoalescePartitionsExec>() {
            let ordered = InOrder::over(Arc::clone(merge.input()));
            return Ok(Transformed::yes(match merge.fetch() {
                None => ordered,
                fetch => Arc::new(GlobalLimitExec::new(ordered, 0, fetch)),
            }));
        }
        // Of rows that sort alike, those of earlier partitions come first.
        if let Some(merge) = node.downcast_ref::<SortPreservingMergeExec>() {
            let stable = SortPreservingMergeExec::new(merge.expr().clone(), Arc::clone(merge.input()))
                .with_fetch(merge.fetch())
                .with_round_robin_repartition(false);
            return Ok(Transformed::yes(Arc::new(stable) as _));
        }
        Ok(Transformed::no(node))
    })?;
    if plan.data.output_partitioning().partition_count() > 1 {
        return Ok(InOrder::over(plan.data));
    }
    Ok(plan.data)
}

#[derive(Debug)]
struct InOrder {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl InOrder {
    fn over(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
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

impl DisplayAs for InOrder {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InOrder")
    }
}

impl ExecutionPlan for InOrder {
    fn name(&self) -> &'static str {
        "InOrder"
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
        Ok(Self::over(input))
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
