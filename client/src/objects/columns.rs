//! Lists as Arrow record batches.

use std::sync::{Arc, OnceLock};

use arrow_array::{
    Array, ArrayRef, LargeStringArray, RecordBatch, UInt64Array, cast::AsArray as _, types::UInt64Type,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::{List, Objects};
use crate::error::{Error, Result};

/// Names of the columns.
const KEY: &str = "key";
const BYTES: &str = "bytes";
const ETAG: &str = "etag";

/// The columns of a list. Not a static that is made at first use, for which a process that forks meanwhile would wait forever.
pub(super) fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new(KEY, DataType::LargeUtf8, false),
        Field::new(BYTES, DataType::UInt64, true),
        Field::new(ETAG, DataType::LargeUtf8, true),
    ]))
}

impl Objects {
    /// The list as a record batch that shares its memory, with the columns `key` (large strings), `bytes` (unsigned integers of 64 bits)
    /// and `etag` (large strings). Unknown sizes and ETags are null. The bucket is not part of it.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`](crate::ErrorKind) only.
    pub fn to_record_batch(&self) -> Result<RecordBatch> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.0.keys.clone()),
            Arc::new(self.0.bytes.clone()),
            Arc::new(self.0.etags.clone()),
        ];
        RecordBatch::try_new(schema(), columns)
            .map_err(|error| Error::internal("cannot convert an object list to Arrow").with_source(error))
    }

    /// A list from a record batch with the columns of [`to_record_batch`](Self::to_record_batch). `bytes` and `etag` may be missing, and
    /// strings may be of either length. Other columns are ignored.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) for a column that is missing or has another type, and for a null key.
    pub fn from_record_batch(bucket: impl Into<Arc<str>>, batch: &RecordBatch) -> Result<Self> {
        let list = List::from_record_batch(bucket.into(), batch, OnceLock::new())?;
        Ok(Self(Arc::new(list)))
    }
}

impl List {
    /// A list with a digest that may be known.
    pub(super) fn from_record_batch(
        bucket: Arc<str>,
        batch: &RecordBatch,
        digest: OnceLock<String>,
    ) -> Result<Self> {
        let keys = batch.column_by_name(KEY).and_then(strings);
        let keys = keys.filter(|keys| keys.null_count() == 0);
        let bytes = match batch.column_by_name(BYTES) {
            Some(bytes) => bytes.as_primitive_opt::<UInt64Type>().cloned(),
            None => Some(UInt64Array::new_null(batch.num_rows())),
        };
        let etags = match batch.column_by_name(ETAG) {
            Some(etags) => strings(etags),
            None => Some(LargeStringArray::new_null(batch.num_rows())),
        };
        Ok(Self {
            bucket,
            keys: keys.ok_or_else(|| invalid(batch, "a column `key` of strings without nulls"))?,
            bytes: bytes.ok_or_else(|| invalid(batch, "a column `bytes` of type UInt64"))?,
            etags: etags.ok_or_else(|| invalid(batch, "a column `etag` of strings"))?,
            digest,
        })
    }
}

/// A column of strings.
fn strings(column: &ArrayRef) -> Option<LargeStringArray> {
    let large = column.as_string_opt::<i64>().cloned();
    large.or_else(|| Some(column.as_string_opt::<i32>()?.iter().collect()))
}

fn invalid(batch: &RecordBatch, expected: &str) -> Error {
    Error::config(format!(
        "invalid object list: expected {expected}, found the columns {}",
        batch.schema()
    ))
}
