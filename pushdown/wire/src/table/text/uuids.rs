//! Replaces UUIDs by their texts, at any depth.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray, cast::AsArray as _};
use arrow_schema::{
    ArrowError, DataType, Field, FieldRef, Fields, Schema, SchemaRef,
    extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY},
};

use pushdown_core::{table::conversion, uuid};

/// The schema with strings in place of UUIDs.
pub(super) fn without_uuids(schema: &SchemaRef) -> SchemaRef {
    let fields = fields_without_uuids(schema.fields());
    if fields == *schema.fields() {
        return SchemaRef::clone(schema);
    }
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Converts a record batch to such a schema.
pub(super) fn convert(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| conversion::convert(column, field, &to_texts));
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(
        SchemaRef::clone(schema),
        columns.collect::<Result<_, _>>()?,
        &options,
    )
}

fn to_texts(array: &ArrayRef, field: &Field) -> Result<ArrayRef, ArrowError> {
    let uuids = array
        .as_fixed_size_binary_opt()
        .filter(|_| *field.data_type() == DataType::Utf8);
    let uuids = uuids.ok_or_else(|| {
        ArrowError::CastError(format!("expected a column of UUIDs, found {}", array.data_type()))
    })?;
    let texts = uuids.iter().map(|value| value.map(uuid::to_text));
    Ok(Arc::new(texts.collect::<StringArray>()))
}

fn fields_without_uuids(fields: &Fields) -> Fields {
    fields.iter().map(field_without_uuids).collect()
}

fn field_without_uuids(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        _ if uuid::is_uuid(field) => {
            let mut metadata: HashMap<_, _> = field.metadata().clone();
            metadata.remove(EXTENSION_TYPE_NAME_KEY);
            metadata.remove(EXTENSION_TYPE_METADATA_KEY);
            let text = Field::new(field.name(), DataType::Utf8, field.is_nullable());
            return Arc::new(text.with_metadata(metadata));
        }
        DataType::Struct(fields) => DataType::Struct(fields_without_uuids(fields)),
        DataType::List(item) => DataType::List(field_without_uuids(item)),
        DataType::LargeList(item) => DataType::LargeList(field_without_uuids(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(field_without_uuids(item), *length),
        DataType::Map(entries, sorted) => DataType::Map(field_without_uuids(entries), *sorted),
        _ => return FieldRef::clone(field),
    };
    Arc::new(Field::clone(field).with_data_type(data_type))
}
