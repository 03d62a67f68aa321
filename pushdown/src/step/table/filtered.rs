//! Filters whose record batches end by bytes as well as by rows. DataFusion's puts small record batches together by rows alone,
//! and nothing but the rows themselves tells how large they are.

use std::{fmt, mem, sync::Arc};

use arrow_array::{RecordBatch, cast::AsArray as _};
use arrow_schema::SchemaRef;
use arrow_select::{concat::concat_batches, filter::filter_record_batch};
use datafusion::{
    common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion},
    error::Result,
    execution::{SendableRecordBatchStream, TaskContext},
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties,
        execution_plan::replace_children_if_necessary, filter::FilterExec, limit::GlobalLimitExec,
        stream::RecordBatchStreamAdapter,
    },
};
use futures::{Stream, StreamExt as _, stream};

use crate::table::batch_bytes;

/// The plan with filters that give so many rows, and so many bytes, at a time.
pub(super) fn filtered(
    plan: Arc<dyn ExecutionPlan>,
    rows: usize,
    bytes: u64,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        let Some(filter) = node.downcast_ref::<FilterExec>() else {
            return Ok(Transformed::no(node));
        };
        let fetch = filter.fetch();
        let filtered = Arc::new(Filtered {
            filter: node,
            rows,
            bytes,
        });
        Ok(Transformed::yes(match fetch {
            None => filtered,
            fetch => Arc::new(GlobalLimitExec::new(filtered, 0, fetch)),
        }))
    })?;
    Ok(plan.data)
}

/// A filter as DataFusion has planned it, and what its record batches are to have at most.
#[derive(Debug)]
struct Filtered {
    filter: Arc<dyn ExecutionPlan>,
    rows: usize,
    bytes: u64,
}

impl DisplayAs for Filtered {
    fn fmt_as(&self, form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt_as(form, f)
    }
}

impl ExecutionPlan for Filtered {
    fn name(&self) -> &'static str {
        "Filtered"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.filter.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.filter.children()
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.filter.apply_expressions(visit)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self {
            filter: replace_children_if_necessary(Arc::clone(&self.filter), children)?,
            ..*self
        }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.filter.schema();
        let Some(filter) = self.filter.downcast_ref::<FilterExec>() else {
            return self.filter.execute(partition, context);
        };
        let (predicate, projection) = (Arc::clone(filter.predicate()), filter.projection().clone());
        let input = filter.input().execute(partition, context)?;
        let kept = input.map(move |batch| {
            let batch = batch?;
            let kept = predicate.evaluate(&batch)?.into_array(batch.num_rows())?;
            let batch = match &projection {
                Some(columns) => batch.project(columns)?,
                None => batch,
            };
            Ok(filter_record_batch(&batch, kept.as_boolean())?)
        });
        let together = together(kept, SchemaRef::clone(&schema), (self.rows, self.bytes));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, together)))
    }
}

/// Record batches put together while they have fewer rows, and fewer bytes, than one is to have.
fn together(
    batches: impl Stream<Item = Result<RecordBatch>> + Send,
    schema: SchemaRef,
    (rows, bytes): (usize, u64),
) -> impl Stream<Item = Result<RecordBatch>> + Send {
    let ends = batches.map(Some).chain(stream::iter([None]));
    let mut held: Vec<RecordBatch> = Vec::new();
    let (mut held_rows, mut held_bytes) = (0, 0);
    ends.map(move |batch| {
        let batch = batch.transpose()?;
        let (more_rows, more_bytes) = batch
            .as_ref()
            .map_or((rows, 0), |batch| (batch.num_rows(), batch_bytes(batch)));
        let ready = if held_rows + more_rows > rows || held_bytes + more_bytes > bytes {
            (held_rows, held_bytes) = (0, 0);
            mem::take(&mut held)
        } else {
            Vec::new()
        };
        held_rows += more_rows;
        held_bytes += more_bytes;
        held.extend(batch.filter(|batch| batch.num_rows() > 0));
        Ok(match ready.as_slice() {
            [] => None,
            [alone] => Some(alone.clone()),
            several => Some(concat_batches(&schema, several)?),
        })
    })
    .filter_map(|batch| std::future::ready(batch.transpose()))
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, StringArray};

    use super::*;

    fn of(batches: &[(i64, usize)], rows: usize) -> Vec<usize> {
        let batch = |(count, length): &(i64, usize)| {
            let numbers = Int64Array::from_iter_values(0..*count);
            let texts = StringArray::from_iter_values((0..*count).map(|_| "x".repeat(*length)));
            RecordBatch::try_from_iter([("n", Arc::new(numbers) as _), ("text", Arc::new(texts) as _)])
                .unwrap()
        };
        let batches: Vec<_> = batches.iter().map(batch).collect();
        let schema = batches[0].schema();
        let together = together(stream::iter(batches.into_iter().map(Ok)), schema, (rows, 4_100));
        let together = together.map(|batch| batch.unwrap().num_rows()).collect();
        futures::executor::block_on(together)
    }

    #[test]
    fn batches_end_by_rows_and_by_bytes() {
        assert_eq!(
            of(&[(3, 1), (4, 1), (0, 1), (2, 1), (2, 1), (10, 1)], 10),
            [9, 2, 10]
        );
        assert_eq!(of(&[(5, 1), (5, 1)], 10), [10]);
        assert_eq!(of(&[(0, 1)], 10), [0; 0]);
        assert_eq!(
            of(&[(1, 1_000), (1, 1_000), (1, 1_000), (1, 1_500), (1, 1)], 10),
            [3, 2]
        );
        assert_eq!(
            of(&[(1, 9_000), (1, 9_000)], 10),
            [1, 1],
            "one that has more by itself"
        );
    }
}
