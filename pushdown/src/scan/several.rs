//! The rows of several objects as one table.

use std::{collections::HashMap, iter, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch, StringArray, new_null_array};
use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Name of the column that tells which object a row is of.
const KEY: &str = "key";
/// Bytes that say where a value of any length ends, at most.
const OFFSET: u64 = 8;

/// How several tables become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OneTable {
    /// Whether a column `key` stands in front, with the key of the object that a row is of.
    pub key: bool,
    /// What their columns have to have in common.
    pub schema: SchemaRule,
}

/// What tables have to have in common to become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SchemaRule {
    /// The same columns in the same order.
    #[default]
    Same,
    /// The same type for columns of the same name. What a table lacks is null.
    Union,
}

/// The columns of one table of several, learned from one after the other.
#[derive(Debug)]
pub struct Several {
    rule: OneTable,
    most: usize,
    columns: Vec<FieldRef>,
    places: HashMap<String, usize>,
    /// The key of the first object.
    first: Option<Arc<str>>,
}

/// How the record batches of one object become those of the one table.
#[derive(Debug)]
pub struct Fitting {
    schema: SchemaRef,
    key: Option<Arc<str>>,
    /// The object's column for each of the table's, the key's apart; `None` for one that it lacks.
    sources: Vec<Option<usize>>,
}

impl Several {
    /// No table yet; together they may have at most so many columns.
    pub fn new(rule: OneTable, max_columns: usize) -> Self {
        Self {
            rule,
            most: max_columns,
            columns: Vec::new(),
            places: HashMap::new(),
            first: None,
        }
    }

    /// One table more: that of the object `key`.
    ///
    /// # Errors
    /// [`Unsuitable`](crate::ErrorKind::Unsuitable) with the column in which it differs, or that stands there twice;
    /// [`TooLarge`](crate::ErrorKind::TooLarge) past the most columns.
    pub fn add(&mut self, key: &Arc<str>, schema: &Schema) -> Result<()> {
        let alone = self.first.is_none();
        let first = Arc::clone(self.first.get_or_insert_with(|| Arc::clone(key)));
        if !alone && self.rule.schema == SchemaRule::Same && schema.fields().len() != self.columns.len() {
            let found = format!(
                "{} columns instead of {}",
                schema.fields().len(),
                self.columns.len()
            );
            return Err(self.differs(key, &first, &found));
        }
        let mut seen = vec![false; self.columns.len()];
        for (index, field) in schema.fields().iter().enumerate() {
            if self.rule.key && field.name() == KEY {
                return Err(Error::unsuitable(format!(
                    "`{key}` has a column `{KEY}` of its own: name it otherwise in the query, or ask for no keys"
                )));
            }
            let place = self.places.get(field.name()).copied();
            match place {
                Some(place) if self.rule.schema == SchemaRule::Same && place != index => {
                    let found = format!(
                        "the column `{}` at place {index} instead of {place}",
                        field.name()
                    );
                    return Err(self.differs(key, &first, &found));
                }
                Some(place) => {
                    if std::mem::replace(&mut seen[place], true) {
                        return Err(Error::unsuitable(format!(
                            "`{key}` has two columns `{}`: name them apart in the query",
                            field.name()
                        )));
                    }
                    self.merge(place, field)
                        .map_err(|found| self.differs(key, &first, &found))?;
                }
                None if alone || self.rule.schema == SchemaRule::Union => {
                    if self.columns.len() == self.most {
                        return Err(Error::too_large(format!(
                            "the tables up to `{key}` have more than {} columns together",
                            self.most
                        )));
                    }
                    self.places.insert(field.name().clone(), self.columns.len());
                    seen.push(true);
                    // Those before have no value for it.
                    let nullable = field.is_nullable() || !alone;
                    self.columns
                        .push(Arc::new(field.as_ref().clone().with_nullable(nullable)));
                }
                None => {
                    let found = format!("a column `{}`", field.name());
                    return Err(self.differs(key, &first, &found));
                }
            }
        }
        for (column, _) in self.columns.iter_mut().zip(&seen).filter(|(_, seen)| !**seen) {
            *column = Arc::new(column.as_ref().clone().with_nullable(true));
        }
        Ok(())
    }

