//! `each`: runs a pipeline over the values of a column.

mod lookup;
mod transform;

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};

use self::transform::{BytesColumn, EachTransform, PendingOutput};
use crate::{engine::row_numbers, fault};
use pushdown_core::{
    Error, ErrorKind, Family, Result, Table, TableKind,
    language::{Args, Param, Value, excerpt},
    limits::{BATCH_ROWS, EACH_BYTES},
    step::{InnerPipeline, Operator, RowTransform, RowwiseStep, Scope, rowwise::transform_table},
};
use pushdown_wire::TensorColumn;

/// Rows of an output batch if the values have no fixed shape.
const VARIABLE_ROWS: usize = 64;

/// `each`. If a value fails, the row has a null value and the error text in the next column.
#[derive(Debug, Clone)]
pub struct Each {
    column: String,
    pipeline: Arc<dyn InnerPipeline>,
}

impl PartialEq for Each {
    fn eq(&self, other: &Self) -> bool {
        self.column == other.column && *self.pipeline == *other.pipeline
    }
}

impl Operator for Each {
    type Input = Table;
    type Output = Table;

    const NAME: &'static str = "each";
    const SUMMARY: &'static str =
        "runs a pipeline over the values of a column of bytes: each(column: pipeline)";
    const FAMILIES: &'static [Family] = &[Family::Table];
    const PARAMS: &'static [Param] = &[
        Param::positional(
            "column",
            "name",
            "a column of binary values, or of structs with such values as `bytes`",
        ),
        Param::positional(
            "pipeline",
            "steps",
            "written after the column and a colon, or in quotes; its values replace the column",
        ),
    ];

    fn parse(args: &Args<'_>) -> Result<Self> {
        let (column, pipeline) = (args.required("column")?, args.pipeline("pipeline")?);
        if TensorColumn::for_kind(pipeline.output()).is_none() {
            let message = "invalid pipeline of `each`: expected an image, a tensor or bytes as output, found a table or codes \
                           with a scale";
            return Err(args.fault(message));
        }
        Ok(Self { column, pipeline })
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("column", Value::Text(self.column.clone())),
            ("pipeline", Value::Text(self.pipeline.canonical())),
        ]
    }

    fn output(&self, _input: &TableKind) -> Result<TableKind, String> {
        Ok(TableKind::default())
    }

    fn scratch_bytes(&self, _input: &TableKind) -> Option<u64> {
        None
    }

    fn inner_pipeline(&self) -> Option<&dyn InnerPipeline> {
        Some(&*self.pipeline)
    }

    fn rowwise(&self) -> Option<&dyn RowwiseStep> {
        Some(self)
    }

    fn is_random(&self) -> bool {
        self.pipeline.is_random()
    }

    fn apply(&self, input: Table, scope: &Scope<'_>) -> Result<Table> {
        transform_table(self, &input, scope)
    }
}

impl RowwiseStep for Each {
    fn keeps_all_rows(&self) -> bool {
        true
    }

    /// An image that is being decoded is not counted.
    fn computed_bytes(&self) -> u64 {
        EACH_BYTES as u64
    }

    fn start(&self, schema: &SchemaRef, scope: &Scope<'_>) -> Result<Box<dyn RowTransform>> {
        let names = || schema.fields().iter().map(|field| field.name().as_str());
        let Ok(column) = schema.index_of(&self.column) else {
            return Err(fault::unknown_column(&self.column, names()));
        };
        let bytes = BytesColumn::for_field(schema.field(column))?;
        let has_row_numbers = |field: &FieldRef| field.metadata().contains_key(row_numbers::METADATA_KEY);
        let row_numbers = schema.fields().iter().position(has_row_numbers);
        if row_numbers.is_none() && self.is_random() {
            return Err(Error::new(
                ErrorKind::InvalidPipeline,
                "random steps inside `each` require row numbers: pass `row_number=` to the step that reads the object, and \
                 keep that column",
            ));
        }
        let tensors = TensorColumn::for_kind(self.pipeline.output())
            .ok_or_else(|| Error::internal("the pipeline of `each` has no output kind"))?;
        let error_column = format!("{}_error", self.column);
        if names().any(|name| name == error_column) {
            return Err(Error::unsuitable(format!(
                "the table has a column `{}` already, and `each` requires that name for its errors: rename the column",
                excerpt(&error_column, 60)
            )));
        }
        let mut fields: Vec<_> = schema.fields().to_vec();
        fields[column] = Arc::new(tensors.field(&self.column)?);
        fields.insert(
            column + 1,
            Arc::new(Field::new(error_column, DataType::Utf8, true)),
        );
        let max_rows = tensors.value_bytes().map(|bytes| EACH_BYTES / bytes.max(1));
        Ok(Box::new(EachTransform {
            schema: Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())),
            pipeline: Arc::clone(&self.pipeline),
            column,
            bytes,
            row_numbers,
            tensors,
            max_rows: max_rows.unwrap_or(VARIABLE_ROWS).clamp(1, BATCH_ROWS),
            sample_id: scope.sample_id.to_vec(),
            seed: scope.seed,
            epoch: scope.epoch,
            limits: *scope.limits,
            cells: scope.cells.and_then(|cells| cells.values_of(&*self.pipeline)),
            lookup: None,
            pending: PendingOutput::default(),
        }))
    }
}
