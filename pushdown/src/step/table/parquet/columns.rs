//! The Arrow columns of a Parquet file, where they differ from those that Parquet's reader would choose.

use std::{collections::HashMap, sync::Arc};

use arrow_schema::{DataType, FieldRef, Fields, IntervalUnit, Schema, SchemaRef, TimeUnit};
use parquet::{
    arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions},
    basic::{ConvertedType, LogicalType, Type},
    errors::Result,
    file::metadata::ParquetMetaData,
    schema::types::{ColumnDescriptor, SchemaDescriptor},
};

use crate::step::table::duckdb::{EXTENSION, UUID};

/// A footer with the Arrow columns that are decoded.
///
/// INT96 timestamps are microseconds, whatever an Arrow schema in the file says: as nanoseconds, which is what Parquet's reader
/// chooses, years outside 1677..2262 would wrap around.
///
/// # Errors
/// For columns that have no Arrow type.
pub(super) fn with_columns(metadata: ParquetMetaData) -> Result<ArrowReaderMetadata> {
    let metadata = ArrowReaderMetadata::try_new(Arc::new(metadata), ArrowReaderOptions::new())?;
    let decoded = changed(metadata.schema(), metadata.parquet_schema(), &int96);
    if decoded == *metadata.schema() {
        return Ok(metadata);
    }
    let options = ArrowReaderOptions::new().with_schema(decoded);
    ArrowReaderMetadata::try_new(Arc::clone(metadata.metadata()), options)
}

/// The columns that a file has, of those that are decoded: `stored` is its schema with intervals in it.
///
/// Intervals are those of months, days and nanoseconds, and a UUID is named as one.
pub(super) fn columns(decoded: &SchemaRef, stored: &SchemaDescriptor) -> SchemaRef {
    changed(decoded, stored, &|leaf, field| {
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

fn int96(leaf: &ColumnDescriptor, field: &FieldRef) -> Option<FieldRef> {
    (leaf.physical_type() == Type::INT96).then(|| {
        let data_type = microseconds(field.data_type());
        field.as_ref().clone().with_data_type(data_type).into()
    })
}

fn microseconds(of: &DataType) -> DataType {
    match of {
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        DataType::Dictionary(key, value) => DataType::Dictionary(key.clone(), Box::new(microseconds(value))),
        other => other.clone(),
    }
}

/// What stands in place of a leaf's field.
type Change<'a> = &'a dyn Fn(&ColumnDescriptor, &FieldRef) -> Option<FieldRef>;

/// A schema with other leaves.
fn changed(schema: &SchemaRef, stored: &SchemaDescriptor, change: Change<'_>) -> SchemaRef {
    let mut leaves = Leaves {
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

/// The leaves of a Parquet schema, which are those of its Arrow columns, in the same order.
struct Leaves<'a> {
    stored: &'a SchemaDescriptor,
    next: usize,
    change: Change<'a>,
}

impl Leaves<'_> {
    fn fields(&mut self, of: &Fields) -> Fields {
        of.iter().map(|of| self.field(of)).collect()
    }

    /// The nesting is bounded by that of the Parquet schema (`footer::schema`).
    fn field(&mut self, of: &FieldRef) -> FieldRef {
        let data_type = match of.data_type() {
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
                let changed = leaf.and_then(|leaf| (self.change)(leaf, of));
                return changed.unwrap_or_else(|| FieldRef::clone(of));
            }
        };
        Arc::new(of.as_ref().clone().with_data_type(data_type))
    }
}
