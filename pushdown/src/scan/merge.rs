//! Merges the tables of several objects into one.

mod types;

use std::{collections::HashMap, iter, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch, StringArray, new_null_array};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use serde::{Deserialize, Serialize};

use pushdown_core::table::conversion;

use self::types::{convert_leaf, merge_fields, merge_types};
use crate::{
    Error, Result,
    limits::{BATCH_BYTES, BATCH_ROWS},
};

/// Name of the column with the key of the object that a row comes from.
const KEY_COLUMN: &str = "key";
/// Size of the offset of a value of variable length.
const OFFSET_BYTES: u64 = 8;
/// Approximate bytes of a converted value that takes new memory of any size, such as one of a dictionary.
const CONVERTED_BYTES: u64 = BATCH_BYTES / BATCH_ROWS as u64;

/// How to merge tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MergeRule {
    /// Whether the first column is `key`, with the key of the object that a row comes from.
    pub key: bool,
    /// Which schemas can be merged.
    pub schema: SchemaRule,
}

/// Which schemas can be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SchemaRule {
    /// The same columns, in the order of the first table.
    #[default]
    Same,
    /// A column that a table lacks is null.
    Union,
}

/// Merges the schemas of tables, added one after the other.
///
/// Columns of one name are merged if there is a type that holds the values of both without loss: integers, floats, decimals, times and
/// texts of several widths, dictionaries and their values, columns of nulls, and structs and lists of such columns.
#[derive(Debug)]
pub struct SchemaMerger {
    rule: MergeRule,
    max_columns: usize,
    columns: Vec<MergedColumn>,
    /// Index into `columns` by name.
    indices: HashMap<String, usize>,
    /// Key of the first object.
    first_key: Option<Arc<str>>,
    /// What to do about columns that an object lacks.
    advice: &'static str,
}

#[derive(Debug)]
struct MergedColumn {
    field: FieldRef,
    /// Key of the object from which the column has its type.
    key: Arc<str>,
}

/// Maps the record batches of one object to those of the merged table.
#[derive(Debug)]
pub struct BatchMapping {
    schema: SchemaRef,
    key: Option<Arc<str>>,
    /// The column of the object for each merged column except `key`; `None` for one that the object lacks.
    sources: Vec<Option<usize>>,
    /// Approximate bytes that the mapping adds to each row.
    added_bytes_per_row: u64,
}

impl SchemaMerger {
    /// An empty schema. The merged table may have at most `max_columns` columns.
    pub fn new(rule: MergeRule, max_columns: usize) -> Self {
        Self {
            rule,
            max_columns,
            columns: Vec::new(),
            indices: HashMap::new(),
            first_key: None,
            advice: "select columns that all objects have, or use `schema=union`",
        }
    }

    /// An empty schema of rows as samples: all objects have the same columns.
    pub fn of_samples(max_columns: usize) -> Self {
        Self {
            advice: "select columns that all objects have",
            ..Self::new(MergeRule::default(), max_columns)
        }
    }

