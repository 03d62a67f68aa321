//! Saved indexes: Parquet files with a row for each member, in the order of the index.
//!
//! The columns are `shard`, `etag`, `member`, `offset`, `header_bytes` and `size`. The metadata in the footer have the bucket, the version of
//! the format, and a checksum of bucket and rows; and as JSON, by shard, the number of members that are left out, if there are any.

use std::{collections::BTreeMap, fmt, fs, io::Write, panic, path::Path};

use arrow_array::RecordBatch;
use bytes::Bytes;
use crc32fast::Hasher;
use parquet::{
    arrow::{
        ArrowWriter,
        arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder},
        arrow_writer::ArrowWriterOptions,
    },
    basic::{Compression, Encoding, ZstdLevel},
    errors::ParquetError,
    file::{metadata::KeyValue, properties::WriterProperties},
};

use super::{
    ShardIndex,
    columns::{MEMBER, OFFSET, RowsBuilder, SIZE, to_record_batch},
};
use crate::{
    atomic_write::write_atomically,
    error::{Error, Result},
    objects::Objects,
};

/// Version of the format.
const VERSION: &str = "1";
/// Names of metadata in the footer.
const BUCKET: &str = "pushdown.shards.bucket";
const VERSION_NAME: &str = "pushdown.shards.version";
const CHECKSUM: &str = "pushdown.shards.crc32";
const LEFT_OUT: &str = "pushdown.shards.left_out";
/// The start of every Parquet file.
const MAGIC: &[u8; 4] = b"PAR1";
/// Rows of a row group.
const GROUP_ROWS: usize = 128 * 1024;
/// Rows that are decoded together.
const BATCH_ROWS: usize = 8 * 1024;

/// Why a file cannot be loaded.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("expected a file that `pushdown index` wrote, found {0}")]
    Foreign(&'static str),
    #[error(
        "expected format version {VERSION}, found `{0}`: load it with the version of pushdown that wrote it, or index the shards again"
    )]
    OtherVersion(String),
    #[error("the file is damaged: {0}; index the shards again")]
    Damaged(String),
}

impl ShardIndex {
    /// Saves the index as a Parquet file, which other tools read as well. A reader of the file never finds a part of it, as with
    /// [`Objects::save`].
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) if the file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let batch = to_record_batch(&self.members)?;
        let checksum = checksum(&self.members);
        let left_out = serde_json::to_string(&self.left_out)
            .map_err(|error| Error::internal("cannot write what is left out of shards").with_source(error))?;
        let mut metadata = vec![
            (BUCKET, self.bucket()),
            (VERSION_NAME, VERSION),
            (CHECKSUM, checksum.as_str()),
        ];
        if !self.left_out.is_empty() {
            metadata.push((LEFT_OUT, left_out.as_str()));
        }
        write_atomically(path, |file| write(file, &batch, &metadata))
            .map_err(|error| Error::config(format!("cannot save the index {}: {error}", path.display())))
    }

    /// Loads an index that [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) if the file cannot be read, is no saved index, has another version, or is damaged.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let cannot = |fault: &dyn fmt::Display| {
            Error::config(format!("cannot load the index {}: {fault}", path.display()))
        };
        let file = fs::read(path).map_err(|error| cannot(&error))?;
        // The decoder panics on some malformed files.
        let decoded = panic::catch_unwind(|| decode(file));
        let decoded = decoded.unwrap_or_else(|_| Err(Fault::Damaged("it cannot be decoded".to_owned())));
        decoded.map_err(|fault| cannot(&fault))
    }
}

/// Writes rows with these metadata, and returns the file.
fn write<W: Write + Send>(
    file: W,
    batch: &RecordBatch,
    metadata: &[(&str, &str)],
) -> Result<W, ParquetError> {
    let metadata = metadata.iter();
    let metadata = metadata.map(|(name, value)| KeyValue::new((*name).to_owned(), (*value).to_owned()));
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_key_value_metadata(Some(metadata.collect()));
    // Neighbouring rows have similar names and ascending offsets.
    for (column, encoding) in [
        (MEMBER, Encoding::DELTA_BYTE_ARRAY),
        (OFFSET, Encoding::DELTA_BINARY_PACKED),
        (SIZE, Encoding::DELTA_BINARY_PACKED),
    ] {
        properties = properties
            .set_column_dictionary_enabled(column.into(), false)
            .set_column_encoding(column.into(), encoding);
    }
    let options = ArrowWriterOptions::new()
        .with_properties(properties.build())
        .with_skip_arrow_metadata(true);
    let mut writer = ArrowWriter::try_new_with_options(file, batch.schema(), options)?;
    writer.write(batch)?;
    writer.into_inner()
}

/// The index in the bytes of a file.
fn decode(file: Vec<u8>) -> Result<ShardIndex, Fault> {
    let damaged = |fault: &dyn fmt::Display| Fault::Damaged(fault.to_string());
    if !file.starts_with(MAGIC) {
        return Err(Fault::Foreign("another format"));
    }
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(Bytes::from(file), options);
    let reader = reader.map_err(|error| damaged(&error))?;
    let metadata = reader.metadata().file_metadata().key_value_metadata();
    let value = |name: &str| {
        let mut metadata = metadata.into_iter().flatten();
        metadata.find(|entry| entry.key == name)?.value.clone()
    };
    let (bucket, expected) = match (value(VERSION_NAME), value(BUCKET), value(CHECKSUM)) {
        (Some(version), _, _) if version != VERSION => return Err(Fault::OtherVersion(version)),
        (Some(_), Some(bucket), Some(checksum)) => (bucket, checksum),
        _ => return Err(Fault::Foreign("another Parquet file")),
    };
    let left_out = value(LEFT_OUT).map_or_else(|| Ok(BTreeMap::new()), |text| serde_json::from_str(&text));
    let left_out = left_out.map_err(|error| damaged(&error))?;
    let mut rows = RowsBuilder::default();
    let batches = reader.with_batch_size(BATCH_ROWS).build();
    for batch in batches.map_err(|error| damaged(&error))? {
        let batch = batch.map_err(|error| damaged(&error))?;
        rows.append(&batch)
            .map_err(|expected| damaged(&format_args!("expected {expected}")))?;
    }
    let index = rows.finish(bucket.into());
    let found = checksum(&index.members);
    if found == expected {
        Ok(index.with_left_out(left_out))
    } else {
        Err(damaged(&format_args!(
            "expected the checksum {expected}, found {found}"
        )))
    }
}

/// The checksum of bucket and rows: CRC-32 as 8 hex digits.
fn checksum(members: &Objects) -> String {
    let mut hasher = Hasher::new();
    hasher.update(members.bucket().as_bytes());
    for object in members.iter() {
        let Some(member) = object.member else { continue };
        for text in [object.key, object.etag.unwrap_or_default(), member.name] {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        hasher.update(&member.range.offset().to_le_bytes());
        hasher.update(&member.range.header_bytes().to_le_bytes());
        hasher.update(&member.range.size().to_le_bytes());
    }
    format!("{:08x}", hasher.finalize())
}

#[cfg(test)]
mod tests;
