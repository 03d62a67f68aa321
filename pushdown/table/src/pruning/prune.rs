//! Prunes row groups and pages of a Parquet file that a query need not read, by statistics and Bloom filters.

use std::{ops::Range, sync::Arc};

use arrow_schema::{DataType, SchemaRef};
use datafusion::{
    common::{
        ScalarValue,
        tree_node::{TreeNode as _, TreeNodeRecursion},
    },
    datasource::physical_plan::{
        ParquetFileMetrics,
        parquet::{PagePruningAccessPlanFilter, ParquetAccessPlan, RowGroupAccess, RowGroupAccessPlanFilter},
    },
    logical_expr::Operator,
    physical_expr::{conjunction, split_conjunction},
    physical_optimizer::pruning::{PruningPredicate, PruningPredicateBuilder},
    physical_plan::{
        PhysicalExpr,
        expressions::{BinaryExpr, Column, Literal},
        metrics::ExecutionPlanMetricsSet,
    },
};

use ::parquet::file::{metadata::RowGroupMetaData, page_index::offset_index::OffsetIndexMetaData};

use crate::{
    fault,
    formats::parquet::{ParquetFile, ParquetScan, coalesce, row_groups_ahead},
    pruning::{bloom, selectivity},
    row_range::RowRange,
};
use pushdown_core::Result;

/// A page index up to this size is always worth reading; a larger one only if it is small relative to the data.
const SMALL_INDEX_BYTES: u64 = 256 * 1024;

/// The part of a file that a query reads.
#[derive(Debug, Clone)]
pub(crate) struct PrunedScan {
    pub(crate) scan: ParquetScan,
    /// The row groups to read.
    pub(crate) row_groups: Vec<RowGroupRows>,
    /// Bytes to read, without the footer.
    pub(crate) scan_bytes: u64,
    /// Estimated number of rows that fulfil the condition; `u64::MAX` without a condition.
    pub(crate) expected_rows: u64,
}

/// The rows to read of a row group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowGroupRows {
    /// Index of the row group.
    pub(crate) index: usize,
    /// Number of rows to read.
    pub(crate) rows: u64,
}

/// Finds the part of `columns`, in ascending order, that can contain rows within `row_range` that fulfil `predicate`.
///
/// Returns the file with its page index if that was read.
pub(crate) async fn prune(
    file: &ParquetFile,
    columns: Vec<usize>,
    predicate: Option<Arc<dyn PhysicalExpr>>,
    limit: Option<usize>,
    row_range: Option<RowRange>,
) -> Result<(ParquetFile, PrunedScan)> {
    let mut file = file.clone();
    let groups = file.metadata().metadata().row_groups();
    let mut access = match row_range {
        None => ParquetAccessPlan::new_all(groups.len()),
        Some(row_range) => row_range.access_plan(groups),
    };
    let prunable = predicate
        .as_ref()
        .and_then(|predicate| prunable_conditions(predicate, file.schema()));
    if let Some(predicate) = prunable {
        if let Some(predicate) = pruning_predicate(&file, &predicate) {
            access = prune_by_statistics(&file, &predicate, access);
            let scan_bytes = sum(&row_group_bytes(&file, &columns, &access));
            let is_worthwhile = |filter_bytes| is_small_index(filter_bytes, scan_bytes);
            access = bloom::prune(&file, &predicate, access, is_worthwhile).await?;
        }
        let scan_bytes = sum(&row_group_bytes(&file, &columns, &access));
        if is_page_index_worthwhile(&file, scan_bytes) {
            file = file.with_page_index().await?;
            access = prune_by_pages(&file, &predicate, access);
        }
    }
    let remaining = remaining_row_groups(&file, &access);
    let bytes = row_group_bytes(&file, &columns, &access);
    let row_groups: Vec<_> = remaining.iter().map(|group| group.index).collect();
    let expected_rows = predicate.map_or(u64::MAX, |predicate| {
        selectivity::expected_rows(&file, &row_groups, &predicate)
    });
    let selection = access
        .into_overall_row_selection(file.metadata().metadata().row_groups())
        .map_err(fault::query)?;
    let scan = ParquetScan {
        row_groups_ahead: row_groups_ahead(&bytes, limit),
        columns,
        row_groups,
        selection,
        limit,
    };
    let pruned = PrunedScan {
        scan,
        row_groups: remaining,
        scan_bytes: sum(&bytes),
        expected_rows,
    };
    Ok((file, pruned))
}

