//! What a stored table is, without reading its rows.

use std::{panic::AssertUnwindSafe, sync::Arc};

use arrow_schema::SchemaRef;
use futures::FutureExt as _;

use super::{Format, engine::panicked, format::TableFile, options::Reading};
use crate::{Context, Result, Source};

/// What an object says of its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// How it is stored.
    pub format: Format,
    /// Its columns, as the file has them.
    pub schema: SchemaRef,
    /// Size of the object in bytes.
    pub stored: u64,
    /// Rows, where the object tells without being read to its end.
    pub rows: Option<u64>,
    /// Rows of each row group, of a format that has them.
    pub row_groups: Option<Vec<u64>>,
}

/// Reads what an object is: of Parquet its footer, of other formats their start. Has to be polled within a tokio runtime.
///
/// # Errors
/// [`Undecodable`](crate::ErrorKind::Undecodable) for an object that is no table;
/// [`TooLarge`](crate::ErrorKind::TooLarge) past a limit; [`Source`](crate::ErrorKind::Source) as `source` has it.
pub async fn describe(source: Arc<dyn Source>, context: &Context<'_>) -> Result<Description> {
    let reading = Reading::default();
    let opening = TableFile::open(&reading, source, context.sample_id, &context.limits.tables);
    // Decoders panic on some malformed files.
    let stored = AssertUnwindSafe(opening).catch_unwind().await;
    let file = match stored.map_err(|_| panicked())?? {
        TableFile::Parquet(file) => file,
        TableFile::Stream(file) => {
            return Ok(Description {
                format: file.format(),
                schema: SchemaRef::clone(file.schema()),
                stored: file.object_bytes(),
                rows: None,
                row_groups: None,
            });
        }
    };
    let metadata = file.metadata().metadata();
    let groups = metadata.row_groups().iter();
    let groups = groups.map(|group| u64::try_from(group.num_rows()).unwrap_or_default());
    Ok(Description {
        format: Format::Parquet,
        schema: SchemaRef::clone(file.schema()),
        stored: file.object_bytes(),
        rows: u64::try_from(metadata.file_metadata().num_rows()).ok(),
        row_groups: Some(groups.collect()),
    })
}
