//! Record batches of few rows where values are large.

use std::sync::Arc;

use datafusion::{
    common::tree_node::{Transformed, TreeNode as _},
    error::Result,
    physical_plan::{ExecutionPlan, filter::FilterExec},
};

use super::{format::Stored, object::Object};
use crate::limits::BATCH_ROWS;

/// Rows of a record batch, as they are read of `object`: fewer where values are large.
pub(super) fn batch_rows(object: &Object) -> usize {
    let Stored::Parquet(file) = object.stored() else {
        return BATCH_ROWS;
    };
    let scans = object.scans();
    let rows = scans.iter().map(|scan| file.batch_rows(&scan.part.columns));
    rows.min().unwrap_or(BATCH_ROWS)
}

/// The plan with filters that give so many rows at a time: they put small record batches together, up to the number that was
/// set before anything was known of the object.
pub(super) fn sized(plan: Arc<dyn ExecutionPlan>, rows: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let plan = plan.transform_up(|node| match node.downcast_ref::<FilterExec>() {
        Some(filter) => Ok(Transformed::yes(Arc::new(filter.with_batch_size(rows)?) as _)),
        None => Ok(Transformed::no(node)),
    })?;
    Ok(plan.data)
}
