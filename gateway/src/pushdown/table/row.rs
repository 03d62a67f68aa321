//! A table that is a row of a batch: read in parts as any other, and whole when it leaves.

use std::sync::Arc;

use futures::StreamExt as _;
use pushdown::{
    Sample, Step, TableBuilder,
    wire::{Compression, Split, TableForm},
};

use super::{
    pays,
    scan::{Admitted, Found, Planned},
};
use crate::{
    error::Result,
    pushdown::{Pushdown, request::Job, sample::Computed},
};

/// What an answer is taken to have where nothing is known of it; more is asked for as it comes.
const ANSWER_BYTES: u64 = 1 << 20;

impl Pushdown {
    /// Plans the scan of one sample; `None` where `smallest` is the object as it is stored.
    pub(in crate::pushdown) async fn plan_row(&self, found: Found, job: &Job) -> Result<Option<Planned>> {
        let planned = self.plan(found, job).await?;
        // A row of a batch is an Arrow stream.
        let form = TableForm::ArrowStream(Compression::None);
        Ok((job.split != Split::Smallest || pays(&planned, form)).then_some(planned))
    }

    /// Waits for the memory of the scan and of all its rows.
    pub(in crate::pushdown) async fn admit_row(&self, planned: Planned, job: &Job) -> Result<Admitted> {
        let answer = planned.estimate().output_bytes.unwrap_or(ANSWER_BYTES);
        // What is over the limit fails when it comes: the estimate is none of what a filter leaves.
        let answer = answer.min(self.limits.max_output_bytes);
        self.admit_scan(planned, job, answer).await
    }

    /// All rows of the scan.
    pub(in crate::pushdown) async fn compute_row(&self, admitted: Admitted, job: &Job) -> Result<Computed> {
        let Admitted {
            mut scan,
            mut turns,
            fault,
            held,
            mut permit,
            mut timing,
        } = admitted;
        let mut table = TableBuilder::new(Arc::clone(scan.schema()), self.limits.max_output_bytes);
        loop {
            let next = async move {
                let batch = scan.next().await;
                (scan, batch)
            };
            let batch;
            (scan, batch) = turns.run(next).await?;
            let Some(batch) = batch.transpose().map_err(|error| fault.of(error))? else {
                break;
            };
            table.push(batch)?;
            let short = table.bytes().saturating_sub(permit.bytes());
            self.memory.grow(&mut permit, short)?;
        }
        drop((scan, held));
        permit.shrink_to(table.bytes());
        let name = job.pipeline.steps().first().map_or("", Step::name);
        let seconds = turns.spent();
        self.metrics.step(name, seconds);
        timing.add(name, seconds);
        Ok(Computed {
            stage: job.scan().unwrap_or(job.pipeline.len()),
            sample: Sample::Table(table.build()),
            permit,
            timing,
            seconds,
        })
    }
}
