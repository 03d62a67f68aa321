//! The Arrow types of a Parquet file's columns where they differ from the ones that Parquet's reader chooses.

use std::{collections::HashMap, sync::Arc};

use arrow_schema::{DataType, FieldRef, Fields, IntervalUnit, Schema, SchemaRef, TimeUnit};
use parquet::{
    arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions},
    basic::{ConvertedType, LogicalType, Type},
    errors::Result,
    file::metadata::ParquetMetaData,
    schema::types::{ColumnDescriptor, SchemaDescriptor},
};

use crate::duckdb::{EXTENSION, UUID};

/// The footer with the Arrow types to decode.
///
/// INT96 timestamps are decoded as microseconds, even if an Arrow schema in the file names another unit. Parquet's reader
/// chooses nanoseconds, which wrap around for years outside 1677..2262.
///
/// # Errors
/// For columns without an Arrow type.
pub(super) fn with_decoded_types(metadata: ParquetMetaData) -> Result<ArrowReaderMetadata> {
    let metadata = ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::new())?;
    let decoded = with_changed_leaves(
        metadata.schema(),
        metadata.parquet_schema(),
        &int96_as_microseconds,
    );
    if decoded == *metadata.schema() {
        return Ok(metadata);
    }
    let options = ArrowReaderOptions::new().with_schema(decoded);
    ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options)
}

/// The schema of the table, given the `decoded` columns and the `stored` schema, in which intervals are declared.
///
/// Intervals have the type `MonthDayNano`, and UUIDs are marked as such in the metadata of the field.
pub(super) fn table_schema(decoded: &SchemaRef, stored: &SchemaDescriptor) -> SchemaRef {
    with_changed_leaves(decoded, stored, &|leaf, field| {
        if leaf.converted_type() == ConvertedType::INTERVAL
            && *field.data_type() == DataType::FixedSizeBinary(12)
        {
            let interval = DataType::Interval(IntervalUnit::MonthDayNano);
            return Some(field.as_ref().clone().with_data_type(interval).into());
        }
        let is_uuid = matches!(leaf.logical_type_ref(), Some(LogicalType::Uuid));
        (is_uuid && *field.data_type() == DataType::FixedSizeBinary(16)).then(|| {
            let mut metadata: HashMap<_, _> = field.metadata().clone();
            metadata.insert(EXTENSION.to_owned(), UUID.to_owned());
            field.as_ref().clone().with_metadata(metadata).into()
        })
    })
}

fn int96_as_microseconds(leaf: &ColumnDescriptor, field: &FieldRef) -> Option<FieldRef> {
    (leaf.physical_type() == Type::INT96).then(|| {
        let data_type = as_microseconds(field.data_type());
        field.as_ref().clone().with_data_type(data_type).into()
    })
}

fn as_microseconds(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        DataType::Dictionary(key, value) => {
            DataType::Dictionary(key.clone(), Box::new(as_microseconds(value)))
        }
        other => other.clone(),
    }
}

/// Returns the new field of a leaf, or `None` to keep it.
type LeafChange<'a> = &'a dyn Fn(&ColumnDescriptor, &FieldRef) -> Option<FieldRef>;

/// Applies `change` to each leaf of `schema`.
fn with_changed_leaves(schema: &SchemaRef, stored: &SchemaDescriptor, change: LeafChange<'_>) -> SchemaRef {
    let mut leaves = LeafRewriter {
        stored,
        next: 0,
        change,
    };
    let fields = leaves.fields(schema.fields());
    if fields == *schema.fields() {
        return SchemaRef::clone(schema);
    }
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Rewrites the leaves of an Arrow schema. The Parquet schema has the same leaves in the same order.
struct LeafRewriter<'a> {
    stored: &'a SchemaDescriptor,
    /// Index of the next leaf.
    next: usize,
    change: LeafChange<'a>,
}

impl LeafRewriter<'_> {
    fn fields(&mut self, fields: &Fields) -> Fields {
        fields.iter().map(|field| self.field(field)).collect()
    }

    /// The recursion is bounded, since the depth of the Parquet schema is (`footer::schema`).
    fn field(&mut self, field: &FieldRef) -> FieldRef {
        let data_type = match field.data_type() {
            DataType::Struct(children) => DataType::Struct(self.fields(children)),
            DataType::List(item) => DataType::List(self.field(item)),
            DataType::LargeList(item) => DataType::LargeList(self.field(item)),
            DataType::ListView(item) => DataType::ListView(self.field(item)),
            DataType::LargeListView(item) => DataType::LargeListView(self.field(item)),
            DataType::FixedSizeList(item, length) => DataType::FixedSizeList(self.field(item), *length),
            DataType::Map(entries, sorted) => DataType::Map(self.field(entries), *sorted),
            _ => {
                let leaf = self.stored.columns().get(self.next);
                self.next += 1;
                let changed = leaf.and_then(|leaf| (self.change)(leaf, field));
                return changed.unwrap_or_else(|| FieldRef::clone(field));
            }
        };
        Arc::new(field.as_ref().clone().with_data_type(data_type))
    }
}
