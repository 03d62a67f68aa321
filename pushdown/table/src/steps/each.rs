//! `each`: runs a pipeline over the values of a column.

mod cell;
mod input;
mod lookup;
mod transform;

use std::{collections::VecDeque, ops::Range, sync::Arc};

use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef};

use self::{
    cell::CellRunner,
    input::{InputColumn, error_column},
    transform::EachTransform,
};
use crate::engine::row_numbers;
use pushdown_core::{
    Error, ErrorKind, Family, Result, Table, TableKind,
    language::{Args, Param, Value},
    limits::{BATCH_ROWS, EACH_BYTES},
    step::{InnerPipeline, InnerSteps, Operator, RowTransform, RowwiseStep, Scope, rowwise::transform_table},
};
use pushdown_wire::TensorColumn;

/// Rows of an output batch if the values have no fixed shape.
const VARIABLE_ROWS: usize = 64;
/// Cells that are computed at a time if some of their steps run in micro-batches and all values have one size. Values of any size are
/// computed one by one, so that a record batch ends as soon as it is large enough.
const BATCHED_CELLS: usize = 16;

/// `each`. If a value fails, the row has a null value and the error text in the next column.
///
/// It may be a part of an `each` that was cut, so that a gateway runs the first steps of the pipeline and a host the rest.
#[derive(Debug, Clone)]
pub struct Each {
    column: String,
    /// The whole pipeline.
    pipeline: Arc<dyn InnerPipeline>,
    /// The steps of it that are run.
    steps: Range<usize>,
}

impl PartialEq for Each {
    fn eq(&self, other: &Self) -> bool {
        (&self.column, &self.steps) == (&other.column, &other.steps) && *self.pipeline == *other.pipeline
    }
}

impl Each {
    /// The columns of values at a stage of the pipeline. `None` if such values cannot be part of a table.
    fn values_at(&self, stage: usize) -> Option<TensorColumn> {
        self.pipeline.kind(stage).and_then(TensorColumn::for_kind)
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
        Param::named(
            "until",
            "whole number = all",
            "number of steps after which to stop: another `each` runs the rest of the pipeline",
        ),
        Param::named(
            "from",
            "whole number = 0",
            "number of steps that another `each` has run: this one runs the rest of the pipeline",
        ),
    ];

    fn parse(args: &Args<'_>) -> Result<Self> {
        let (column, pipeline) = (args.required("column")?, args.pipeline("pipeline")?);
        let count = pipeline.step_count();
        let stage = |name: &str| {
            let stage = args.optional::<u64>(name)?;
            Ok::<_, Error>(stage.map(|stage| usize::try_from(stage).unwrap_or(usize::MAX)))
        };
        let steps = stage("from")?.unwrap_or(0)..stage("until")?.unwrap_or(count);
        if steps.is_empty() || steps.end > count {
            return Err(args.fault(format!(
                "invalid steps of `each`: expected `from` before `until`, and at most {count} steps, found {} and {}",
                steps.start, steps.end
            )));
        }
        let each = Self {
            column,
            pipeline,
            steps,
        };
        // Stage 0 are the stored bytes.
        if each.values_at(each.steps.start).is_none() || each.values_at(each.steps.end).is_none() {
            let message = "invalid pipeline of `each`: expected an image, a tensor or bytes as output, found a table or codes \
                           with a scale";
            return Err(args.fault(message));
        }
        Ok(each)
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        let stage = |stage: usize| Value::Int(i64::try_from(stage).unwrap_or(i64::MAX));
        let mut arguments = vec![
            ("column", Value::Text(self.column.clone())),
            ("pipeline", Value::Text(self.pipeline.canonical())),
        ];
        if self.steps.end < self.pipeline.step_count() {
            arguments.push(("until", stage(self.steps.end)));
        }
        if self.steps.start > 0 {
            arguments.push(("from", stage(self.steps.start)));
        }
        arguments
    }

    fn output(&self, _input: &TableKind) -> Result<TableKind, String> {
        Ok(TableKind::default())
    }

    fn scratch_bytes(&self, _input: &TableKind) -> Option<u64> {
        None
    }

