//! Data files in Parquet: keys are as they are.

use std::panic::{self, AssertUnwindSafe};

use ::parquet::arrow::{
    ProjectionMask,
    arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder},
};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Int64Array, RecordBatch, StringArray, cast::AsArray as _,
    types::Int64Type,
};
use bytes::Bytes;

use super::{
    fault::Fault,
    rows::{InventoryRow, InventoryRows},
};

/// Names of the columns that are read.
const KEY: &str = "key";
const SIZE: &str = "size";
const ETAG: &str = "e_tag";
const IS_LATEST: &str = "is_latest";
const IS_DELETE_MARKER: &str = "is_delete_marker";
/// Rows that are decoded together.
const BATCH_ROWS: usize = 8 * 1024;

/// Reads a file, and adds its objects to `rows`. Decodes one row group at a time.
///
/// # Errors
/// If the file is invalid, or has no keys or sizes.
pub(super) fn read(file: Bytes, rows: &mut InventoryRows) -> Result<(), Fault> {
    // The decoder panics on some malformed files. The rows are not used after that.
    let decoded = panic::catch_unwind(AssertUnwindSafe(|| decode(file, rows)));
    decoded.unwrap_or_else(|_| Err(Fault::Damaged("it cannot be decoded".to_owned())))
}

fn decode(file: Bytes, rows: &mut InventoryRows) -> Result<(), Fault> {
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options);
    let reader = reader.map_err(|error| damaged(&error))?;
    let names: Vec<&str> = reader
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    if let Some(column) = [KEY, SIZE].into_iter().find(|column| !names.contains(column)) {
        let found = names.join(", ");
        return Err(Fault::MissingColumn { column, found });
    }
    let is_read = |name: &str| [KEY, SIZE, ETAG, IS_LATEST, IS_DELETE_MARKER].contains(&name);
    let read = (0..names.len()).filter(|column| is_read(names[*column]));
    let columns = ProjectionMask::roots(reader.parquet_schema(), read);
    let reader = reader
        .with_projection(columns)
        .with_batch_size(BATCH_ROWS)
        .build();
    for batch in reader.map_err(|error| damaged(&error))? {
        let batch = batch.map_err(|error| damaged(&error))?;
        let columns = Columns::of(&batch)?;
        for index in 0..batch.num_rows() {
            rows.push(columns.row(index)?)?;
        }
    }
    Ok(())
}

/// The columns of a batch.
struct Columns<'a> {
    key: Texts<'a>,
    size: &'a Int64Array,
    etag: Option<Texts<'a>>,
    is_latest: Option<&'a BooleanArray>,
    is_delete_marker: Option<&'a BooleanArray>,
}

/// A column of strings, with or without that annotation.
enum Texts<'a> {
    Annotated(&'a StringArray),
    Bytes(&'a BinaryArray),
}

impl<'a> Columns<'a> {
    fn of(batch: &'a RecordBatch) -> Result<Self, Fault> {
        let required = |name| {
            batch
                .column_by_name(name)
                .ok_or_else(|| damaged(&"a column is missing"))
        };
        let texts = |name, column: &'a ArrayRef| match (column.as_string_opt(), column.as_binary_opt()) {
            (Some(texts), _) => Ok(Texts::Annotated(texts)),
            (None, Some(bytes)) => Ok(Texts::Bytes(bytes)),
            (None, None) => Err(other_type(name, "strings", column)),
        };
        let flags = |name| {
            let flags = batch.column_by_name(name);
            let flags = flags.map(|column| {
                column
                    .as_boolean_opt()
                    .ok_or_else(|| other_type(name, "booleans", column))
            });
            flags.transpose()
        };
        let size = required(SIZE)?;
        let etag = batch.column_by_name(ETAG);
        Ok(Self {
            key: texts(KEY, required(KEY)?)?,
            size: size
                .as_primitive_opt::<Int64Type>()
                .ok_or_else(|| other_type(SIZE, "64-bit integers", size))?,
            etag: etag.map(|column| texts(ETAG, column)).transpose()?,
            is_latest: flags(IS_LATEST)?,
            is_delete_marker: flags(IS_DELETE_MARKER)?,
        })
    }

    fn row(&self, index: usize) -> Result<InventoryRow<'a>, Fault> {
        let flag = |flags: Option<&BooleanArray>, default| {
            let flags = flags.filter(|flags| flags.is_valid(index));
            flags.map_or(default, |flags| flags.value(index))
        };
        let etag = self.etag.as_ref().map(|etags| etags.get(ETAG, index));
        let size = self.size.is_valid(index).then(|| self.size.value(index));
        let bytes = size.map(|size| {
            let bytes = u64::try_from(size);
            bytes.map_err(|_| damaged(&format_args!("expected a size in bytes, found {size}")))
        });
        Ok(InventoryRow {
            key: self.key.get(KEY, index)?.unwrap_or_default(),
            bytes: bytes.transpose()?,
            etag: etag.transpose()?.flatten(),
            is_latest: flag(self.is_latest, true),
            is_delete_marker: flag(self.is_delete_marker, false),
        })
    }
}

