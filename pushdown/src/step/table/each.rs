//! `each`: a pipeline over one column's values.

mod running;

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};

use self::running::{Made, Running, Values};
use super::{
    fault, row_numbers,
    rowwise::{self, Rows, Rowwise},
};
use crate::{
    Error, ErrorKind, Pipeline, Result, Table, TableKind,
    limits::{BATCH_ROWS, EACH_BYTES},
    pipeline::{Args, Param, Value, excerpt},
    step::{Operator, Scope},
    wire::TensorColumn,
};

/// Rows of a record batch whose values have no fixed shape.
const VARIABLE_ROWS: usize = 64;

/// `each`. A row whose value fails has null in its place, and the error in the column behind it.
#[derive(Debug, Clone, PartialEq)]
pub struct Each {
    column: String,
    pipeline: Pipeline,
}

impl Each {
    /// What runs over each value.
    pub const fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }
}

impl Operator for Each {
    type Input = Table;
    type Output = Table;

    const NAME: &'static str = "each";
    const SUMMARY: &'static str =
        "runs a pipeline over the values of a column of bytes: each(column: pipeline)";
    const PARAMS: &'static [Param] = &[
        Param::positional(
            "column",
            "name",
            "a column of binary values, or of structs with such values as `bytes`",
        ),
        Param::positional(
            "pipeline",
            "steps",
            "written behind the column and a colon, or in quotes; its values take the column's place",
        ),
    ];

    fn parse(args: &Args<'_>) -> Result<Self> {
        let (column, pipeline) = (args.required("column")?, args.pipeline("pipeline")?);
        let last = pipeline.kinds().last();
        if last.and_then(TensorColumn::for_kind).is_none() {
            let fault = "the pipeline of `each` gives a table or codes with a scale, expected an image, a tensor or bytes";
            return Err(args.fault(fault));
        }
        Ok(Self { column, pipeline })
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("column", Value::Text(self.column.clone())),
            ("pipeline", Value::Text(self.pipeline.to_string())),
        ]
    }

    fn output(&self, _input: &TableKind) -> Result<TableKind, String> {
        Ok(TableKind::default())
    }

    fn scratch_bytes(&self, _input: &TableKind) -> Option<u64> {
        None
    }

    fn is_random(&self) -> bool {
        self.pipeline.is_random(self.pipeline.len())
    }

    fn apply(&self, input: Table, scope: &Scope<'_>) -> Result<Table> {
        rowwise::run(self, &input, scope)
    }
}

impl Rowwise for Each {
    fn begin(&self, schema: &SchemaRef, scope: &Scope<'_>) -> Result<Box<dyn Rows>> {
        let names = || schema.fields().iter().map(|field| field.name().as_str());
        let Ok(column) = schema.index_of(&self.column) else {
            return Err(fault::unknown_column(&self.column, names()));
        };
        let values = Values::of(schema.field(column))?;
        let number = |field: &FieldRef| field.metadata().contains_key(row_numbers::METADATA);
        let numbers = schema.fields().iter().position(number);
        if numbers.is_none() && self.is_random() {
            return Err(Error::new(
                ErrorKind::InvalidPipeline,
                "random steps inside of `each` need the rows' places in the object: give `row_number=` to the step that reads \
                 it, and keep that column",
            ));
        }
        let kind = self.pipeline.kinds().last().and_then(TensorColumn::for_kind);
        let tensors = kind.ok_or_else(|| Error::internal("`each` gives values of no kind"))?;
        let error = format!("{}_error", self.column);
        if names().any(|name| name == error) {
            return Err(Error::unsuitable(format!(
                "the table has a column `{}` already, which `each` puts its errors into",
                excerpt(&error, 60)
            )));
        }
        let mut fields: Vec<_> = schema.fields().to_vec();
        fields[column] = Arc::new(tensors.field(&self.column)?);
        fields.insert(column + 1, Arc::new(Field::new(error, DataType::Utf8, true)));
        let rows = tensors.value_bytes().map(|bytes| EACH_BYTES / bytes.max(1));
        Ok(Box::new(Running {
            schema: Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())),
            pipeline: self.pipeline.clone(),
            column,
            values,
            numbers,
            tensors,
            most: rows.unwrap_or(VARIABLE_ROWS).clamp(1, BATCH_ROWS),
            sample_id: scope.sample_id.to_vec(),
            seed: scope.seed,
            epoch: scope.epoch,
            limits: *scope.limits,
            made: Made::default(),
        }))
    }
}
