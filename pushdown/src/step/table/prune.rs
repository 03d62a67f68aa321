//! Which row groups and pages of a Parquet file a query has to read, by what its footer says of them.

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

use super::{
    bloom, fault,
    parquet::{ParquetFile, ParquetScan, coalesce, row_groups_ahead},
    row_range::RowRange,
    selectivity,
};
use crate::Result;

/// A page index of no more than this is always worth reading; a larger one where it is a small part of what it may spare.
const SMALL_INDEX: u64 = 256 * 1024;

/// What is left of a file.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    /// What is read.
    pub(super) part: ParquetScan,
    /// Rows that are read of each row group that is left.
    pub(super) rows: Vec<(usize, u64)>,
    /// Bytes that are read, the footer apart.
    pub(super) bytes: u64,
    /// Rows that the condition likely holds for, at most all of them.
    pub(super) likely: u64,
}

/// Finds what has to be read of `columns`, which ascend, to find the rows that `predicate` may hold for, of those
/// `between` two places.
pub(super) async fn prune(
    file: &ParquetFile,
    columns: Vec<usize>,
    predicate: Option<Arc<dyn PhysicalExpr>>,
    limit: Option<usize>,
    between: Option<RowRange>,
) -> Result<(ParquetFile, Kept)> {
    let mut file = file.clone();
    let groups = file.metadata().metadata().row_groups();
    let mut access = match between {
        None => ParquetAccessPlan::new_all(groups.len()),
        Some(between) => between.access_plan(groups),
    };
    let safe = predicate
        .as_ref()
        .and_then(|predicate| trusted(predicate, file.schema()));
    if let Some(predicate) = safe {
        if let Some(predicate) = pruning(&file, &predicate) {
            access = by_statistics(&file, &predicate, access);
            let bytes = bytes(&file, &columns, &access);
            access = bloom::prune(&file, &predicate, access, |length| spares(length, bytes)).await?;
        }
        let bytes = bytes(&file, &columns, &access);
        if worthwhile(&file, bytes) {
            file = file.with_page_index().await?;
            access = by_pages(&file, &predicate, access);
        }
    }
    let rows = rows(&file, &access);
    let of_each = bytes_of_each(&file, &columns, &access);
    let row_groups: Vec<_> = rows.iter().map(|(row_group, _)| *row_group).collect();
    let likely = predicate.map_or(u64::MAX, |predicate| {
        selectivity::expected_rows(&file, &row_groups, &predicate)
    });
    let selection = access
        .into_overall_row_selection(file.metadata().metadata().row_groups())
        .map_err(fault::query)?;
    let part = ParquetScan {
        row_groups_ahead: row_groups_ahead(&of_each, limit),
        columns,
        row_groups,
        selection,
        limit,
    };
    let kept = Kept {
        part,
        rows,
        bytes: sum(&of_each),
        likely,
    };
    Ok((file, kept))
}

pub(super) fn metrics() -> ParquetFileMetrics {
    ParquetFileMetrics::new(0, super::engine::OBJECT_TABLE, &ExecutionPlanMetricsSet::new())
}

/// The condition as one on statistics.
fn pruning(file: &ParquetFile, predicate: &Arc<dyn PhysicalExpr>) -> Option<PruningPredicate> {
    PruningPredicateBuilder::new()
        .with_file_schema(SchemaRef::clone(file.schema()))
        .try_build(Arc::clone(predicate))
        .ok()
}

fn by_statistics(
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
        &metrics(),
    );
    filter.build()
}

fn by_pages(
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
        &metrics(),
    )
}

/// Whether to read the page index, where `bytes` would be read without.
fn worthwhile(file: &ParquetFile, bytes: u64) -> bool {
    let groups = file.metadata().metadata().row_groups().iter();
    let chunks = groups.flat_map(RowGroupMetaData::columns);
    let lengths = chunks.flat_map(|chunk| [chunk.column_index_length(), chunk.offset_index_length()]);
    let index = lengths
        .flatten()
        .map(|length| u64::try_from(length).unwrap_or_default())
        .sum::<u64>();
    index > 0 && spares(index, bytes)
}