    fn merge(&mut self, place: usize, field: &Field) -> Result<(), String> {
        let column = &mut self.columns[place];
        if column.data_type() != field.data_type() {
            return Err(format!(
                "the column `{}` of {} instead of {}",
                field.name(),
                field.data_type(),
                column.data_type()
            ));
        }
        if field.is_nullable() && !column.is_nullable() {
            *column = Arc::new(column.as_ref().clone().with_nullable(true));
        }
        Ok(())
    }

    fn differs(&self, key: &str, first: &str, found: &str) -> Error {
        let advice = match self.rule.schema {
            SchemaRule::Same => "select columns that all have, or ask for the union of them (schema=union)",
            SchemaRule::Union => "cast it in the query",
        };
        Error::unsuitable(format!("`{key}` has {found}, unlike `{first}`: {advice}"))
    }

    /// The columns of the one table.
    pub fn schema(&self) -> SchemaRef {
        let key = self
            .rule
            .key
            .then(|| Arc::new(Field::new(KEY, DataType::Utf8, false)));
        let fields: Vec<FieldRef> = key.into_iter().chain(self.columns.iter().cloned()).collect();
        Arc::new(Schema::new(fields))
    }

    /// How the rows of the object `key` become rows of `schema`, which is that of all tables together.
    ///
    /// # Errors
    /// As [`add`](Self::add), for columns that are not those it was told of.
    pub fn fitting(&self, key: &Arc<str>, schema: &Schema, together: &SchemaRef) -> Result<Fitting> {
        let mut sources = vec![None; self.columns.len()];
        for (index, field) in schema.fields().iter().enumerate() {
            let place = self.places.get(field.name()).copied();
            let place = place.ok_or_else(|| replaced(key))?;
            let column = &self.columns[place];
            let null = column.is_nullable() || !field.is_nullable();
            if field.data_type() != column.data_type() || !null || sources[place].replace(index).is_some() {
                return Err(replaced(key));
            }
        }
        let mut columns = self.columns.iter().zip(&sources);
        if columns.any(|(column, source)| source.is_none() && !column.is_nullable()) {
            return Err(replaced(key));
        }
        Ok(Fitting {
            schema: Arc::clone(together),
            key: self.rule.key.then(|| Arc::clone(key)),
            sources,
        })
    }
}

impl Fitting {
    /// Bytes that a row of the object has more as one of the table's, about: its key, and nulls for what it lacks.
    pub fn added_bytes(&self) -> u64 {
        let key = self.key.as_ref().map_or(0, |key| key.len() as u64 + OFFSET);
        let columns = self.schema.fields().iter().skip(usize::from(self.key.is_some()));
        let lacking = self
            .sources
            .iter()
            .zip(columns)
            .filter(|(source, _)| source.is_none());
        let nulls = lacking.map(|(_, field)| null_bytes(field.data_type()));
        nulls.fold(key, u64::saturating_add)
    }

    /// The object's rows as rows of the one table.
    ///
    /// # Errors
    /// [`Internal`](crate::ErrorKind::Internal) for rows of another object.
    pub fn fit(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let key = self.key.as_ref().map(|key| {
            let keys = iter::repeat_n(key.as_ref(), rows);
            Arc::new(StringArray::from_iter_values(keys)) as ArrayRef
        });
        let columns = self.schema.fields().iter().skip(usize::from(key.is_some()));
        let columns = self
            .sources
            .iter()
            .zip(columns)
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
        .map_err(|error| Error::internal(format!("rows of one table of several: {error}")))
    }
}

/// Bytes of a null, about.
fn null_bytes(kind: &DataType) -> u64 {
    let of_fields = |fields: &[FieldRef]| {
        let children = fields.iter().map(|field| null_bytes(field.data_type()));
        children.fold(1, u64::saturating_add)
    };
    match kind {
        DataType::Struct(fields) => of_fields(fields),
        DataType::FixedSizeList(field, length) => null_bytes(field.data_type())
            .saturating_mul(u64::try_from(*length).unwrap_or(0))
            .saturating_add(1),
        DataType::FixedSizeBinary(length) => u64::try_from(*length).unwrap_or(0).saturating_add(1),
        DataType::Dictionary(keys, _) => null_bytes(keys),
        kind => kind.primitive_width().map_or(2 * OFFSET, |bytes| bytes as u64) + 1,
    }
}

fn replaced(key: &str) -> Error {
    Error::unsuitable(format!(
        "`{key}` has other columns than it had when the columns of all were looked at: was it replaced?"
    ))
}

#[cfg(test)]
mod tests;