/// Metrics that nobody reads; the pruning functions require them.
pub(crate) fn unused_metrics() -> ParquetFileMetrics {
    ParquetFileMetrics::new(0, crate::OBJECT_TABLE, &ExecutionPlanMetricsSet::new())
}

/// The condition as a predicate on statistics.
fn pruning_predicate(file: &ParquetFile, predicate: &Arc<dyn PhysicalExpr>) -> Option<PruningPredicate> {
    PruningPredicateBuilder::new()
        .with_file_schema(SchemaRef::clone(file.schema()))
        .try_build(Arc::clone(predicate))
        .ok()
}

fn prune_by_statistics(
    file: &ParquetFile,
    predicate: &PruningPredicate,
    access: ParquetAccessPlan,
) -> ParquetAccessPlan {
    let metadata = file.metadata();
    let mut filter = RowGroupAccessPlanFilter::new(access);
    filter.prune_by_statistics(
        metadata.schema(),
        metadata.parquet_schema(),
        metadata.metadata().row_groups(),
        predicate,
        &unused_metrics(),
    );
    filter.build()
}

fn prune_by_pages(
    file: &ParquetFile,
    predicate: &Arc<dyn PhysicalExpr>,
    access: ParquetAccessPlan,
) -> ParquetAccessPlan {
    let metadata = file.metadata();
    let filter = PagePruningAccessPlanFilter::new(predicate, SchemaRef::clone(metadata.schema()));
    if filter.filter_number() == 0 {
        return access;
    }
    filter.prune_plan_with_page_index(
        access,
        metadata.schema(),
        metadata.parquet_schema(),
        metadata.metadata(),
        &unused_metrics(),
    )
}

/// Whether reading the page index is worthwhile if the scan reads `scan_bytes` without it.
fn is_page_index_worthwhile(file: &ParquetFile, scan_bytes: u64) -> bool {
    let groups = file.metadata().metadata().row_groups().iter();
    let chunks = groups.flat_map(RowGroupMetaData::columns);
    let lengths = chunks.flat_map(|chunk| [chunk.column_index_length(), chunk.offset_index_length()]);
    let index_bytes = lengths
        .flatten()
        .map(|length| u64::try_from(length).unwrap_or_default())
        .sum::<u64>();
    index_bytes > 0 && is_small_index(index_bytes, scan_bytes)
}

/// Whether an index or filter is small relative to the data that it can save reading.
const fn is_small_index(index_bytes: u64, scan_bytes: u64) -> bool {
    index_bytes < scan_bytes && (index_bytes <= SMALL_INDEX_BYTES || index_bytes <= scan_bytes / 16)
}

/// The conjuncts of a condition that statistics can decide.
///
/// A column's minimum and maximum exclude NaN, and NaN is greater than any number: even if no number in a row group is large
/// enough, a NaN can be.
fn prunable_conditions(
    predicate: &Arc<dyn PhysicalExpr>,
    schema: &SchemaRef,
) -> Option<Arc<dyn PhysicalExpr>> {
    let parts = split_conjunction(predicate).into_iter();
    let prunable: Vec<_> = parts
        .filter(|part| has_only_stored_columns(part, schema))
        .filter(|part| !mentions_floats(part, schema) || is_bounded_above(part))
        .cloned()
        .collect();
    (!prunable.is_empty()).then(|| conjunction(prunable))
}