impl<'a> Texts<'a> {
    /// The text of a row. `None` for null.
    fn get(&self, name: &str, index: usize) -> Result<Option<&'a str>, Fault> {
        match *self {
            Self::Annotated(texts) => Ok(texts.is_valid(index).then(|| texts.value(index))),
            Self::Bytes(column) if column.is_null(index) => Ok(None),
            Self::Bytes(column) => {
                let bytes = column.value(index);
                let invalid = || {
                    format!(
                        "expected a column `{name}` in UTF-8, found `{}`",
                        bytes.escape_ascii()
                    )
                };
                str::from_utf8(bytes).map(Some).map_err(|_| damaged(&invalid()))
            }
        }
    }
}

fn damaged(fault: &dyn std::fmt::Display) -> Fault {
    Fault::Damaged(fault.to_string())
}

fn other_type(name: &str, expected: &str, column: &ArrayRef) -> Fault {
    let found = column.data_type();
    Fault::Damaged(format!("expected a column `{name}` of {expected}, found {found}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ::parquet::arrow::ArrowWriter;
    use arrow_array::Int32Array;

    use super::*;
    use crate::{objects::Objects, store::HiddenObjects};

    fn strings(values: &[Option<&str>]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    fn integers(values: &[Option<i64>]) -> ArrayRef {
        Arc::new(Int64Array::from(values.to_vec()))
    }

    fn flags(values: &[Option<bool>]) -> ArrayRef {
        Arc::new(BooleanArray::from(values.to_vec()))
    }

    fn file(columns: &[(&str, ArrayRef)]) -> Bytes {
        let columns = columns
            .iter()
            .map(|(name, column)| (*name, Arc::clone(column), true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap().into()
    }

    fn decoded(file: Bytes) -> Result<Objects, Fault> {
        let mut rows = InventoryRows::new("", HiddenObjects::LeftOut, Arc::default());
        read(file, &mut rows)?;
        Ok(rows.finish("photos").0)
    }

    fn fault(columns: &[(&str, ArrayRef)]) -> String {
        decoded(file(columns)).unwrap_err().to_string()
    }

    #[test]
    fn columns_are_read_by_their_names() {
        let objects = decoded(file(&[
            ("e_tag", strings(&[Some("e"), None, Some("e"), None])),
            ("bucket", strings(&[Some("photos"); 4])),
            ("is_latest", flags(&[Some(true), None, Some(false), Some(true)])),
            (
                "is_delete_marker",
                flags(&[Some(false), None, Some(false), Some(true)]),
            ),
            (
                "key",
                strings(&[Some("a+b%2B \n"), Some("b"), Some("b"), Some("c")]),
            ),
            ("size", integers(&[Some(5), Some(0), Some(7), None])),
        ]));
        let objects = objects.unwrap();
        let found: Vec<_> = objects
            .iter()
            .map(|object| (object.key, object.bytes, object.etag))
            .collect();
        assert_eq!(
            found,
            [("a+b%2B \n", Some(5), Some("\"e\"")), ("b", Some(0), None)]
        );
    }

    #[test]
    fn strings_may_lack_their_annotation() {
        let bytes = |values: Vec<&[u8]>| Arc::new(BinaryArray::from(values)) as ArrayRef;
        let size = || ("size", integers(&[Some(5)]));
        let objects = decoded(file(&[("key", bytes(vec![b"k"])), size()])).unwrap();
        assert_eq!((objects.key(0), objects.etag(0)), ("k", None));
        let fault = fault(&[("key", bytes(vec![b"\xff"])), size()]);
        assert!(
            fault.ends_with("expected a column `key` in UTF-8, found `\\xff`"),
            "{fault}"
        );
    }

    #[test]
    fn invalid_files_are_refused() {
        let key = || ("key", strings(&[Some("a")]));
        for (columns, expected) in [
            (
                vec![key()],
                "expected the column size, found key: add it to the metadata fields of the inventory",
            ),
            (
                vec![key(), ("size", strings(&[Some("5")]))],
                "invalid data file: expected a column `size` of 64-bit integers, found Utf8",
            ),
            (
                vec![key(), ("size", integers(&[Some(-1)]))],
                "invalid data file: expected a size in bytes, found -1",
            ),
            (
                vec![key(), ("size", integers(&[None]))],
                "invalid data file: expected a size of each object, found none for `a`",
            ),
            (
                vec![("key", strings(&[None])), ("size", integers(&[Some(1)]))],
                "invalid data file: expected a key in each row, found none",
            ),
            (
                vec![
                    ("key", Arc::new(Int32Array::from(vec![1]))),
                    ("size", integers(&[Some(1)])),
                ],
                "invalid data file: expected a column `key` of strings, found Int32",
            ),
            (
                vec![
                    key(),
                    ("size", integers(&[Some(1)])),
                    ("is_latest", integers(&[Some(1)])),
                ],
                "invalid data file: expected a column `is_latest` of booleans, found Int64",
            ),
        ] {
            assert_eq!(fault(&columns), expected);
        }
        let valid = file(&[key(), ("size", integers(&[Some(1)]))]);
        for file in [Bytes::new(), valid.slice(..valid.len() / 2), valid.slice(4..)] {
            let fault = decoded(file).unwrap_err().to_string();
            assert!(fault.starts_with("invalid data file: "), "{fault}");
        }
    }
}
