//! Decodes intervals, which Parquet stores as three numbers: months, days and milliseconds.
//!
//! Parquet's reader decodes either the months or the other two. So intervals are read as twelve bytes and converted afterwards.

use std::sync::Arc;

use arrow_array::{
    Array as _, ArrayRef, FixedSizeBinaryArray, FixedSizeListArray, GenericListArray,
    IntervalMonthDayNanoArray, MapArray, OffsetSizeTrait, RecordBatch, RecordBatchOptions, StructArray,
    cast::AsArray as _,
};
use arrow_buffer::IntervalMonthDayNano;
use arrow_schema::{ArrowError, DataType, FieldRef, Schema, SchemaRef};
use parquet::{
    arrow::ARROW_SCHEMA_META_KEY,
    basic::ConvertedType,
    errors::Result,
    file::metadata::{FileMetaData, ParquetMetaData, ParquetMetaDataBuilder},
    schema::types::{ColumnDescriptor, SchemaDescriptor, Type, TypePtr},
};

/// The footer with intervals declared as plain bytes.
///
/// A footer with an Arrow schema stays unchanged: its writer stored either the months or the other two, and the schema says
/// which.
pub(super) fn as_bytes(metadata: ParquetMetaData) -> Result<ParquetMetaData> {
    let file = metadata.file_metadata();
    let is_interval = |leaf: &Arc<ColumnDescriptor>| leaf.converted_type() == ConvertedType::INTERVAL;
    let mut pairs = file.key_value_metadata().into_iter().flatten();
    if !file.schema_descr().columns().iter().any(is_interval)
        || pairs.any(|pair| pair.key == ARROW_SCHEMA_META_KEY)
    {
        return Ok(metadata);
    }
    let schema = SchemaDescriptor::new(type_as_bytes(&file.schema_descr().root_schema_ptr())?);
    let file = FileMetaData::new(
        file.version(),
        file.num_rows(),
        file.created_by().map(str::to_owned),
        file.key_value_metadata().cloned(),
        Arc::new(schema),
        file.column_orders().cloned(),
    );
    let groups = metadata.row_groups().to_vec();
    Ok(ParquetMetaDataBuilder::new(file).set_row_groups(groups).build())
}

/// The recursion is bounded, since the depth of a schema is (`footer::schema`).
fn type_as_bytes(stored: &TypePtr) -> Result<TypePtr> {
    let basic = stored.get_basic_info();
    let id = basic.has_id().then(|| basic.id());
    let converted = match stored.as_ref() {
        Type::GroupType { fields, .. } => {
            let mut group = Type::group_type_builder(stored.name())
                .with_fields(fields.iter().map(type_as_bytes).collect::<Result<_>>()?)
                .with_converted_type(basic.converted_type())
                .with_logical_type(basic.logical_type_ref().cloned())
                .with_id(id);
            if basic.has_repetition() {
                group = group.with_repetition(basic.repetition());
            }
            group.build()?
        }
        Type::PrimitiveType {
            physical_type,
            type_length,
            ..
        } if basic.converted_type() == ConvertedType::INTERVAL => {
            Type::primitive_type_builder(stored.name(), *physical_type)
                .with_length(*type_length)
                .with_repetition(basic.repetition())
                .with_id(id)
                .build()?
        }
        Type::PrimitiveType { .. } => return Ok(Arc::clone(stored)),
    };
    Ok(Arc::new(converted))
}

/// Converts a decoded batch of `columns` to the types that these have in `schema`.
pub(super) fn restore_intervals(
    batch: RecordBatch,
    schema: &Schema,
    columns: &[usize],
) -> Result<RecordBatch, ArrowError> {
    let fields: Vec<_> = columns
        .iter()
        .filter_map(|column| schema.fields().get(*column))
        .collect();
    let found = batch.schema();
    if found
        .fields()
        .iter()
        .zip(&fields)
        .all(|(found, field)| found.data_type() == field.data_type())
    {
        return Ok(batch);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let arrays = batch.columns().iter().zip(&fields);
    let arrays = arrays.map(|(array, field)| convert(array, field.data_type()));
    let arrays = arrays.collect::<Result<_, _>>()?;
    let fields: Vec<FieldRef> = fields.into_iter().cloned().collect();
    let schema: SchemaRef = Schema::new_with_metadata(fields, found.metadata().clone()).into();
    RecordBatch::try_new_with_options(schema, arrays, &options)
}

/// Converts values to a type that differs only in intervals and in the metadata of fields.
fn convert(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == to {
        return Ok(ArrayRef::clone(array));
    }
    let nulls = array.nulls().cloned();
    Ok(match to {
        DataType::Interval(_) => Arc::new(decode_intervals(array.as_fixed_size_binary())),
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns().iter().zip(fields);
            let columns = columns.map(|(column, field)| convert(column, field.data_type()));
            let columns = columns.collect::<Result<_, _>>()?;
            Arc::new(StructArray::try_new_with_length(
                fields.clone(),
                columns,
                nulls,
                array.len(),
            )?)
        }
        DataType::List(item) => convert_list::<i32>(array, item)?,
        DataType::LargeList(item) => convert_list::<i64>(array, item)?,
        DataType::FixedSizeList(item, length) => {
            let values = convert(array.as_fixed_size_list().values(), item.data_type())?;
            Arc::new(FixedSizeListArray::try_new(
                FieldRef::clone(item),
                *length,
                values,
                nulls,
            )?)
        }
        DataType::Map(field, sorted) => {
            let map = array.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            let entries = convert(&entries, field.data_type())?.as_struct().clone();
            let map = MapArray::try_new(
                FieldRef::clone(field),
                map.offsets().clone(),
                entries,
                nulls,
                *sorted,
            );
            Arc::new(map?)
        }
        other => {
            let found = array.data_type();
            return Err(ArrowError::SchemaError(format!(
                "unexpected column type: expected {other}, found {found}"
            )));
        }
    })
}

fn convert_list<O: OffsetSizeTrait>(array: &ArrayRef, item: &FieldRef) -> Result<ArrayRef, ArrowError> {
    let list = array.as_list::<O>();
    let values = convert(list.values(), item.data_type())?;
    let (item, nulls) = (FieldRef::clone(item), list.nulls().cloned());
    Ok(Arc::new(GenericListArray::try_new(
        item,
        list.offsets().clone(),
        values,
        nulls,
    )?))
}

fn decode_intervals(bytes: &FixedSizeBinaryArray) -> IntervalMonthDayNanoArray {
    let interval = |bytes: &[u8]| {
        let (parts, _) = bytes.as_chunks::<4>();
        let [months, days, milliseconds] = parts else {
            return None;
        };
        // The format has unsigned numbers. Some writers store signed months and days, but not milliseconds.
        let nanoseconds = i64::from(u32::from_le_bytes(*milliseconds)) * 1_000_000;
        let (months, days) = (i32::from_le_bytes(*months), i32::from_le_bytes(*days));
        Some(IntervalMonthDayNano::new(months, days, nanoseconds))
    };
    bytes.iter().map(|bytes| interval(bytes?)).collect()
}
