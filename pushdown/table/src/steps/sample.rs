//! `sample`: a random sample of the rows.

use std::task::{Context as Task, Poll};

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use arrow_select::filter::filter_record_batch;

use pushdown_core::{
    Error, Family, Result, Table, TableKind,
    language::{Args, Param, Value},
    limits::BATCH_ROWS,
    step::{
        Operator, RowDraws, RowProgress, RowTransform, RowwiseStep, Scope,
        rowwise::{take_rows, transform_table},
    },
};

/// `sample`. Whether a row is kept depends only on the seed, the sample's id and the row number in the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleRows {
    fraction: f64,
    seed: u64,
}

impl Operator for SampleRows {
    type Input = Table;
    type Output = Table;

    const NAME: &'static str = "sample";
    const SUMMARY: &'static str = "keeps a random sample of the rows, the same one each time";
    const FAMILIES: &'static [Family] = &[Family::Table, Family::Random];
    const PARAMS: &'static [Param] = &[
        Param::positional("fraction", "0..1", "the average fraction of rows to keep"),
        Param::positional(
            "seed",
            "whole number",
            "selects the rows to keep, together with the object's name",
        ),
    ];

    fn parse(args: &Args<'_>) -> Result<Self> {
        let fraction: f64 = args.required("fraction")?;
        if !(0.0..=1.0).contains(&fraction) {
            return Err(args.fault(format!(
                "invalid `fraction`: expected a number from 0 to 1, found {fraction}"
            )));
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

    fn rowwise(&self) -> Option<&dyn RowwiseStep> {
        Some(self)
    }

    fn apply(&self, input: Table, scope: &Scope<'_>) -> Result<Table> {
        transform_table(self, &input, scope)
    }
}

impl RowwiseStep for SampleRows {
    fn keeps_all_rows(&self) -> bool {
        false
    }

    fn start(&self, schema: &SchemaRef, scope: &Scope<'_>) -> Result<Box<dyn RowTransform>> {
        Ok(Box::new(SampleTransform {
            schema: SchemaRef::clone(schema),
            fraction: self.fraction,
            draws: RowDraws::new(self.seed, scope.sample_id),
            next_row: 0,
        }))
    }
}

struct SampleTransform {
    schema: SchemaRef,
    fraction: f64,
    draws: RowDraws,
    next_row: u64,
}

impl RowTransform for SampleTransform {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn max_rows(&self) -> usize {
        BATCH_ROWS
    }

    fn next(&mut self, rows: &mut RecordBatch, _task: &mut Task<'_>) -> Poll<Result<RowProgress>> {
        let batch = take_rows(rows, rows.num_rows());
        let first = self.next_row;
        self.next_row += batch.num_rows() as u64;
        let is_kept: BooleanArray = (first..self.next_row)
            .map(|row| Some(self.draws.unit(row) < self.fraction))
            .collect();
        let kept = filter_record_batch(&batch, &is_kept);
        let kept = kept.map_err(|error| Error::internal(error.to_string()));
        Poll::Ready(kept.map(RowProgress::Output))
    }
}
