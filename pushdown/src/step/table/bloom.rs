//! Bloom filters of a Parquet file: which row groups surely lack a value that a condition asks for.

use std::{collections::HashMap, ops::Range};

use arrow_schema::DataType;
use datafusion::{
    datasource::physical_plan::parquet::{
        BloomFilterStatistics, ParquetAccessPlan, RowGroupAccessPlanFilter,
    },
    physical_optimizer::pruning::PruningPredicate,
};
use parquet::{arrow::parquet_column, bloom_filter::Sbbf};

use super::{fault, parquet::ParquetFile, prune::metrics};
use crate::Result;

/// A filter in the file.
struct Place {
    group: usize,
    column: String,
    leaf: usize,
    range: Range<u64>,
}

/// Leaves out the row groups whose filters say so, where reading filters is no more than a small part of reading `bytes`.
pub(super) async fn prune(
    file: &ParquetFile,
    predicate: &PruningPredicate,
    access: ParquetAccessPlan,
    worthwhile: impl Fn(u64) -> bool,
) -> Result<ParquetAccessPlan> {
    let places = places(file, predicate, &access);
    let length = |place: &Place| place.range.end - place.range.start;
    if places.is_empty() || !worthwhile(places.iter().map(length).fold(0, u64::saturating_add)) {
        return Ok(access);
    }
    let parts = file
        .read_ranges(places.iter().map(|place| place.range.clone()).collect())
        .await?;
    let metadata = file.metadata();
    let mut filters = vec![BloomFilterStatistics::new(); metadata.metadata().num_row_groups()];
    for (place, part) in places.into_iter().zip(parts) {
        let filter = Sbbf::from_bytes(&part).map_err(fault::parquet)?;
        let leaf = metadata.parquet_schema().column(place.leaf);
        filters[place.group].insert(place.column, filter, leaf.physical_type(), leaf.type_length());
    }
    let mut pruned = RowGroupAccessPlanFilter::new(access);
    pruned.prune_by_bloom_filters(predicate, &metrics(), &filters);
    Ok(pruned.build())
}

/// The filters of the columns that a condition compares with values, in the row groups that are left.
///
/// Not those of floating-point columns: a filter is of the bytes of values, and -0.0 has others than 0.0, which it equals.
fn places(file: &ParquetFile, predicate: &PruningPredicate, access: &ParquetAccessPlan) -> Vec<Place> {
    let metadata = file.metadata();
    let leaves: HashMap<_, _> = predicate
        .literal_columns()
        .into_iter()
        .filter_map(|name| {
            let (leaf, field) = parquet_column(metadata.parquet_schema(), metadata.schema(), &name)?;
            (!is_of_floats(field.data_type())).then_some((name, leaf))
        })
        .collect();
    let mut places = Vec::new();
    for (group, row_group) in metadata.metadata().row_groups().iter().enumerate() {
        if !access.should_scan(group) {
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
            // Without its length it would take a request more.
            if let (Some(start), Some(length)) = (start, length)
                && let Some(end) = start.checked_add(length)
            {
                places.push(Place {
                    group,
                    column: column.clone(),
                    leaf: *leaf,
                    range: start..end,
                });
            }
        }
    }
    places
}

fn is_of_floats(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => is_of_floats(value),
        other => other.is_floating(),
    }
}
