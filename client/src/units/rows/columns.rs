//! The columns of rows after all steps: those of each object, and those of the data set.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use pushdown::{BatchMapping, SchemaMerger};

use crate::{
    error::{Error, ErrorKind, Result},
    objects::Objects,
};

/// The columns of all objects. Columns of one name may have types that differ, if there is one that holds the values of all.
#[derive(Debug)]
pub(super) struct Columns {
    /// The columns of the data set.
    pub(super) schema: SchemaRef,
    /// The columns of objects, without repetition.
    distinct: Vec<ObjectColumns>,
    /// For each object, the index of its columns.
    of_object: Vec<usize>,
}

/// The columns that some objects have.
#[derive(Debug)]
struct ObjectColumns {
    schema: SchemaRef,
    mapping: BatchMapping,
}

impl Columns {
    /// Merges the columns of objects. `distinct` are the first object with some columns, and these columns; `of_object` has an index
    /// into it for each object.
    ///
    /// # Errors
    /// [`ErrorKind::Sample`] with the names of two objects and the column that differs.
    pub(super) fn merge(
        objects: &Objects,
        distinct: Vec<(usize, SchemaRef)>,
        of_object: Vec<usize>,
        max_columns: usize,
    ) -> Result<Self> {
        let mismatch = |error: pushdown::Error| Error::new(ErrorKind::Sample, error.to_string());
        let distinct: Vec<(Arc<str>, SchemaRef)> = distinct
            .into_iter()
            .map(|(object, schema)| (objects.key(object).into(), schema))
            .collect();
        let mut merger = SchemaMerger::of_samples(max_columns);
        for (key, schema) in &distinct {
            merger.add(key, schema).map_err(mismatch)?;
        }
        // Several objects with the same columns may have other values in their dictionaries.
        if let Some((key, schema)) = distinct.first().filter(|_| of_object.len() > distinct.len()) {
            merger.add(key, schema).map_err(mismatch)?;
        }
        let mut metadata = distinct
            .first()
            .map(|(_, schema)| schema.metadata().clone())
            .unwrap_or_default();
        metadata.retain(|name, value| {
            let mut others = distinct.iter().map(|(_, schema)| schema.metadata().get(name));
            others.all(|other| other == Some(value))
        });
        let merged = merger.schema();
        let schema = Arc::new(Schema::new_with_metadata(merged.fields().clone(), metadata));
        let distinct = distinct.into_iter().map(|(key, own)| {
            let mapping = merger.mapping(&key, &own, &schema).map_err(mismatch)?;
            Ok(ObjectColumns { schema: own, mapping })
        });
        Ok(Self {
            distinct: distinct.collect::<Result<_>>()?,
            schema,
            of_object,
        })
    }

    /// Whether these are the columns of an object.
    pub(super) fn are_of(&self, object: usize, schema: &Schema) -> bool {
        let own = self.of(object);
        own.is_some_and(|own| own.schema.fields() == schema.fields())
    }

    /// Converts rows of an object to those of the data set.
    ///
    /// # Errors
    /// For a value that does not fit the type for all objects.
    pub(super) fn convert(&self, object: usize, rows: &RecordBatch) -> pushdown::Result<RecordBatch> {
        let unknown = || pushdown::Error::internal("an object has no columns");
        self.of(object).ok_or_else(unknown)?.mapping.apply(rows)
    }

    fn of(&self, object: usize) -> Option<&ObjectColumns> {
        self.distinct.get(*self.of_object.get(object)?)
    }
}
