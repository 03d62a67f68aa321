//! Removes statistics that cannot be trusted.

use half::f16;
use parquet::{
    basic::{ConvertedType, LogicalType, SortOrder},
    errors::Result,
    file::{
        metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData},
        page_index::column_index::ColumnIndexMetaData,
        statistics::{Statistics, ValueStatistics},
    },
    schema::types::ColumnDescriptor,
};

/// The footer without statistics that would make a query skip matching rows.
///
/// - Minimum and maximum of old writers may be in another order: before `min_value` and `max_value`, bytes and unsigned
///   numbers were compared as if they were signed, so that text beyond ASCII sorted first (`ColumnOrder` of the Parquet format).
/// - Intervals have no order.
/// - NaN is not a valid bound (`ColumnOrder`).
/// - A missing null count means unknown, but the engine reads it as zero.
pub(super) fn without_untrusted_statistics(metadata: ParquetMetaData) -> Result<ParquetMetaData> {
    let groups = metadata.row_groups().iter();
    let all_trusted = groups.flat_map(RowGroupMetaData::columns).all(|chunk| {
        let statistics = chunk.statistics();
        statistics.is_none_or(|statistics| matches!(trust(chunk, statistics), Trust::Unchanged))
    });
    if all_trusted {
        return Ok(metadata);
    }
    let mut metadata = metadata.into_builder();
    for group in metadata.take_row_groups() {
        let mut group = group.into_builder();
        let columns = group.take_columns().into_iter().map(|chunk| {
            match chunk.statistics().map(|statistics| trust(&chunk, statistics)) {
                None | Some(Trust::Unchanged) => Ok(chunk),
                Some(Trust::Replaced(statistics)) => chunk.into_builder().set_statistics(statistics).build(),
                Some(Trust::Rejected) => chunk.into_builder().clear_statistics().build(),
            }
        });
        let columns = columns.collect::<Result<_>>()?;
        metadata = metadata.add_row_group(group.set_column_metadata(columns).build()?);
    }
    Ok(metadata.build())
}

/// The page index without the bounds of columns that have NaN among their bounds.
pub(super) fn without_nan_bounds(metadata: ParquetMetaData) -> ParquetMetaData {
    let mut builder = metadata.clone().into_builder();
    let Some(mut indexes) = builder.take_column_index() else {
        return metadata;
    };
    for (group, columns) in metadata.row_groups().iter().zip(&mut indexes) {
        for (chunk, index) in group.columns().iter().zip(columns) {
            if bounds_are_nan(chunk.column_descr(), index) {
                *index = ColumnIndexMetaData::NONE;
            }
        }
    }
    builder.set_column_index(Some(indexes)).build()
}

/// Whether statistics can be trusted.
enum Trust {
    /// They can be used as stored.
    Unchanged,
    /// These can be used in their place.
    Replaced(Statistics),
    Rejected,
}

fn trust(chunk: &ColumnChunkMetaData, statistics: &Statistics) -> Trust {
    let column = chunk.column_descr();
    let bounds = [statistics.min_bytes_opt(), statistics.max_bytes_opt()];
    let has_bounds = bounds.iter().any(Option::is_some);
    let has_old_order =
        statistics.is_min_max_deprecated() && has_bounds && column.sort_order() != SortOrder::SIGNED;
    let has_nan = || bounds.into_iter().flatten().any(|bound| is_nan(column, bound));
    if has_old_order || column.converted_type() == ConvertedType::INTERVAL || has_nan() {
        return Trust::Rejected;
    }
    match statistics.null_count_opt() {
        Some(_) => Trust::Unchanged,
        // A null count of 1 would mean that all values are null.
        None if chunk.num_values() < 2 => Trust::Rejected,
        None => Trust::Replaced(with_one_null(statistics)),
    }
}

/// The statistics with a null count of 1: the engine concludes neither that no value is null nor that all are.
fn with_one_null(statistics: &Statistics) -> Statistics {
    let is_deprecated = statistics.is_min_max_deprecated();
    macro_rules! one_null {
        ($values:expr) => {{
            let values = $values;
            let (min, max) = (values.min_opt().cloned(), values.max_opt().cloned());
            ValueStatistics::new(min, max, values.distinct_count(), Some(1), is_deprecated)
                .with_min_is_exact(values.min_is_exact())
                .with_max_is_exact(values.max_is_exact())
                .into()
        }};
    }
    match statistics {
        Statistics::Boolean(values) => one_null!(values),
        Statistics::Int32(values) => one_null!(values),
        Statistics::Int64(values) => one_null!(values),
        Statistics::Int96(values) => one_null!(values),
        Statistics::Float(values) => one_null!(values),
        Statistics::Double(values) => one_null!(values),
        Statistics::ByteArray(values) => one_null!(values),
        Statistics::FixedLenByteArray(values) => one_null!(values),
    }
}

/// Whether a stored bound of a floating-point column is NaN.
fn is_nan(column: &ColumnDescriptor, bound: &[u8]) -> bool {
    use parquet::basic::Type::{DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT};
    let is_half = || matches!(column.logical_type_ref(), Some(LogicalType::Float16));
    match column.physical_type() {
        FLOAT => bound
            .try_into()
            .is_ok_and(|bound| f32::from_le_bytes(bound).is_nan()),
        DOUBLE => bound
            .try_into()
            .is_ok_and(|bound| f64::from_le_bytes(bound).is_nan()),
        FIXED_LEN_BYTE_ARRAY if is_half() => bound
            .try_into()
            .is_ok_and(|bound| f16::from_le_bytes(bound).is_nan()),
        _ => false,
    }
}

fn bounds_are_nan(column: &ColumnDescriptor, index: &ColumnIndexMetaData) -> bool {
    match index {
        ColumnIndexMetaData::FLOAT(pages) => {
            let bounds = pages.min_values_iter().chain(pages.max_values_iter());
            bounds.flatten().any(|bound| bound.is_nan())
        }
        ColumnIndexMetaData::DOUBLE(pages) => {
            let bounds = pages.min_values_iter().chain(pages.max_values_iter());
            bounds.flatten().any(|bound| bound.is_nan())
        }
        ColumnIndexMetaData::FIXED_LEN_BYTE_ARRAY(pages) => {
            let bounds = pages.min_values_iter().chain(pages.max_values_iter());
            bounds.flatten().any(|bound| is_nan(column, bound))
        }
        _ => false,
    }
}
