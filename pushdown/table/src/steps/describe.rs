//! The format, columns and row counts of a stored table, without reading its rows.

use std::{panic::AssertUnwindSafe, sync::Arc};

use arrow_schema::SchemaRef;
use futures::FutureExt as _;

use crate::{
    engine::query::decoder_panicked,
    formats::{
        format::{Format, TableFile},
        read_options::ReadOptions,
    },
};
use pushdown_core::{Context, Result, Source};

/// The metadata of a stored table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The storage format.
    pub format: Format,
    /// The columns as stored.
    pub schema: SchemaRef,
    /// Size of the object in bytes.
    pub object_bytes: u64,
    /// Number of rows; `None` if only a full read could count them.
    pub rows: Option<u64>,
    /// Rows of each row group; `None` for a format without row groups.
    pub row_groups: Option<Vec<u64>>,
}

/// Reads the metadata of an object: the footer of a Parquet file, the start of other formats. Must be polled within a tokio
/// runtime.
///
/// # Errors
/// [`Undecodable`](pushdown_core::ErrorKind::Undecodable) for an object that is not a table;
/// [`TooLarge`](pushdown_core::ErrorKind::TooLarge) past a limit; [`Source`](pushdown_core::ErrorKind::Source) if `source` fails.
pub async fn describe(source: Arc<dyn Source>, context: &Context<'_>) -> Result<Description> {
    let options = ReadOptions::default();
    let opening = TableFile::open(&options, source, context.sample_id, &context.limits.tables);
    // Decoders panic on some malformed files.
    let stored = AssertUnwindSafe(opening).catch_unwind().await;
    let file = match stored.map_err(|_| decoder_panicked())?? {
        TableFile::Parquet(file) => file,
        TableFile::Stream(file) => {
            return Ok(Description {
                format: file.format(),
                schema: SchemaRef::clone(file.schema()),
                object_bytes: file.object_bytes(),
                rows: None,
                row_groups: None,
            });
        }
    };
    let metadata = file.metadata().metadata();
    let row_group_rows = metadata
        .row_groups()
        .iter()
        .map(|group| u64::try_from(group.num_rows()).unwrap_or_default());
    Ok(Description {
        format: Format::Parquet,
        schema: SchemaRef::clone(file.schema()),
        object_bytes: file.object_bytes(),
        rows: u64::try_from(metadata.file_metadata().num_rows()).ok(),
        row_groups: Some(row_group_rows.collect()),
    })
}
