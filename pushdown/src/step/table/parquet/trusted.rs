//! Statistics that can be believed.

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

/// The same footer without statistics that would have rows left out which fulfil a condition.
///
/// - Least and greatest values of old writers may be in another order: before `min_value` and `max_value`, bytes and unsigned
///   numbers were compared as if they were signed, so that text beyond ASCII sorted first (`ColumnOrder` of the Parquet format).
/// - Intervals have no order.
/// - NaN is no bound (`ColumnOrder`).
/// - A missing count of nulls is unknown. The engine takes it for zero.
pub(super) fn trusted(metadata: ParquetMetaData) -> Result<ParquetMetaData> {
    let groups = metadata.row_groups().iter();
    let all_are = groups.flat_map(RowGroupMetaData::columns).all(|chunk| {
        let statistics = chunk.statistics();
        statistics.is_none_or(|found| matches!(trust(chunk, found), Trust::As))
    });
    if all_are {
        return Ok(metadata);
    }
    let mut metadata = metadata.into_builder();
    for group in metadata.take_row_groups() {
        let mut group = group.into_builder();
        let columns = group.take_columns().into_iter().map(|chunk| {
            match chunk.statistics().map(|found| trust(&chunk, found)) {
                None | Some(Trust::As) => Ok(chunk),
                Some(Trust::In(statistics)) => chunk.into_builder().set_statistics(statistics).build(),
                Some(Trust::No) => chunk.into_builder().clear_statistics().build(),
            }
        });
        let columns = columns.collect::<Result<_>>()?;
        metadata = metadata.add_row_group(group.set_column_metadata(columns).build()?);
    }
    Ok(metadata.build())
}

/// The same page index without the bounds of columns some of which are NaN.
pub(super) fn trusted_pages(metadata: ParquetMetaData) -> ParquetMetaData {
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

/// What of statistics can be believed.
enum Trust {
    /// All, as they are.
    As,
    /// These.
    In(Statistics),
    No,
}

fn trust(chunk: &ColumnChunkMetaData, found: &Statistics) -> Trust {
    let column = chunk.column_descr();
    let ends = [found.min_bytes_opt(), found.max_bytes_opt()];
    let known = ends.iter().any(Option::is_some);
    let is_of_old_order = found.is_min_max_deprecated() && known && column.sort_order() != SortOrder::SIGNED;
    let is_nan = || ends.into_iter().flatten().any(|end| is_nan(column, end));
    if is_of_old_order || column.converted_type() == ConvertedType::INTERVAL || is_nan() {
        return Trust::No;
    }
    match found.null_count_opt() {
        Some(_) => Trust::As,
        // Of one value, some null would mean all.
        None if chunk.num_values() < 2 => Trust::No,
        None => Trust::In(with_some_null(found)),
    }
}

/// Statistics of which it is neither sure that no value is null nor that all are.
fn with_some_null(found: &Statistics) -> Statistics {
    let is_old = found.is_min_max_deprecated();
    macro_rules! some_null {
        ($of:expr) => {{
            let of = $of;
            let (least, greatest) = (of.min_opt().cloned(), of.max_opt().cloned());
            ValueStatistics::new(least, greatest, of.distinct_count(), Some(1), is_old)
                .with_min_is_exact(of.min_is_exact())
                .with_max_is_exact(of.max_is_exact())
                .into()
        }};
    }
    match found {
        Statistics::Boolean(of) => some_null!(of),
        Statistics::Int32(of) => some_null!(of),
        Statistics::Int64(of) => some_null!(of),
        Statistics::Int96(of) => some_null!(of),
        Statistics::Float(of) => some_null!(of),
        Statistics::Double(of) => some_null!(of),
        Statistics::ByteArray(of) => some_null!(of),
        Statistics::FixedLenByteArray(of) => some_null!(of),
    }
}

/// Whether a bound of a column of numbers with fractions, as it is stored, is none.
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
