//! Tables: record batches of one schema, in row order.

pub mod conversion;

use arrow_array::{Array as _, ArrayRef, RecordBatch, cast::AsArray as _};
use arrow_schema::{DataType, SchemaRef};

use crate::{Error, Result};

/// Rows of one schema. Tables are equal regardless of how their rows are divided into record batches.
#[derive(Debug, Clone)]
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// A table of `batches` with the columns of `schema`.
    ///
    /// # Errors
    /// [`InvalidWire`](crate::ErrorKind::InvalidWire) if a record batch has another schema.
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Result<Self> {
        let mut table = TableBuilder::new(schema, u64::MAX);
        for batch in batches {
            table.push(batch)?;
        }
        Ok(table.build())
    }

    /// The schema.
    pub const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The record batches.
    pub fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// Returns the record batches.
    pub fn into_batches(self) -> Vec<RecordBatch> {
        self.batches
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.batches.iter().map(|batch| batch.num_rows() as u64).sum()
    }

    /// Size of the columns on the wire in bytes, without framing.
    pub fn bytes(&self) -> u64 {
        self.batches.iter().map(batch_bytes).sum()
    }
}

/// Builds a table of limited size.
#[derive(Debug)]
pub struct TableBuilder {
    table: Table,
    bytes: u64,
    max_bytes: u64,
}

impl TableBuilder {
    /// An empty table. Its columns may have at most `max_bytes`.
    pub const fn new(schema: SchemaRef, max_bytes: u64) -> Self {
        let batches = Vec::new();
        Self {
            table: Table { schema, batches },
            bytes: 0,
            max_bytes,
        }
    }

    /// Appends rows.
    ///
    /// # Errors
    /// [`InvalidWire`](crate::ErrorKind::InvalidWire) for other columns;
    /// [`TooLarge`](crate::ErrorKind::TooLarge) past the limit.
    pub fn push(&mut self, batch: RecordBatch) -> Result<()> {
        let schema = &self.table.schema;
        if batch.schema_ref().fields() != schema.fields() {
            return Err(Error::wire(format!(
                "invalid record batch: expected columns {schema}, found {}",
                batch.schema_ref()
            )));
        }
        self.bytes = self.bytes.saturating_add(batch_bytes(&batch));
        if self.bytes > self.max_bytes {
            return Err(Error::too_large(format!(
                "the table is too large: expected at most {} bytes, found {}",
                self.max_bytes, self.bytes
            )));
        }
        self.table.batches.push(batch);
        Ok(())
    }

    /// Size of the columns so far, in bytes.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The table.
    pub fn build(self) -> Table {
        self.table
    }
}

/// Size of a record batch on the wire in bytes. Of shared buffers, only the part of this record batch counts.
pub fn batch_bytes(batch: &RecordBatch) -> u64 {
    batch.columns().iter().map(array_bytes).sum()
}

/// Size of an array in bytes, counted as in [`batch_bytes`].
pub fn array_bytes(array: &ArrayRef) -> u64 {
    // For views, both the views and their bytes count.
    let viewed = match array.data_type() {
        DataType::Utf8View => array.as_string_view().total_bytes_len(),
        DataType::BinaryView => array.as_binary_view().total_bytes_len(),
        _ => 0,
    };
    let data = array.to_data();
    let bytes = data
        .get_slice_memory_size()
        .unwrap_or_else(|_| data.get_buffer_memory_size());
    (bytes + viewed) as u64
}

/// Compares rows, regardless of record batches.
impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        let whole = |table: &Self| arrow_select::concat::concat_batches(&table.schema, &table.batches);
        self.schema == other.schema
            && self.rows() == other.rows()
            && matches!((whole(self), whole(other)), (Ok(one), Ok(another)) if one == another)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int32Array, StringArray};
    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    fn batch(numbers: Vec<i32>) -> RecordBatch {
        RecordBatch::try_from_iter([("n", Arc::new(Int32Array::from(numbers)) as _)]).unwrap()
    }

    #[test]
    fn equal_rows_in_other_batches_are_equal_tables() {
        let schema = batch(vec![]).schema();
        let one = Table::new(Arc::clone(&schema), vec![batch(vec![1, 2, 3])]).unwrap();
        let cut = vec![batch(vec![1]), batch(vec![]), batch(vec![2, 3])];
        let other = Table::new(Arc::clone(&schema), cut).unwrap();
        assert_eq!(one, other);
        assert_eq!((other.rows(), other.bytes()), (3, 12));
        assert_ne!(one, Table::new(schema, vec![batch(vec![1, 2, 4])]).unwrap());
    }

    #[test]
    fn batches_have_the_schema() {
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
        assert!(Table::new(schema, vec![batch(vec![1])]).is_err());
    }

    #[test]
    fn only_the_rows_of_a_slice_count() {
        let words = StringArray::from_iter_values((0..1000).map(|word| format!("word {word}")));
        let batch = RecordBatch::try_from_iter([("word", Arc::new(words) as _)]).unwrap();
        let table = Table::new(batch.schema(), vec![batch.slice(0, 2)]).unwrap();
        assert!(table.bytes() < 100, "{}", table.bytes());
    }
}