/// Whether so much of an index is little beside the bytes that it may spare.
const fn spares(index: u64, bytes: u64) -> bool {
    index < bytes && (index <= SMALL_INDEX || index <= bytes / 16)
}

/// The parts of a condition that statistics can be trusted with.
///
/// A column's minimum and maximum leave NaN out, which is greater than any number: that no number in a row group is large
/// enough does not mean that no row is.
fn trusted(predicate: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Option<Arc<dyn PhysicalExpr>> {
    let parts = split_conjunction(predicate).into_iter();
    let trusted: Vec<_> = parts
        .filter(|part| is_of(part, schema))
        .filter(|part| !mentions_floats(part, schema) || is_bounded_above(part))
        .cloned()
        .collect();
    (!trusted.is_empty()).then(|| conjunction(trusted))
}

/// Whether a condition is of stored columns alone.
fn is_of(part: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> bool {
    let mut stored = true;
    let walked = part.apply(|expr| {
        let column = expr.downcast_ref::<Column>();
        stored &= column.is_none_or(|column| column.index() < schema.fields().len());
        Ok(TreeNodeRecursion::Continue)
    });
    stored && walked.is_ok()
}

fn mentions_floats(part: &Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> bool {
    let mut found = false;
    let walked = part.apply(|expr| {
        if let Some(column) = expr.downcast_ref::<Column>() {
            let field = schema.fields().get(column.index());
            found |= field.is_none_or(|field| has_floats(field.data_type()));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    found || walked.is_err()
}

fn has_floats(data_type: &DataType) -> bool {
    data_type.is_floating()
        || data_type.is_nested()
        || matches!(data_type, DataType::Dictionary(_, value) if has_floats(value))
}

/// Whether a condition is `column < number`, `column <= number` or `column = number`: NaN fulfils none of them.
///
/// Zero is left out: it equals -0.0, which the order of statistics has before it, and either may stand for both there.
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

/// Rows that are left of each row group of which any are.
fn rows(file: &ParquetFile, access: &ParquetAccessPlan) -> Vec<(usize, u64)> {
    let groups = file.metadata().metadata().row_groups().iter().enumerate();
    groups
        .zip(access.inner())
        .filter_map(|((index, group), access)| match access {
            RowGroupAccess::Skip => None,
            RowGroupAccess::Scan => Some((index, u64::try_from(group.num_rows()).unwrap_or_default())),
            RowGroupAccess::Selection(rows) => Some((index, rows.row_count() as u64)),
        })
        .collect()
}

/// Bytes that are read for some columns.
fn bytes(file: &ParquetFile, columns: &[usize], access: &ParquetAccessPlan) -> u64 {
    sum(&bytes_of_each(file, columns, access))
}

fn sum(bytes: &[u64]) -> u64 {
    bytes.iter().copied().fold(0, u64::saturating_add)
}

/// The same of each row group that is left.
fn bytes_of_each(file: &ParquetFile, columns: &[usize], access: &ParquetAccessPlan) -> Vec<u64> {
    let metadata = file.metadata().metadata();
    let mask = file.projection(columns);
    let mut of_each = Vec::new();
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
                (RowGroupAccess::Selection(rows), Some(pages)) if !pages.is_empty() => {
                    let first = u64::try_from(pages[0].offset).unwrap_or(start);
                    ranges.push(start..first.max(start));
                    ranges.extend(rows.scan_ranges(pages));
                }
                _ => ranges.push(start..start.saturating_add(length)),
            }
        }
        of_each.push(
            coalesce(&ranges)
                .iter()
                .map(|range| range.end - range.start)
                .sum(),
        );
    }
    of_each
}
