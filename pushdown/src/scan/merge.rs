//! Merges the tables of several objects into one.

use std::{collections::HashMap, iter, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch, StringArray, new_null_array};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Name of the column with the key of the object that a row comes from.
const KEY_COLUMN: &str = "key";
/// Size of the offset of a value of variable length.
const OFFSET_BYTES: u64 = 8;

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
    /// The same columns in the same order.
    #[default]
    Same,
    /// Columns of the same name have the same type. A column that a table lacks is null.
    Union,
}

/// Merges the schemas of tables, added one after the other.
#[derive(Debug)]
pub struct SchemaMerger {
    rule: MergeRule,
    max_columns: usize,
    columns: Vec<FieldRef>,
    /// Index into `columns` by name.
    indices: HashMap<String, usize>,
    /// Key of the first object.
    first_key: Option<Arc<str>>,
}

/// Maps the record batches of one object to those of the merged table.
#[derive(Debug)]
pub struct BatchMapping {
    schema: SchemaRef,
    key: Option<Arc<str>>,
    /// The column of the object for each merged column except `key`; `None` for one that the object lacks.
    sources: Vec<Option<usize>>,
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
        if !is_first && same_schema && schema.fields().len() != self.columns.len() {
            let difference = format!(
                "expected {} columns, found {}",
                self.columns.len(),
                schema.fields().len()
            );
            return Err(self.mismatch(key, &first_key, &difference));
        }
        let mut found = vec![false; self.columns.len()];
        for (position, field) in schema.fields().iter().enumerate() {
            let name = field.name();
            if self.rule.key && name == KEY_COLUMN {
                return Err(Error::unsuitable(format!(
                    "`{key}` already has a column `{KEY_COLUMN}`: rename it in the query, or leave out the key column"
                )));
            }
            match self.indices.get(name).copied() {
                Some(index) if same_schema && index != position => {
                    let difference =
                        format!("expected column `{name}` at position {index}, found it at {position}");
                    return Err(self.mismatch(key, &first_key, &difference));
                }
                Some(index) => {
                    if std::mem::replace(&mut found[index], true) {
                        return Err(Error::unsuitable(format!(
                            "`{key}` has two columns `{name}`: rename one in the query"
                        )));
                    }
                    self.merge_column(index, field)
                        .map_err(|difference| self.mismatch(key, &first_key, &difference))?;
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
                    self.columns
                        .push(Arc::new(field.as_ref().clone().with_nullable(nullable)));
                }
                None => {
                    let difference = format!("found an extra column `{name}`");
                    return Err(self.mismatch(key, &first_key, &difference));
                }
            }
        }
        for (column, _) in self.columns.iter_mut().zip(&found).filter(|(_, found)| !**found) {
            *column = Arc::new(column.as_ref().clone().with_nullable(true));
        }
        Ok(())
    }

    fn merge_column(&mut self, index: usize, field: &Field) -> Result<(), String> {
        let column = &mut self.columns[index];
        if column.data_type() != field.data_type() {
            return Err(format!(
                "expected column `{}` of type {}, found {}",
                field.name(),
                column.data_type(),
                field.data_type()
            ));
        }
        if field.is_nullable() && !column.is_nullable() {
            *column = Arc::new(column.as_ref().clone().with_nullable(true));
        }
        Ok(())
    }

    fn mismatch(&self, key: &str, first_key: &str, difference: &str) -> Error {
        let advice = match self.rule.schema {
            SchemaRule::Same => "select columns that all objects have, or use `schema=union`",
            SchemaRule::Union => "cast the column in the query",
        };
        Error::unsuitable(format!(
            "the columns of `{key}` differ from those of `{first_key}`: {difference}; {advice}"
        ))
    }

    /// The schema of the merged table.
    pub fn schema(&self) -> SchemaRef {
        let key = self
            .rule
            .key
            .then(|| Arc::new(Field::new(KEY_COLUMN, DataType::Utf8, false)));
        let fields: Vec<FieldRef> = key.into_iter().chain(self.columns.iter().cloned()).collect();
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
        for (position, field) in schema.fields().iter().enumerate() {
            let index = self.indices.get(field.name()).copied();
            let index = index.ok_or_else(|| schema_changed(key))?;
            let column = &self.columns[index];
            let nulls_fit = column.is_nullable() || !field.is_nullable();
            if field.data_type() != column.data_type()
                || !nulls_fit
                || sources[index].replace(position).is_some()
            {
                return Err(schema_changed(key));
            }
        }
        let mut columns = self.columns.iter().zip(&sources);
        if columns.any(|(column, source)| source.is_none() && !column.is_nullable()) {
            return Err(schema_changed(key));
        }
        Ok(BatchMapping {
            schema: Arc::clone(merged_schema),
            key: self.rule.key.then(|| Arc::clone(key)),
            sources,
        })
    }
}

impl BatchMapping {
    /// Approximate bytes that the mapping adds to each row: the key, and nulls for columns that the object lacks.
    pub fn added_bytes_per_row(&self) -> u64 {
        let key_bytes = self.key.as_ref().map_or(0, |key| key.len() as u64 + OFFSET_BYTES);
        let columns = self.schema.fields().iter().skip(usize::from(self.key.is_some()));
        let missing = self
            .sources
            .iter()
            .zip(columns)
            .filter(|(source, _)| source.is_none());
        let nulls = missing.map(|(_, field)| null_bytes(field.data_type()));
        nulls.fold(key_bytes, u64::saturating_add)
    }

    /// Maps rows of the object to rows of the merged table.
    ///
    /// # Errors
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
                Some(source) => Arc::clone(batch.column(*source)),
                None => new_null_array(field.data_type(), rows),
            });
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            key.into_iter().chain(columns).collect(),
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

fn schema_changed(key: &str) -> Error {
    Error::unsuitable(format!(
        "the columns of `{key}` changed while the tables were merged: was the object replaced?"
    ))
}

#[cfg(test)]
mod tests;
