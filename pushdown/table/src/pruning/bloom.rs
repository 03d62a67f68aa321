//! Prunes row groups of a Parquet file by their Bloom filters.

use std::{collections::HashMap, ops::Range};

use arrow_schema::DataType;
use datafusion::{
    datasource::physical_plan::parquet::{
        BloomFilterStatistics, ParquetAccessPlan, RowGroupAccessPlanFilter,
    },
    physical_optimizer::pruning::PruningPredicate,
};
use parquet::{arrow::parquet_column, bloom_filter::Sbbf};

use crate::{fault, formats::parquet::ParquetFile, pruning::prune::unused_metrics};
use pushdown_core::Result;

/// The location of a Bloom filter in the file.
struct FilterLocation {
    row_group: usize,
    column: String,
    leaf: usize,
    range: Range<u64>,
}

/// Skips the row groups whose filters exclude a value that the condition requires. Reads the filters only if `is_worthwhile`
/// holds for their total size in bytes.
pub(crate) async fn prune(
    file: &ParquetFile,
    predicate: &PruningPredicate,
    access: ParquetAccessPlan,
    is_worthwhile: impl Fn(u64) -> bool,
) -> Result<ParquetAccessPlan> {
    let locations = filter_locations(file, predicate, &access);
    let length = |location: &FilterLocation| location.range.end - location.range.start;
    let total_bytes = locations.iter().map(length).fold(0, u64::saturating_add);
    if locations.is_empty() || !is_worthwhile(total_bytes) {
        return Ok(access);
    }
    let encoded = file
        .read_ranges(locations.iter().map(|location| location.range.clone()).collect())
        .await?;
    let metadata = file.metadata();
    let mut filters = vec![BloomFilterStatistics::new(); metadata.metadata().num_row_groups()];
    for (location, bytes) in locations.into_iter().zip(encoded) {
        let filter = Sbbf::from_bytes(&bytes).map_err(fault::parquet)?;
        let leaf = metadata.parquet_schema().column(location.leaf);
        filters[location.row_group].insert(location.column, filter, leaf.physical_type(), leaf.type_length());
    }
    let mut pruned = RowGroupAccessPlanFilter::new(access);
    pruned.prune_by_bloom_filters(predicate, &unused_metrics(), &filters);
    Ok(pruned.build())
}

/// The filters of the columns that a condition compares with literals, in the remaining row groups.
///
/// Excludes floating-point columns: -0.0 and 0.0 are equal, but a filter hashes their bytes, and these differ.
fn filter_locations(
    file: &ParquetFile,
    predicate: &PruningPredicate,
    access: &ParquetAccessPlan,
) -> Vec<FilterLocation> {
    let metadata = file.metadata();
    let leaves: HashMap<_, _> = predicate
        .literal_columns()
        .into_iter()
        .filter_map(|name| {
            let (leaf, field) = parquet_column(metadata.parquet_schema(), metadata.schema(), &name)?;
            (!is_floating(field.data_type())).then_some((name, leaf))
        })
        .collect();
    let mut locations = Vec::new();
    for (index, row_group) in metadata.metadata().row_groups().iter().enumerate() {
        if !access.should_scan(index) {
            continue;
        }
        for (column, leaf) in &leaves {
            let chunk = row_group.column(*leaf);
            let start = chunk
                .bloom_filter_offset()
                .and_then(|start| u64::try_from(start).ok());
            let length = chunk
                .bloom_filter_length()
                .and_then(|length| u64::try_from(length).ok());
            // Without a length, reading the filter would take an additional request.
            if let (Some(start), Some(length)) = (start, length)
                && let Some(end) = start.checked_add(length)
            {
                locations.push(FilterLocation {
                    row_group: index,
                    column: column.clone(),
                    leaf: *leaf,
                    range: start..end,
                });
            }
        }
    }
    locations
}

fn is_floating(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => is_floating(value),
        other => other.is_floating(),
    }
}