    /// Adds the table of the object `key`.
    ///
    /// # Errors
    /// [`Unsuitable`](crate::ErrorKind::Unsuitable) with the column that differs or occurs twice;
    /// [`TooLarge`](crate::ErrorKind::TooLarge) past the maximum number of columns.
    pub fn add(&mut self, key: &Arc<str>, schema: &Schema) -> Result<()> {
        let is_first = self.first_key.is_none();
        let first_key = Arc::clone(self.first_key.get_or_insert_with(|| Arc::clone(key)));
        let same_schema = self.rule.schema == SchemaRule::Same;
        let mut found = vec![false; self.columns.len()];
        for field in schema.fields() {
            let name = field.name();
            if self.rule.key && name == KEY_COLUMN {
                return Err(Error::unsuitable(format!(
                    "`{key}` already has a column `{KEY_COLUMN}`: rename it in the query, or leave out the key column"
                )));
            }
            match self.indices.get(name).copied() {
                Some(index) => {
                    if std::mem::replace(&mut found[index], true) {
                        return Err(Error::unsuitable(format!(
                            "`{key}` has two columns `{name}`: rename one in the query"
                        )));
                    }
                    self.merge_column(index, key, field)?;
                }
                None if is_first || !same_schema => {
                    if self.columns.len() == self.max_columns {
                        return Err(Error::too_large(format!(
                            "the merged table has more than {} columns, from the object `{key}` on",
                            self.max_columns
                        )));
                    }
                    self.indices.insert(name.clone(), self.columns.len());
                    found.push(true);
                    // Earlier tables lack the column.
                    let nullable = field.is_nullable() || !is_first;
                    self.columns.push(MergedColumn {
                        field: Arc::new(field.as_ref().clone().with_nullable(nullable)),
                        key: Arc::clone(key),
                    });
                }
                None => {
                    let difference = format!("found an extra column `{name}`");
                    return Err(self.different_columns(key, &first_key, &difference));
                }
            }
        }
        let lacking = self.columns.iter().zip(&found).find(|(_, found)| !**found);
        if let Some((column, _)) = lacking.filter(|_| same_schema) {
            let difference = format!("found no column `{}`", column.field.name());
            return Err(self.different_columns(key, &first_key, &difference));
        }
        let lacking = self.columns.iter_mut().zip(&found).filter(|(_, found)| !**found);
        for (MergedColumn { field, .. }, _) in lacking {
            *field = Arc::new(field.as_ref().clone().with_nullable(true));
        }
        Ok(())
    }

    fn different_columns(&self, key: &str, first_key: &str, difference: &str) -> Error {
        Error::unsuitable(format!(
            "the columns of `{key}` differ from those of `{first_key}`: {difference}; {}",
            self.advice
        ))
    }

    fn merge_column(&mut self, index: usize, key: &Arc<str>, found: &Field) -> Result<()> {
        let column = &mut self.columns[index];
        let Some(merged) = merge_fields(&column.field, found) else {
            return Err(Error::unsuitable(format!(
                "the columns of `{key}` differ from those of `{}`: expected column `{}` of type {}, found {}; leave it out, \
                 or cast it in the query",
                column.key,
                found.name(),
                column.field.data_type(),
                found.data_type()
            )));
        };
        if merged.data_type() != column.field.data_type() {
            column.key = Arc::clone(key);
        }
        if merged != *column.field {
            column.field = Arc::new(merged);
        }
        Ok(())
    }

    /// The schema of the merged table.
    pub fn schema(&self) -> SchemaRef {
        let key = self
            .rule
            .key
            .then(|| Arc::new(Field::new(KEY_COLUMN, DataType::Utf8, false)));
        let fields: Vec<FieldRef> = key
            .into_iter()
            .chain(self.columns.iter().map(|column| FieldRef::clone(&column.field)))
            .collect();
        Arc::new(Schema::new(fields))
    }

    /// The mapping from the columns of the object `key` to those of the merged table, `merged_schema`.
    ///
    /// # Errors
    /// [`Unsuitable`](crate::ErrorKind::Unsuitable) if `schema` is not the one that was [added](Self::add).
    pub fn mapping(
        &self,
        key: &Arc<str>,
        schema: &Schema,
        merged_schema: &SchemaRef,
    ) -> Result<BatchMapping> {
        let mut sources = vec![None; self.columns.len()];
        let mut added_bytes_per_row = 0_u64;
        for (position, field) in schema.fields().iter().enumerate() {
            let index = self.indices.get(field.name()).copied();
            let index = index.ok_or_else(|| schema_changed(key))?;
            let column = &self.columns[index].field;
            let nulls_fit = column.is_nullable() || !field.is_nullable();
            let merged = merge_types(column.data_type(), field.data_type());
            let is_known =
                field.data_type() == column.data_type() || merged.as_ref() == Some(column.data_type());
            if !is_known || !nulls_fit || sources[index].replace(position).is_some() {
                return Err(schema_changed(key));
            }
            let converted = converted_bytes(field.data_type(), column.data_type());
            added_bytes_per_row = added_bytes_per_row.saturating_add(converted);
        }
        for (MergedColumn { field, .. }, source) in self.columns.iter().zip(&sources) {
            if source.is_none() {
                if !field.is_nullable() {
                    return Err(schema_changed(key));
                }
                added_bytes_per_row = added_bytes_per_row.saturating_add(null_bytes(field.data_type()));
            }
        }
        if self.rule.key {
            added_bytes_per_row = added_bytes_per_row.saturating_add(key.len() as u64 + OFFSET_BYTES);
        }
        Ok(BatchMapping {
            schema: Arc::clone(merged_schema),
            key: self.rule.key.then(|| Arc::clone(key)),
            sources,
            added_bytes_per_row,
        })
    }
}

