//! Filters whose record batches end by bytes as well as by rows. DataFusion's puts small record batches together by rows alone,
//! and nothing but the rows themselves tells how large they are.

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

use crate::{limits::BATCH_BYTES, table::batch_bytes};

/// The plan with filters that give so many rows at a time, and no more bytes than a record batch is to have.
pub(super) fn filtered(plan: Arc<dyn ExecutionPlan>, rows: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| {
        let Some(filter) = node.downcast_ref::<FilterExec>() else {
            return Ok(Transformed::no(node));
        };
        let fetch = filter.fetch();
        // Where few are wanted they are not to wait for more.
        let rows = if fetch.is_some() { 0 } else { rows };
        let filtered = Arc::new(Filtered { filter: node, rows });
        Ok(Transformed::yes(match fetch {
            None => filtered,
            Some(fetch) => Arc::new(LocalLimitExec::new(filtered, fetch)),
        }))
    })?;
    Ok(plan.data)
}

/// A filter as DataFusion has planned it, and the most rows of record batches that are put together; 0 for none.
#[derive(Debug)]
struct Filtered {
    filter: Arc<dyn ExecutionPlan>,
    rows: usize,
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
            compact(filter_record_batch(&batch, kept.as_boolean())?)
        });
        let together = together(kept, SchemaRef::clone(&schema), self.rows);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, together)))
    }
}

/// The rows without what other rows left in buffers that they share: views of text and bytes keep all of it.
fn compact(batch: RecordBatch) -> Result<RecordBatch> {
    let (schema, columns, rows) = batch.into_parts();
    let columns = columns.into_iter().map(|column| match column.data_type() {
        DataType::Utf8View => Arc::new(column.as_string_view().gc()) as ArrayRef,
        DataType::BinaryView => Arc::new(column.as_binary_view().gc()),
        _ => column,
    });
    let rows = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(
        schema,
        columns.collect(),
        &rows,
    )?)
}

/// Record batches put together while they have fewer rows, and fewer bytes, than one is to have.
fn together(
    batches: impl Stream<Item = Result<RecordBatch>> + Send,
    schema: SchemaRef,
    rows: usize,
) -> impl Stream<Item = Result<RecordBatch>> + Send {
    let ends = batches.map(Some).chain(stream::iter([None]));
    let mut held: Vec<RecordBatch> = Vec::new();
    let (mut held_rows, mut held_bytes) = (0, 0);
    ends.map(move |batch| {
        let batch = batch
            .transpose()?
            .filter(|batch| batch.num_rows() > 0 || rows > 0);
        if rows == 0 {
            return Ok(batch);
        }
        let (more_rows, more_bytes) = batch
            .as_ref()
            .map_or((rows, 0), |batch| (batch.num_rows(), batch_bytes(batch)));
        let ready = if held_rows + more_rows > rows || held_bytes + more_bytes > BATCH_BYTES {
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
    use arrow_array::{Int64Array, StringArray, StringViewArray};

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
        let together = together(stream::iter(batches.into_iter().map(Ok)), schema, rows);
        let together = together.map(|batch| batch.unwrap().num_rows()).collect();
        futures::executor::block_on(together)
    }

    /// A row of each batch would keep all that was read of it.
    #[test]
    fn views_keep_nothing_of_other_rows() {
        let texts = StringViewArray::from_iter_values((10..60).map(|n| n.to_string().repeat(500)));
        let batch = RecordBatch::try_from_iter([("text", Arc::new(texts) as ArrayRef)]).unwrap();
        let batch = compact(batch.slice(7, 2)).unwrap();
        let text = batch.column(0).as_string_view();
        let kept: usize = text.data_buffers().iter().map(arrow_buffer::Buffer::len).sum();
        assert_eq!((text.value(1).len(), kept), (1000, 2000));
        assert!(batch_bytes(&batch) >= 2000);
    }

    #[test]
    fn batches_end_by_rows_and_by_bytes() {
        assert_eq!(
            of(&[(3, 1), (4, 1), (0, 1), (2, 1), (2, 1), (10, 1)], 10),
            [9, 2, 10]
        );
        assert_eq!(of(&[(5, 1), (5, 1)], 10), [10]);
        assert_eq!(of(&[(0, 1)], 10), [0; 0]);
        let large = usize::try_from(BATCH_BYTES / 4).unwrap();
        let large = [(1, large), (1, large), (1, large), (1, large), (1, 1)];
        assert_eq!(of(&large, 10), [3, 2]);
        assert_eq!(of(&[(2, 1), (0, 1), (3, 1)], 0), [2, 3], "as they come");
    }
}
