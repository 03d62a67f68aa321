//! Filters whose output batches are limited by bytes as well as by rows. DataFusion's filter combines small record batches by
//! their row count alone, and the size of the rows is only known once they are read.

use std::{fmt, mem, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, cast::AsArray as _};
use arrow_schema::{DataType, SchemaRef};
use arrow_select::{concat::concat_batches, filter::filter_record_batch};
use datafusion::{
    common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion},
    error::Result,
    execution::{SendableRecordBatchStream, TaskContext},
    physical_plan::{
        DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties,
        execution_plan::replace_children_if_necessary, filter::FilterExec, limit::LocalLimitExec,
        stream::RecordBatchStreamAdapter,
    },
};
use futures::{Stream, StreamExt as _, stream};

use pushdown_core::{limits::BATCH_BYTES, table::batch_bytes};

/// Replaces the filters of a plan by ones whose output batches have about `batch_rows` rows, and at most [`BATCH_BYTES`].
pub(crate) fn limit_filter_batches(
    plan: Arc<dyn ExecutionPlan>,
    batch_rows: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        let Some(filter) = node.downcast_ref::<FilterExec>() else {
            return Ok(Transformed::no(node));
        };
        let fetch = filter.fetch();
        // With a limit, the first rows are returned without waiting for more.
        let max_rows = if fetch.is_some() { 0 } else { batch_rows };
        let filtered = Arc::new(BatchedFilterExec {
            filter: node,
            max_rows,
        });
        Ok(Transformed::yes(match fetch {
            None => filtered,
            Some(fetch) => Arc::new(LocalLimitExec::new(filtered, fetch)),
        }))
    })?;
    Ok(plan.data)
}

/// Runs DataFusion's planned filter and combines its output batches.
#[derive(Debug)]
struct BatchedFilterExec {
    filter: Arc<dyn ExecutionPlan>,
    /// Rows of a combined batch; 0 to combine none.
    max_rows: usize,
}

impl DisplayAs for BatchedFilterExec {
    fn fmt_as(&self, form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt_as(form, f)
    }
}

impl ExecutionPlan for BatchedFilterExec {
    fn name(&self) -> &'static str {
        "BatchedFilterExec"
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
        let filtered = input.map(move |batch| {
            let batch = batch?;
            let is_kept = predicate.evaluate(&batch)?.into_array(batch.num_rows())?;
            let batch = match &projection {
                Some(columns) => batch.project(columns)?,
                None => batch,
            };
            compact(filter_record_batch(&batch, is_kept.as_boolean())?)
        });
        let combined = combine_batches(filtered, SchemaRef::clone(&schema), self.max_rows);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, combined)))
    }
}

/// Copies view columns: a view keeps the whole buffer alive that it shares with the rows filtered out.
fn compact(batch: RecordBatch) -> Result<RecordBatch> {
    let (schema, columns, rows) = batch.into_parts();
    let columns = columns.into_iter().map(|column| match column.data_type() {
        DataType::Utf8View => Arc::new(column.as_string_view().gc()) as ArrayRef,
        DataType::BinaryView => Arc::new(column.as_binary_view().gc()),
        _ => column,
    });
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(
        schema,
        columns.collect(),
        &options,
    )?)
}

/// Combines consecutive record batches up to `max_rows` rows and [`BATCH_BYTES`]; none if `max_rows` is 0.
fn combine_batches(
    batches: impl Stream<Item = Result<RecordBatch>> + Send,
    schema: SchemaRef,
    max_rows: usize,
) -> impl Stream<Item = Result<RecordBatch>> + Send {
    // `None` marks the end of the stream.
    let marked = batches.map(Some).chain(stream::iter([None]));
    let mut pending: Vec<RecordBatch> = Vec::new();
    let (mut pending_rows, mut pending_bytes) = (0, 0);
    marked
        .map(move |batch| {
            let batch = batch
                .transpose()?
                .filter(|batch| batch.num_rows() > 0 || max_rows > 0);
            if max_rows == 0 {
                return Ok(batch);
            }
            let (next_rows, next_bytes) = batch
                .as_ref()
                .map_or((max_rows, 0), |batch| (batch.num_rows(), batch_bytes(batch)));
            let ready = if pending_rows + next_rows > max_rows || pending_bytes + next_bytes > BATCH_BYTES {
                (pending_rows, pending_bytes) = (0, 0);
                mem::take(&mut pending)
            } else {
                Vec::new()
            };
            pending_rows += next_rows;
            pending_bytes += next_bytes;
            pending.extend(batch.filter(|batch| batch.num_rows() > 0));
            Ok(match ready.as_slice() {
                [] => None,
                [single] => Some(single.clone()),
                several => Some(concat_batches(&schema, several)?),
            })
        })
        .filter_map(|batch| std::future::ready(batch.transpose()))
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, StringArray, StringViewArray};

    use super::*;

    /// Row counts of the combined batches; an input batch is its rows and the bytes of each text.
    fn combined_rows(batches: &[(i64, usize)], max_rows: usize) -> Vec<usize> {
        let batch = |(count, length): &(i64, usize)| {
            let numbers = Int64Array::from_iter_values(0..*count);
            let texts = StringArray::from_iter_values((0..*count).map(|_| "x".repeat(*length)));
            RecordBatch::try_from_iter([("n", Arc::new(numbers) as _), ("text", Arc::new(texts) as _)])
                .unwrap()
        };
        let batches: Vec<_> = batches.iter().map(batch).collect();
        let schema = batches[0].schema();
        let combined = combine_batches(stream::iter(batches.into_iter().map(Ok)), schema, max_rows);
        futures::executor::block_on(combined.map(|batch| batch.unwrap().num_rows()).collect())
    }

    /// One row of each batch would keep all buffers of the batch.
    #[test]
    fn filtered_views_do_not_keep_other_rows() {
        let texts = StringViewArray::from_iter_values((10..60).map(|n| n.to_string().repeat(500)));
        let batch = RecordBatch::try_from_iter([("text", Arc::new(texts) as ArrayRef)]).unwrap();
        let batch = compact(batch.slice(7, 2)).unwrap();
        let text = batch.column(0).as_string_view();
        let kept: usize = text.data_buffers().iter().map(arrow_buffer::Buffer::len).sum();
        assert_eq!((text.value(1).len(), kept), (1000, 2000));
        assert!(batch_bytes(&batch) >= 2000);
    }

    #[test]
    fn batches_are_limited_by_rows_and_by_bytes() {
        assert_eq!(
            combined_rows(&[(3, 1), (4, 1), (0, 1), (2, 1), (2, 1), (10, 1)], 10),
            [9, 2, 10]
        );
        assert_eq!(combined_rows(&[(5, 1), (5, 1)], 10), [10]);
        assert_eq!(combined_rows(&[(0, 1)], 10), [0; 0]);
        let large = usize::try_from(BATCH_BYTES / 4).unwrap();
        let large = [(1, large), (1, large), (1, large), (1, large), (1, 1)];
        assert_eq!(combined_rows(&large, 10), [3, 2]);
        assert_eq!(
            combined_rows(&[(2, 1), (0, 1), (3, 1)], 0),
            [2, 3],
            "not combined"
        );
    }
}