/// Whether a condition refers to stored columns only.
fn has_only_stored_columns(part: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> bool {
    let mut only_stored = true;
    let walked = part.apply(|expr| {
        let column = expr.downcast_ref::<Column>();
        only_stored &= column.is_none_or(|column| column.index() < schema.fields().len());
        Ok(TreeNodeRecursion::Continue)
    });
    only_stored && walked.is_ok()
}

fn mentions_floats(part: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> bool {
    let mut mentions = false;
    let walked = part.apply(|expr| {
        if let Some(column) = expr.downcast_ref::<Column>() {
            let field = schema.fields().get(column.index());
            mentions |= field.is_none_or(|field| has_floats(field.data_type()));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    mentions || walked.is_err()
}

fn has_floats(data_type: &DataType) -> bool {
    data_type.is_floating()
        || data_type.is_nested()
        || matches!(data_type, DataType::Dictionary(_, value) if has_floats(value))
}

/// Whether a condition is `column < number`, `column <= number` or `column = number`, which NaN never fulfils.
///
/// Excludes zero: it equals -0.0, but statistics order -0.0 first, and either of them can be the recorded bound.
fn is_bounded_above(part: &Arc<dyn PhysicalExpr>) -> bool {
    let Some(comparison) = part.downcast_ref::<BinaryExpr>() else {
        return false;
    };
    let is_column = |expr: &Arc<dyn PhysicalExpr>| expr.downcast_ref::<Column>().is_some();
    let is_number = |expr: &Arc<dyn PhysicalExpr>| {
        expr.downcast_ref::<Literal>().is_some_and(|literal| {
            let number = literal.value().cast_to(&DataType::Float64);
            matches!(number, Ok(ScalarValue::Float64(Some(number))) if !number.is_nan() && number != 0.0)
        })
    };
    let (left, right) = (comparison.left(), comparison.right());
    match comparison.op() {
        Operator::Lt | Operator::LtEq | Operator::Eq if is_column(left) => is_number(right),
        Operator::Gt | Operator::GtEq | Operator::Eq if is_column(right) => is_number(left),
        _ => false,
    }
}

/// The row groups that remain, with the number of rows to read.
fn remaining_row_groups(file: &ParquetFile, access: &ParquetAccessPlan) -> Vec<RowGroupRows> {
    let groups = file.metadata().metadata().row_groups().iter().enumerate();
    groups
        .zip(access.inner())
        .filter_map(|((index, group), access)| {
            let rows = match access {
                RowGroupAccess::Skip => return None,
                RowGroupAccess::Scan => u64::try_from(group.num_rows()).unwrap_or_default(),
                RowGroupAccess::Selection(selection) => selection.row_count() as u64,
            };
            Some(RowGroupRows { index, rows })
        })
        .collect()
}

fn sum(bytes: &[u64]) -> u64 {
    bytes.iter().copied().fold(0, u64::saturating_add)
}

/// Bytes to read of some columns, for each row group that remains.
fn row_group_bytes(file: &ParquetFile, columns: &[usize], access: &ParquetAccessPlan) -> Vec<u64> {
    let metadata = file.metadata().metadata();
    let mask = file.projection(columns);
    let mut all_bytes = Vec::new();
    for (index, (group, access)) in metadata.row_groups().iter().zip(access.inner()).enumerate() {
        if matches!(access, RowGroupAccess::Skip) {
            continue;
        }
        let leaves = group.columns().iter().enumerate();
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for (leaf, chunk) in leaves.filter(|(leaf, _)| mask.leaf_included(*leaf)) {
            let (start, length) = chunk.byte_range();
            let pages = metadata
                .offset_index()
                .and_then(|offsets| offsets.get(index)?.get(leaf))
                .map(OffsetIndexMetaData::page_locations);
            match (access, pages) {
                (RowGroupAccess::Selection(selection), Some(pages)) if !pages.is_empty() => {
                    let first = u64::try_from(pages[0].offset).unwrap_or(start);
                    ranges.push(start..first.max(start));
                    ranges.extend(selection.scan_ranges(pages));
                }
                _ => ranges.push(start..start.saturating_add(length)),
            }
        }
        all_bytes.push(
            coalesce(&ranges)
                .iter()
                .map(|range| range.end - range.start)
                .sum(),
        );
    }
    all_bytes
}
