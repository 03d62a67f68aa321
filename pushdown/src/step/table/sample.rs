//! `sample`: a random part of the rows.

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use arrow_select::filter::filter_record_batch;

use super::rowwise::{self, Rows, Rowwise};
use crate::{
    Error, Result, Table, TableKind,
    limits::BATCH_ROWS,
    pipeline::{Args, Param, Value},
    step::{Operator, Scope, augment::RowDraws},
};

/// `sample`. Whether a row stays depends on the seed, the sample's id and the row's place in the table, and on nothing else.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleRows {
    fraction: f64,
    seed: u64,
}

impl Operator for SampleRows {
    type Input = Table;
    type Output = Table;

    const NAME: &'static str = "sample";
    const SUMMARY: &'static str = "keeps a random part of the rows, the same ones each time";
    const PARAMS: &'static [Param] = &[
        Param::positional("fraction", "0..1", "the share of rows that stay, on average"),
        Param::positional(
            "seed",
            "whole number",
            "decides which rows stay, together with the object's name",
        ),
    ];

    fn parse(args: &Args<'_>) -> Result<Self> {
        let fraction: f64 = args.required("fraction")?;
        if !(0.0..=1.0).contains(&fraction) {
            return Err(args.fault(format!("`fraction` is {fraction}, expected a number from 0 to 1")));
        }
        Ok(Self {
            fraction,
            seed: args.required("seed")?,
        })
    }

    fn arguments(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("fraction", Value::Float(self.fraction)),
            ("seed", Value::Int(i64::try_from(self.seed).unwrap_or(i64::MAX))),
        ]
    }

    fn output(&self, input: &TableKind) -> Result<TableKind, String> {
        Ok(TableKind {
            schema: input.schema.clone(),
            bytes: None,
        })
    }

    fn scratch_bytes(&self, _input: &TableKind) -> Option<u64> {
        None
    }

    fn apply(&self, input: Table, scope: &Scope<'_>) -> Result<Table> {
        rowwise::run(self, &input, scope)
    }
}

impl Rowwise for SampleRows {
    fn begin(&self, schema: &SchemaRef, scope: &Scope<'_>) -> Result<Box<dyn Rows>> {
        Ok(Box::new(Sampling {
            schema: SchemaRef::clone(schema),
            fraction: self.fraction,
            draws: RowDraws::new(self.seed, scope.sample_id),
            row: 0,
        }))
    }
}

struct Sampling {
    schema: SchemaRef,
    fraction: f64,
    draws: RowDraws,
    row: u64,
}

impl Rows for Sampling {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn most(&self) -> usize {
        BATCH_ROWS
    }

    fn next(&mut self, rows: &mut RecordBatch) -> Result<Option<RecordBatch>> {
        let batch = rowwise::take(rows, rows.num_rows());
        let first = self.row;
        self.row += batch.num_rows() as u64;
        let stays: BooleanArray = (first..self.row)
            .map(|row| Some(self.draws.unit(row) < self.fraction))
            .collect();
        let kept = filter_record_batch(&batch, &stays);
        kept.map(Some).map_err(|error| Error::internal(error.to_string()))
    }
}
