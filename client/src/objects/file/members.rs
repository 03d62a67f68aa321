//! The columns of a saved list with members: a row for each sample, and all shards in the first row.
//!
//! `shard` is the number of the sample's shard in `shards`, a list of structs that is empty in all rows but the first.

use std::sync::{Arc, OnceLock};

use arrow_array::{
    Array as _, ArrayRef, ListArray, RecordBatch, StructArray, cast::AsArray as _, types::UInt32Type,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, Field};

use super::super::{
    List,
    columns::{member_arrays, read_members, schema},
    members::Members,
};
use crate::error::{Error, Result};

/// Names of the columns.
const SHARD: &str = "shard";
const SHARDS: &str = "shards";

pub(super) fn to_record_batch(list: &List, members: &Members) -> Result<RecordBatch, ArrowError> {
    let shards = StructArray::try_new(schema().fields().clone(), list.objects(), None)?;
    let count = i32::try_from(shards.len());
    let count = count.map_err(|_| ArrowError::InvalidArgumentError("too many shards".to_owned()))?;
    let mut offsets = vec![0];
    offsets.resize(members.len() + 1, count);
    let shards: ArrayRef = Arc::new(ListArray::try_new(
        Arc::new(Field::new_list_field(shards.data_type().clone(), false)),
        OffsetBuffer::new(ScalarBuffer::from(offsets)),
        Arc::new(shards),
        None,
    )?);
    let numbers: ArrayRef = Arc::new(members.shards.clone());
    let mut columns = vec![
        (SHARD.to_owned(), numbers, false),
        (SHARDS.to_owned(), shards, false),
    ];
    columns.extend(member_arrays(members)?);
    RecordBatch::try_from_iter_with_nullable(columns)
}

pub(super) fn from_record_batch(
    bucket: Arc<str>,
    batch: &RecordBatch,
    digest: OnceLock<String>,
) -> Result<List> {
    let invalid = |expected: &str| Error::config(format!("invalid object list: expected {expected}"));
    let shards = batch
        .column_by_name(SHARDS)
        .and_then(|column| column.as_list_opt::<i32>());
    let shards = shards.and_then(|lists| lists.values().as_struct_opt());
    let shards = shards
        .filter(|shards| shards.null_count() == 0)
        .ok_or_else(|| invalid("a column `shards` of lists of structs"))?;
    let numbers = batch
        .column_by_name(SHARD)
        .and_then(|column| column.as_primitive_opt::<UInt32Type>());
    let numbers = numbers.ok_or_else(|| invalid("a column `shard` of type UInt32"))?;
    let mut list = List::from_record_batch(bucket, &RecordBatch::from(shards), digest)?;
    let members = read_members(batch, numbers.clone(), list.keys.len());
    list.members = Some(members.map_err(|expected| invalid(&expected))?);
    Ok(list)
}
