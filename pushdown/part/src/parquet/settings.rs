//! Settings of the encoder: all that determine bytes are set, rather than left to defaults that may change.

use parquet::{
    basic::{Compression, Encoding, ZstdLevel},
    file::{
        metadata::KeyValue,
        properties::{EnabledStatistics, WriterProperties, WriterVersion},
    },
    schema::types::ColumnPath,
};
use pushdown_core::Result;

use super::{
    features,
    schema::{IMAGE, KEY, LABEL, VALUE, ValueColumn},
    unwritable,
};
use crate::PartSpec;

/// Without a version: a release that changes nothing of a part writes the same bytes.
const CREATED_BY: &str = "pushdown";
/// Encoded bytes that end a data page, and those of a dictionary after which none is used.
const PAGE_BYTES: usize = 1 << 20;
/// Rows that end a data page.
const PAGE_ROWS: usize = 20_000;
/// Elements after which the encoder looks whether a page ends.
const ENCODED_AT_ONCE: usize = 1024;
const ZSTD_LEVEL: i32 = 1;
/// Bytes of the texts in statistics.
const STATISTICS_BYTES: usize = 64;

/// The settings for a part with these features, which are in the metadata of the file as well as in its Arrow schema: pyarrow reads
/// only the latter, and readers without Arrow only the former.
pub(super) fn settings(spec: &PartSpec, value: &ValueColumn, features: &str) -> Result<WriterProperties> {
    let features = KeyValue::new(features::METADATA_KEY.to_owned(), features.to_owned());
    let zstd = Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL).map_err(unwritable)?);
    let top = |name: &str| ColumnPath::new(vec![name.to_owned()]);
    let mut settings = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by(CREATED_BY.to_owned())
        .set_key_value_metadata(Some(vec![features]))
        .set_max_row_group_row_count(None)
        .set_max_row_group_bytes(None)
        .set_data_page_size_limit(PAGE_BYTES)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_dictionary_page_size_limit(PAGE_BYTES)
        .set_write_batch_size(ENCODED_AT_ONCE)
        .set_encoding(Encoding::PLAIN)
        .set_dictionary_enabled(false)
        .set_compression(zstd)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_statistics_truncate_length(Some(STATISTICS_BYTES))
        .set_offset_index_disabled(true)
        .set_column_statistics_enabled(top(KEY), EnabledStatistics::Chunk);
    if spec.label.is_some() {
        settings = settings
            .set_column_statistics_enabled(top(LABEL), EnabledStatistics::Chunk)
            .set_column_dictionary_enabled(top(LABEL), true);
    }
    Ok(match value {
        ValueColumn::Image(_) => {
            let path = ColumnPath::new(vec![IMAGE.to_owned(), "bytes".to_owned()]);
            settings.set_column_compression(path, Compression::UNCOMPRESSED)
        }
        // Plain elements of one byte have four in Parquet; a dictionary has at most 256 of them.
        ValueColumn::Array(array) if array.dtype.size() == 1 => {
            let mut path = vec![VALUE.to_owned()];
            for _ in &array.shape {
                path.extend(["list".to_owned(), "item".to_owned()]);
            }
            settings.set_column_dictionary_enabled(ColumnPath::new(path), true)
        }
        ValueColumn::Array(_) | ValueColumn::Bytes => settings,
    }
    .build())
}
