//! A table as a row of a batch: read in parts like any table, and sent as a whole.

use std::sync::Arc;

use futures::StreamExt as _;
use pushdown::{
    Sample, Step, TableBuilder,
    wire::{Compression, Split, TableForm},
};

use super::{
    is_smaller_than_object,
    scan::{AdmittedScan, OpenedTable, PlannedScan},
};
use crate::{
    error::Result,
    routes::value::{ComputedSample, ValueMemory, ValueOrigin},
};

/// Assumed size of an answer without an estimate. The reservation grows with the answer.
const UNKNOWN_ANSWER_BYTES: u64 = 1 << 20;

impl OpenedTable {
    /// Plans the scan of one sample; `None` if `smallest` resolves to the stored object.
    pub(in crate::routes) async fn plan_row(self) -> Result<Option<PlannedScan>> {
        let planned = self.plan().await?;
        // A row of a batch contains an Arrow stream.
        let form = TableForm::ArrowStream(Compression::None);
        let is_scanned =
            planned.staged.job.split != Split::Smallest || is_smaller_than_object(&planned, form);
        Ok(is_scanned.then_some(planned))
    }
}

impl PlannedScan {
    /// Waits for the memory of the scan and of all rows.
    pub(in crate::routes) async fn admit_row(self) -> Result<AdmittedScan> {
        let answer = self.estimate().output_bytes.unwrap_or(UNKNOWN_ANSWER_BYTES);
        // Capped, because the estimate ignores filters. An answer above the limit fails when its rows arrive.
        let answer = answer.min(self.staged.services.limits.max_output_bytes);
        self.admit(answer).await
    }
}

impl AdmittedScan {
    /// Computes all rows of the scan.
    pub(in crate::routes) async fn compute_row(self) -> Result<ComputedSample> {
        let Self {
            staged,
            mut scan,
            mut task,
            layer_time,
            source_permit,
            mut permit,
            mut timing,
        } = self;
        let services = &staged.services;
        let mut table = TableBuilder::new(Arc::clone(scan.schema()), services.limits.max_output_bytes);
        loop {
            let next = async move {
                let batch = scan.next().await;
                (scan, batch)
            };
            let batch;
            (scan, batch) = task.run(next).await?;
            let Some(batch) = batch.transpose()? else {
                break;
            };
            table.push(batch)?;
            let missing = table.bytes().saturating_sub(permit.bytes());
            services.memory.grow(&mut permit, missing)?;
        }
        drop((scan, source_permit));
        permit.shrink_to(table.bytes());
        let name = staged.job.pipeline.steps().first().map_or("", Step::name);
        let (scan_time, layer_time) = (task.compute_time(), layer_time.get());
        services.metrics.add_step_time(name, scan_time);
        timing.add(name, scan_time);
        timing.add_if_any("model", layer_time);
        Ok(ComputedSample {
            stage: staged.stage,
            sample: Sample::Table(table.build()),
            memory: ValueMemory::Own(permit),
            timing,
            compute_time: scan_time + layer_time,
            origin: ValueOrigin::Computed,
            cached: None,
        })
    }
}
