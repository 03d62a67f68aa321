//! The form in which rows leave a query: strings and bytes as every Arrow client reads them.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};

use super::fault;
use crate::Result;

/// The schema with plain strings and bytes in place of views, which many clients cannot read.
pub(super) fn schema(schema: &SchemaRef) -> SchemaRef {
    let fields: Fields = schema.fields().iter().map(field).collect();
    if fields == *schema.fields() {
        return SchemaRef::clone(schema);
    }
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// The same rows in such a schema.
pub(super) fn batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| {
        if column.data_type() == field.data_type() {
            return Ok(ArrayRef::clone(column));
        }
        cast(column, field.data_type())
    });
    let columns = columns.collect::<Result<Vec<_>, _>>();
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    columns
        .and_then(|columns| RecordBatch::try_new_with_options(SchemaRef::clone(schema), columns, &rows))
        .map_err(|error| fault::query(error.into()))
}

fn field(field: &FieldRef) -> FieldRef {
    let plain = data_type(field.data_type());
    if plain == *field.data_type() {
        return FieldRef::clone(field);
    }
    Arc::new(Field::clone(field).with_data_type(plain))
}

fn data_type(found: &DataType) -> DataType {
    match found {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(item) | DataType::ListView(item) => DataType::List(field(item)),
        DataType::LargeList(item) | DataType::LargeListView(item) => DataType::LargeList(field(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(field(item), *length),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        DataType::Map(entries, sorted) => DataType::Map(field(entries), *sorted),
        DataType::Dictionary(key, value) => DataType::Dictionary(key.clone(), Box::new(data_type(value))),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{StringArray, StringViewArray, StructArray};

    use super::*;

    #[test]
    fn views_become_plain_however_deep() {
        let views: ArrayRef = Arc::new(StringViewArray::from(vec![
            Some("a string that is not short"),
            None,
        ]));
        let inner = Arc::new(Field::new("s", DataType::Utf8View, true));
        let column: ArrayRef = Arc::new(StructArray::new(vec![inner].into(), vec![views], None));
        let found = RecordBatch::try_from_iter([("c", column)]).unwrap();
        let plain = batch(&found, &schema(&found.schema())).unwrap();
        let expected = StringArray::from(vec![Some("a string that is not short"), None]);
        let column = plain.column(0).as_any().downcast_ref::<StructArray>().unwrap();
        assert_eq!(column.column(0).as_ref(), &expected as &dyn arrow_array::Array);
    }
}
