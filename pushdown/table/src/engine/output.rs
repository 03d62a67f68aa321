//! Output types of a query: strings and bytes in types that every Arrow client supports.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};

use crate::fault;
use pushdown_core::Result;

/// Replaces view types of strings and bytes: many clients cannot read them.
pub(crate) fn without_views(schema: &SchemaRef) -> SchemaRef {
    let fields: Fields = schema.fields().iter().map(field_without_views).collect();
    if fields == *schema.fields() {
        return SchemaRef::clone(schema);
    }
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// Casts a record batch to such a schema.
pub(crate) fn cast_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let cast_column = |(column, field): (&ArrayRef, &FieldRef)| {
        if column.data_type() == field.data_type() {
            return Ok(ArrayRef::clone(column));
        }
        cast(column, field.data_type())
    };
    let pairs = batch.columns().iter().zip(schema.fields());
    let columns = pairs.map(cast_column).collect::<Result<Vec<_>, _>>();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    columns
        .and_then(|columns| RecordBatch::try_new_with_options(SchemaRef::clone(schema), columns, &options))
        .map_err(|error| fault::query(error.into()))
}

fn field_without_views(field: &FieldRef) -> FieldRef {
    let plain = type_without_views(field.data_type());
    if plain == *field.data_type() {
        return FieldRef::clone(field);
    }
    Arc::new(Field::clone(field).with_data_type(plain))
}

fn type_without_views(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(item) | DataType::ListView(item) => DataType::List(field_without_views(item)),
        DataType::LargeList(item) | DataType::LargeListView(item) => {
            DataType::LargeList(field_without_views(item))
        }
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(field_without_views(item), *length),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field_without_views).collect()),
        DataType::Map(entries, sorted) => DataType::Map(field_without_views(entries), *sorted),
        DataType::Dictionary(key, value) => {
            DataType::Dictionary(key.clone(), Box::new(type_without_views(value)))
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{StringArray, StringViewArray, StructArray};

    use super::*;

    #[test]
    fn nested_views_are_replaced() {
        let views: ArrayRef = Arc::new(StringViewArray::from(vec![
            Some("a string that is not short"),
            None,
        ]));
        let inner = Arc::new(Field::new("s", DataType::Utf8View, true));
        let column: ArrayRef = Arc::new(StructArray::new(vec![inner].into(), vec![views], None));
        let views = RecordBatch::try_from_iter([("c", column)]).unwrap();
        let plain = cast_batch(&views, &without_views(&views.schema())).unwrap();
        let expected = StringArray::from(vec![Some("a string that is not short"), None]);
        let column = plain.column(0).as_any().downcast_ref::<StructArray>().unwrap();
        assert_eq!(column.column(0).as_ref(), &expected as &dyn arrow_array::Array);
    }
}
