//! Lists with members as Arrow record batches.

use std::sync::{Arc, OnceLock};

use arrow_array::{
    Array as _, ArrayRef, ArrowPrimitiveType, DictionaryArray, LargeStringArray, PrimitiveArray, RecordBatch,
    StructArray, UInt32Array, UInt64Array,
    builder::UInt64Builder,
    cast::AsArray as _,
    types::{UInt32Type, UInt64Type},
};
use arrow_schema::{ArrowError, Field};

use super::{
    super::{
        List, Object, Objects, ObjectsBuilder,
        members::{MemberColumn, Members},
    },
    BYTES, ETAG, KEY, invalid, strings,
};
use crate::error::{Error, Result};

/// Names of the columns.
pub(super) const MEMBER: &str = "member";
const OFFSET: &str = "offset";
const HEADER_BYTES: &str = "header_bytes";
const SIZE: &str = "size";
/// The start of the name of a further column.
const FURTHER: &str = "column:";
/// The header of a plain entry of a tar.
const TAR_HEADER_BYTES: u32 = 512;

/// The columns of a list with members. All but `bytes` share its memory.
pub(super) fn to_record_batch(list: &List, members: &Members) -> Result<RecordBatch, ArrowError> {
    let of_shards = |values: &LargeStringArray| {
        let column = DictionaryArray::try_new(members.shards.clone(), Arc::new(values.clone()))?;
        Ok::<ArrayRef, ArrowError>(Arc::new(column))
    };
    let bytes: ArrayRef = Arc::new(bytes(list, members));
    let mut columns = vec![
        (KEY.to_owned(), of_shards(&list.keys)?, false),
        (BYTES.to_owned(), bytes, true),
        (ETAG.to_owned(), of_shards(&list.etags)?, true),
    ];
    columns.extend(member_arrays(members)?);
    RecordBatch::try_from_iter_with_nullable(columns)
}

/// The sizes of members and of whole objects.
fn bytes(list: &List, members: &Members) -> UInt64Array {
    if members.values.names.null_count() == 0 {
        return members.values.sizes.clone();
    }
    let mut bytes = UInt64Builder::with_capacity(members.len());
    for (index, shard) in members.shards.values().iter().enumerate() {
        let shard = *shard as usize;
        bytes.append_option(if members.values.names.is_valid(index) {
            Some(members.values.sizes.value(index))
        } else {
            list.bytes.is_valid(shard).then(|| list.bytes.value(shard))
        });
    }
    bytes.finish()
}

/// The columns of the members: four of the values, and a struct for each further column.
pub(in crate::objects) fn member_arrays(
    members: &Members,
) -> Result<Vec<(String, ArrayRef, bool)>, ArrowError> {
    let values = arrays(&members.values);
    let mut columns: Vec<_> = values
        .into_iter()
        .map(|(name, column)| (name.to_owned(), column, true))
        .collect();
    for (name, column) in members.names.iter().zip(&members.columns) {
        let (fields, children): (Vec<_>, Vec<_>) = arrays(column)
            .into_iter()
            .map(|(name, array)| (Field::new(name, array.data_type().clone(), true), array))
            .unzip();
        let column: ArrayRef = Arc::new(StructArray::try_new(fields.into(), children, None)?);
        columns.push((format!("{FURTHER}{name}"), column, false));
    }
    Ok(columns)
}

