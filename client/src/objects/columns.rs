//! Lists as Arrow record batches.

mod members;

use std::sync::{Arc, OnceLock};

use arrow_array::{
    Array, ArrayRef, LargeStringArray, RecordBatch, UInt64Array, cast::AsArray as _, types::UInt64Type,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::take::take;

use super::{List, Objects};
use crate::error::{Error, Result};
use members::MEMBER;
pub(super) use members::{member_arrays, read_members};

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
    /// A list with members also has the columns `member` (large strings), `offset`, `header_bytes` and `size` (unsigned integers of 64, 32
    /// and 64 bits), and for each further column a struct `column:NAME` of the same four. `key` and `etag` are those of the shards, and
    /// dictionaries.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`](crate::ErrorKind) only.
    pub fn to_record_batch(&self) -> Result<RecordBatch> {
        let batch = match &self.0.members {
            Some(members) => members::to_record_batch(&self.0, members),
            None => RecordBatch::try_new(schema(), self.0.objects()),
        };
        batch.map_err(|error| Error::internal("cannot convert an object list to Arrow").with_source(error))
    }

    /// A list from a record batch with the columns of [`to_record_batch`](Self::to_record_batch). All but `key` may be missing; strings may be
    /// of either length, and dictionaries. Other columns are ignored. A row with a `member` needs `offset`, `size` and `etag`; its
    /// `header_bytes` are 512 if the column is missing.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) for a column that is missing or has another type, for a null key, and for an invalid member.
    pub fn from_record_batch(bucket: impl Into<Arc<str>>, batch: &RecordBatch) -> Result<Self> {
        if batch.column_by_name(MEMBER).is_some() {
            return members::from_record_batch(bucket.into(), batch);
        }
        let list = List::from_record_batch(bucket.into(), batch, OnceLock::new())?;
        Ok(Self(Arc::new(list)))
    }
}

impl List {
    /// The columns of objects, or of shards.
    pub(super) fn objects(&self) -> Vec<ArrayRef> {
        vec![
            Arc::new(self.keys.clone()),
            Arc::new(self.bytes.clone()),
            Arc::new(self.etags.clone()),
        ]
    }

    /// A list without members, with a digest that may be known.
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
            members: None,
            digest,
        })
    }
}

/// A column of strings.
fn strings(column: &ArrayRef) -> Option<LargeStringArray> {
    if let Some(large) = column.as_string_opt::<i64>() {
        return Some(large.clone());
    }
    if let Some(dictionary) = column.as_any_dictionary_opt() {
        let values = strings(dictionary.values())?;
        let rows = take(&values, dictionary.keys(), None).ok()?;
        return rows.as_string_opt::<i64>().cloned();
    }
    Some(column.as_string_opt::<i32>()?.iter().collect())
}

fn invalid(batch: &RecordBatch, expected: &str) -> Error {
    Error::config(format!(
        "invalid object list: expected {expected}, found the columns {}",
        batch.schema()
    ))
}
