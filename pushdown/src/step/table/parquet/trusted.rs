//! Statistics that can be believed.

use parquet::{
    basic::SortOrder,
    errors::Result,
    file::{
        metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData},
        statistics::Statistics,
    },
};

/// The same without the least and greatest values of old writers that may be in another order: before `min_value` and
/// `max_value`, bytes and unsigned numbers were compared as if they were signed, so that text beyond ASCII sorted first
/// (`ColumnOrder` of the Parquet format).
pub(super) fn trusted(metadata: ParquetMetaData) -> Result<ParquetMetaData> {
    let groups = metadata.row_groups().iter();
    if !groups.flat_map(RowGroupMetaData::columns).any(is_of_old_order) {
        return Ok(metadata);
    }
    let mut metadata = metadata.into_builder();
    for group in metadata.take_row_groups() {
        let mut group = group.into_builder();
        let columns = group.take_columns().into_iter().map(|chunk| {
            if is_of_old_order(&chunk) {
                chunk.into_builder().clear_statistics().build()
            } else {
                Ok(chunk)
            }
        });
        let columns = columns.collect::<Result<_>>()?;
        metadata = metadata.add_row_group(group.set_column_metadata(columns).build()?);
    }
    Ok(metadata.build())
}

fn is_of_old_order(chunk: &ColumnChunkMetaData) -> bool {
    let known = |statistics: &Statistics| {
        statistics
            .min_bytes_opt()
            .or_else(|| statistics.max_bytes_opt())
            .is_some()
    };
    let old = |statistics: &Statistics| statistics.is_min_max_deprecated() && known(statistics);
    chunk.column_descr().sort_order() != SortOrder::SIGNED && chunk.statistics().is_some_and(old)
}
