//! The columns of a saved index.

use std::{collections::HashSet, sync::Arc};

use arrow_array::{
    Array as _, RecordBatch, StringArray, UInt32Array, UInt64Array,
    cast::AsArray as _,
    types::{UInt32Type, UInt64Type},
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pushdown::shard::{MemberRange, check_name};

use super::ShardIndex;
use crate::{
    error::{Error, Result},
    objects::{MemberRef, Object, Objects, ObjectsBuilder},
};

/// Names of the columns.
const SHARD: &str = "shard";
const ETAG: &str = "etag";
pub(super) const MEMBER: &str = "member";
pub(super) const OFFSET: &str = "offset";
const HEADER_BYTES: &str = "header_bytes";
pub(super) const SIZE: &str = "size";
/// The same columns in the record batch of a list.
const OF_LIST: [&str; 6] = ["key", ETAG, MEMBER, OFFSET, HEADER_BYTES, SIZE];

fn schema() -> SchemaRef {
    let dictionary = DataType::Dictionary(DataType::UInt32.into(), DataType::LargeUtf8.into());
    Arc::new(Schema::new(vec![
        Field::new(SHARD, dictionary.clone(), false),
        Field::new(ETAG, dictionary, false),
        Field::new(MEMBER, DataType::LargeUtf8, false),
        Field::new(OFFSET, DataType::UInt64, false),
        Field::new(HEADER_BYTES, DataType::UInt32, false),
        Field::new(SIZE, DataType::UInt64, false),
    ]))
}

/// The members as rows.
pub(super) fn to_record_batch(members: &Objects) -> Result<RecordBatch> {
    if members.is_empty() {
        return Ok(RecordBatch::new_empty(schema()));
    }
    let batch = members.to_record_batch()?;
    let columns = OF_LIST
        .iter()
        .filter_map(|name| batch.column_by_name(name).cloned());
    RecordBatch::try_new(schema(), columns.collect())
        .map_err(|error| Error::internal("cannot convert an index to Arrow").with_source(error))
}

/// Collects the rows of a saved index, and checks them.
#[derive(Debug, Default)]
pub(super) struct RowsBuilder {
    objects: ObjectsBuilder,
    /// The keys of all shards so far.
    shards: HashSet<String>,
    current: Option<CurrentShard>,
}

/// The shard of the last row.
#[derive(Debug)]
struct CurrentShard {
    key: String,
    etag: String,
    /// The end of its last entry.
    end: u64,
}

/// The columns of some rows.
struct Columns<'a> {
    shards: &'a StringArray,
    etags: &'a StringArray,
    names: &'a StringArray,
    offsets: &'a UInt64Array,
    header_bytes: &'a UInt32Array,
    sizes: &'a UInt64Array,
}

impl RowsBuilder {
    /// Adds rows.
    ///
    /// # Errors
    /// The text is what was expected.
    pub(super) fn append(&mut self, batch: &RecordBatch) -> Result<(), String> {
        let columns = Columns::new(batch)
            .ok_or_else(|| format!("the columns of an index without nulls, found {}", batch.schema()))?;
        for row in 0..batch.num_rows() {
            let range = MemberRange::new(
                columns.offsets.value(row),
                columns.header_bytes.value(row),
                columns.sizes.value(row),
            );
            let name = columns.names.value(row);
            let range = check_name(name).and(range);
            let member = MemberRef {
                name,
                range: range.map_err(|error| format!("valid members, found: {error}"))?,
            };
            self.push(columns.shards.value(row), columns.etags.value(row), member)?;
        }
        Ok(())
    }

    fn push(&mut self, key: &str, etag: &str, member: MemberRef<'_>) -> Result<(), String> {
        let MemberRef { name, range } = member;
        match &mut self.current {
            Some(shard) if shard.key == key => {
                if shard.etag != etag {
                    return Err(format!("one version of the shard `{key}`, found two"));
                }
                if range.offset() < shard.end {
                    return Err(format!(
                        "the members of the shard `{key}` in the order of their offsets, found `{name}` at {}",
                        range.offset()
                    ));
                }
                shard.end = range.entry().end;
            }
            current => {
                if !self.shards.insert(key.to_owned()) {
                    return Err(format!("the members of the shard `{key}` one after the other"));
                }
                *current = Some(CurrentShard {
                    key: key.to_owned(),
                    etag: etag.to_owned(),
                    end: range.entry().end,
                });
            }
        }
        self.objects.push(Object {
            key,
            bytes: None,
            etag: Some(etag),
            member: Some(member),
        });
        Ok(())
    }

    pub(super) fn finish(self, bucket: Arc<str>) -> ShardIndex {
        ShardIndex::new(self.objects.finish(bucket))
    }
}

impl<'a> Columns<'a> {
    /// `None` if a column is missing, has another type or has nulls.
    fn new(batch: &'a RecordBatch) -> Option<Self> {
        let column = |name| {
            batch
                .column_by_name(name)
                .filter(|column| column.null_count() == 0)
        };
        Some(Self {
            shards: column(SHARD)?.as_string_opt()?,
            etags: column(ETAG)?.as_string_opt()?,
            names: column(MEMBER)?.as_string_opt()?,
            offsets: column(OFFSET)?.as_primitive_opt::<UInt64Type>()?,
            header_bytes: column(HEADER_BYTES)?.as_primitive_opt::<UInt32Type>()?,
            sizes: column(SIZE)?.as_primitive_opt::<UInt64Type>()?,
        })
    }
}