    fn inner_steps(&self) -> Option<InnerSteps<'_>> {
        Some(InnerSteps {
            column: &self.column,
            pipeline: &*self.pipeline,
            steps: self.steps.clone(),
        })
    }

    fn cut(&self, stage: usize) -> Option<(Self, Self)> {
        let is_inside = self.steps.start < stage && stage < self.steps.end;
        self.values_at(stage).filter(|_| is_inside)?;
        let part = |steps| Self {
            steps,
            ..self.clone()
        };
        Some((part(self.steps.start..stage), part(stage..self.steps.end)))
    }

    fn joined(&self, next: &Self) -> Option<Self> {
        let is_next = self.column == next.column
            && self.steps.end == next.steps.start
            && *self.pipeline == *next.pipeline;
        is_next.then(|| Self {
            steps: self.steps.start..next.steps.end,
            ..self.clone()
        })
    }

    fn rowwise(&self) -> Option<&dyn RowwiseStep> {
        Some(self)
    }

    fn is_random(&self) -> bool {
        self.pipeline.is_random(self.steps.clone())
    }

    fn apply(&self, input: Table, scope: &Scope<'_>) -> Result<Table> {
        transform_table(self, &input, scope)
    }
}

impl RowwiseStep for Each {
    fn keeps_all_rows(&self) -> bool {
        true
    }

    /// Without the values that are being computed: [`CellHost::reserve`](pushdown_core::step::CellHost::reserve) counts them.
    fn computed_bytes(&self) -> u64 {
        EACH_BYTES as u64
    }

    fn start(&self, schema: &SchemaRef, scope: &Scope<'_>) -> Result<Box<dyn RowTransform>> {
        let no_values = || Error::internal("the pipeline of `each` has no output kind");
        let input = match self.steps.start {
            0 => InputColumn::of_bytes(&self.column, schema)?,
            from => {
                let values = self.values_at(from).ok_or_else(no_values)?;
                InputColumn::of_values(&self.column, schema, values, from)?
            }
        };
        let has_row_numbers = |field: &FieldRef| field.metadata().contains_key(row_numbers::METADATA_KEY);
        let row_numbers = schema.fields().iter().position(has_row_numbers);
        if row_numbers.is_none() && self.is_random() {
            return Err(Error::new(
                ErrorKind::InvalidPipeline,
                "random steps inside `each` require row numbers: pass `row_number=` to the step that reads the object, and \
                 keep that column",
            ));
        }
        let tensors = self.values_at(self.steps.end).ok_or_else(no_values)?;
        let mut fields: Vec<_> = schema.fields().to_vec();
        fields[input.index] = Arc::new(tensors.field(&self.column)?);
        if input.errors().is_none() {
            let errors = Field::new(error_column(&self.column), DataType::Utf8, true);
            fields.insert(input.index + 1, Arc::new(errors));
        }
        let max_rows = tensors.value_bytes().map(|bytes| EACH_BYTES / bytes.max(1));
        let has_fixed_size = max_rows.is_some();
        let cells = scope.cells.filter(|_| self.steps.start == 0);
        let runner = CellRunner {
            column: self.column.clone(),
            pipeline: Arc::clone(&self.pipeline),
            until: self.steps.end,
            tensors,
            seed: scope.seed,
            epoch: scope.epoch,
            limits: *scope.limits,
            host: scope.cells.cloned(),
        };
        let has_batches = has_fixed_size && runner.batched_steps(self.steps.clone()).is_some();
        Ok(Box::new(EachTransform {
            schema: Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())),
            input,
            row_numbers,
            max_rows: max_rows.unwrap_or(VARIABLE_ROWS).clamp(1, BATCH_ROWS),
            sample_id: scope.sample_id.to_vec(),
            cells: cells.and_then(|cells| cells.values_of(&*self.pipeline, self.steps.end)),
            max_active: if has_batches { BATCHED_CELLS } else { 1 },
            runner,
            done: Vec::new(),
            done_bytes: 0,
            active: VecDeque::new(),
        }))
    }
}
