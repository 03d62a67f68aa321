//! Values of a column as the samples of a batch.

use std::{collections::HashMap, sync::Arc};

use arrow_array::{Array as _, ArrayRef, cast::AsArray as _};
use pushdown::wire::{RowError, TensorColumn};

use super::{TableBatch, TableMonitor};
use crate::{
    batch::{Batch, Row},
    error::{Error, Result},
};

/// The code of the error of a value that `each` could not compute, and of one that is null in the object.
const FAILED: &str = "RowFailed";

impl TableMonitor {
    /// The values of a batch that `each` computed in a column, as the samples of a batch of the same number. The index of a sample is
    /// the number of its row in the data set: the rows of all objects in their order. The error of a row names it.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) for a column that no `each` of the pipeline computes.
    pub fn samples(&self, batch: &TableBatch, column: &str) -> Result<Batch> {
        let rows = &self.rows;
        let split = rows.splits.first();
        let kind = split.and_then(|split| split.pipeline.column_kind(column));
        let values = kind.and_then(TensorColumn::for_kind);
        let array = batch.rows.column_by_name(column);
        let errors = batch.rows.column_by_name(&format!("{column}_error"));
        let (Some(values), Some(array), Some(errors)) = (values, array, errors) else {
            return Err(Error::config(format!(
                "no `each` of the pipeline computes the column `{column}`: expected one of {}",
                names(batch)
            )));
        };
        let stage = rows.splits[rows.main_split()].stage.steps;
        let mut keys: HashMap<usize, Arc<str>> = HashMap::new();
        let limits = &rows.source.limits;
        let sample = |(row, (id, position)): (usize, (&super::RowId, &u64))| {
            let value = match values.value(array, row, limits)? {
                Some(value) => Ok(value),
                None => Err(row_error(errors, row, id.row)),
            };
            let key = keys
                .entry(id.object)
                .or_insert_with(|| rows.source.objects.key(id.object).into());
            Ok::<_, Error>(Row {
                position: *position,
                index: rows.index(*id),
                key: Arc::clone(key),
                member: None,
                is_padding: false,
                stage: u8::try_from(stage).unwrap_or(u8::MAX),
                value,
                columns: Vec::new(),
            })
        };
        let ids = batch.ids.iter().zip(&batch.positions);
        let samples = ids.enumerate().map(sample).collect::<Result<Vec<_>>>()?;
        Ok(Batch::new(batch.number, samples))
    }
}

/// The error of a value that is null.
fn row_error(errors: &ArrayRef, row: usize, number: u64) -> RowError {
    let errors = errors
        .as_string_opt::<i32>()
        .filter(|errors| errors.is_valid(row));
    let message = errors.map_or("the value is null", |errors| errors.value(row));
    RowError::new(FAILED, format!("row {number}: {message}"))
}

fn names(batch: &TableBatch) -> String {
    let schema = batch.rows.schema();
    let names = schema.fields().iter().map(|field| format!("`{}`", field.name()));
    names.collect::<Vec<_>>().join(", ")
}