fn arrays(column: &MemberColumn) -> [(&'static str, ArrayRef); 4] {
    let nulls = column.names.nulls();
    let with_nulls = |values: &UInt64Array| UInt64Array::new(values.values().clone(), nulls.cloned());
    let header_bytes = UInt32Array::new(column.header_bytes.values().clone(), nulls.cloned());
    [
        (MEMBER, Arc::new(column.names.clone())),
        (OFFSET, Arc::new(with_nulls(&column.offsets))),
        (HEADER_BYTES, Arc::new(header_bytes)),
        (SIZE, Arc::new(with_nulls(&column.sizes))),
    ]
}

/// A list from a record batch with members.
pub(super) fn from_record_batch(bucket: Arc<str>, batch: &RecordBatch) -> Result<Objects> {
    let List {
        keys, bytes, etags, ..
    } = List::from_record_batch(Arc::clone(&bucket), batch, OnceLock::new())?;
    let rows = u32::try_from(keys.len()).unwrap_or(u32::MAX);
    let members = read_members(batch, UInt32Array::from_iter_values(0..rows), keys.len());
    let members = members.map_err(|expected| invalid(batch, &expected))?;
    let mut builder = ObjectsBuilder::with_columns(members.names);
    for index in 0..keys.len() {
        let object = Object {
            key: keys.value(index),
            bytes: bytes.is_valid(index).then(|| bytes.value(index)),
            etag: etags.is_valid(index).then(|| etags.value(index)),
            member: members.values.get(index),
        };
        if let (Some(member), None) = (object.member, object.etag) {
            return Err(Error::config(format!(
                "invalid object list: the member {} of {} in row {index} has no `etag` of its shard",
                member.name, object.key
            )));
        }
        let columns: Vec<_> = members.columns.iter().map(|column| column.get(index)).collect();
        builder.push_with_columns(object, &columns);
    }
    Ok(builder.finish(bucket))
}

/// Reads the columns of the members, whose shards have these numbers.
///
/// # Errors
/// The text is what was expected.
pub(in crate::objects) fn read_members(
    batch: &RecordBatch,
    shards: UInt32Array,
    shard_count: usize,
) -> Result<Members, String> {
    let rows = shards.len();
    let mut members = Members {
        shards,
        values: read(rows, |name| batch.column_by_name(name))?,
        names: Vec::new(),
        columns: Vec::new(),
    };
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let Some(name) = field.name().strip_prefix(FURTHER) else {
            continue;
        };
        let column = column.as_struct_opt().filter(|column| column.null_count() == 0);
        let column = column.ok_or_else(|| format!("a column `{FURTHER}{name}` of structs without nulls"))?;
        members.names.push(name.into());
        members
            .columns
            .push(read(rows, |name| column.column_by_name(name))?);
    }
    members.check(shard_count)?;
    Ok(members)
}

/// Reads one member or none for each row.
fn read<'a>(rows: usize, column: impl Fn(&str) -> Option<&'a ArrayRef>) -> Result<MemberColumn, String> {
    let names = column(MEMBER).and_then(strings);
    let names = names.ok_or_else(|| format!("a column `{MEMBER}` of strings"))?;
    let header_bytes = match column(HEADER_BYTES) {
        Some(_) => numbers::<UInt32Type>(&names, HEADER_BYTES, &column)?,
        None => UInt32Array::from_value(TAR_HEADER_BYTES, rows),
    };
    let read = MemberColumn {
        offsets: numbers::<UInt64Type>(&names, OFFSET, &column)?,
        header_bytes,
        sizes: numbers::<UInt64Type>(&names, SIZE, &column)?,
        names,
    };
    read.check()?;
    Ok(read)
}

/// A column with a number for each member.
fn numbers<'a, T: ArrowPrimitiveType>(
    names: &LargeStringArray,
    name: &str,
    column: impl Fn(&str) -> Option<&'a ArrayRef>,
) -> Result<PrimitiveArray<T>, String> {
    let found = column(name).and_then(|column| column.as_primitive_opt::<T>());
    let is_complete = |found: &&PrimitiveArray<T>| {
        found.null_count() == 0 || (0..names.len()).all(|row| names.is_null(row) || found.is_valid(row))
    };
    let found = found.filter(is_complete).ok_or_else(|| {
        let expected = T::DATA_TYPE;
        format!("a column `{name}` of type {expected} with a number for each member")
    })?;
    Ok(PrimitiveArray::new(found.values().clone(), None))
}