impl BatchMapping {
    /// Approximate bytes that the mapping adds to each row: the key, nulls for columns that the object lacks, and converted values.
    pub const fn added_bytes_per_row(&self) -> u64 {
        self.added_bytes_per_row
    }

    /// Maps rows of the object to rows of the merged table.
    ///
    /// # Errors
    /// [`Unsuitable`](crate::ErrorKind::Unsuitable) for a value that the type of the merged column does not hold;
    /// [`Internal`](crate::ErrorKind::Internal) for rows of another object.
    pub fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let key = self.key.as_ref().map(|key| {
            let keys = iter::repeat_n(key.as_ref(), rows);
            Arc::new(StringArray::from_iter_values(keys)) as ArrayRef
        });
        let fields = self.schema.fields().iter().skip(usize::from(key.is_some()));
        let columns = self
            .sources
            .iter()
            .zip(fields)
            .map(|(source, field)| match source {
                Some(source) => conversion::convert(batch.column(*source), field, &convert_leaf)
                    .map_err(|error| not_convertible(field, &error)),
                None => Ok(new_null_array(field.data_type(), rows)),
            });
        let columns = key.into_iter().map(Ok).chain(columns);
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            columns.collect::<Result<_>>()?,
            &options,
        )
        .map_err(|error| Error::internal(format!("cannot map rows to the merged table: {error}")))
    }
}

/// Approximate bytes of a null.
fn null_bytes(data_type: &DataType) -> u64 {
    let struct_bytes = |fields: &[FieldRef]| {
        let children = fields.iter().map(|field| null_bytes(field.data_type()));
        children.fold(1, u64::saturating_add)
    };
    match data_type {
        DataType::Struct(fields) => struct_bytes(fields),
        DataType::FixedSizeList(field, length) => null_bytes(field.data_type())
            .saturating_mul(u64::try_from(*length).unwrap_or(0))
            .saturating_add(1),
        DataType::FixedSizeBinary(length) => u64::try_from(*length).unwrap_or(0).saturating_add(1),
        DataType::Dictionary(keys, _) => null_bytes(keys),
        other => {
            other
                .primitive_width()
                .map_or(2 * OFFSET_BYTES, |bytes| bytes as u64)
                + 1
        }
    }
}

/// Approximate bytes of a value that is converted from one type to another.
fn converted_bytes(from: &DataType, to: &DataType) -> u64 {
    match (from, to) {
        _ if from == to => 0,
        (DataType::Null, _) => null_bytes(to),
        (
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary,
            DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary,
        ) => OFFSET_BYTES,
        (DataType::FixedSizeBinary(length), DataType::Binary | DataType::LargeBinary) => {
            u64::try_from(*length).unwrap_or(0) + OFFSET_BYTES
        }
        _ => to
            .primitive_width()
            .map_or(CONVERTED_BYTES, |bytes| bytes as u64 + 1),
    }
}

fn not_convertible(field: &Field, error: &ArrowError) -> Error {
    Error::unsuitable(format!(
        "a value of the column `{}` does not fit {}, the type for all objects: {error}",
        field.name(),
        field.data_type()
    ))
}

fn schema_changed(key: &str) -> Error {
    Error::unsuitable(format!(
        "the columns of `{key}` changed while the tables were merged: was the object replaced?"
    ))
}

#[cfg(test)]
mod tests;
