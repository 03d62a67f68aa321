//! The pipeline routes: one object by GET or HEAD, and batches of objects by POST.

mod answer;
mod batch;
mod combined;
mod conditions;
mod etag;
mod form;
mod head;
mod headers;
mod object;
mod request;
mod sample;
mod steps;
mod store_refusal;
mod stream_body;
mod table;
mod tenant_batches;
mod timing;

use crate::{
    compute::{CpuPool, CpuTimeReader, Memory, MicroBatcher, cpu_set_id},
    config::Limits,
    models::ModelRegistry,
    origin::Origin,
    telemetry::Metrics,
};
use tenant_batches::TenantBatches;

/// The handlers of the pipeline routes. Clones share everything.
#[derive(Debug, Clone)]
pub struct Pushdown {
    origin: Origin,
    cpu: CpuPool,
    micro_batcher: MicroBatcher,
    memory: Memory,
    models: ModelRegistry,
    limits: Limits,
    metrics: Metrics,
    tenant_batches: TenantBatches,
    cpu_time: CpuTimeReader,
    /// Identifies the CPUs that steps run on, if steps run on all of them.
    cpu_set_id: Option<String>,
}

impl Pushdown {
    /// Handlers that use a store, a CPU pool, a memory budget and the models that pipelines can use.
    pub fn new(
        origin: Origin,
        cpu: CpuPool,
        memory: Memory,
        models: ModelRegistry,
        limits: Limits,
        metrics: Metrics,
    ) -> Self {
        Self {
            origin,
            micro_batcher: MicroBatcher::new(cpu.clone(), metrics.clone()),
            memory,
            models,
            limits,
            metrics,
            tenant_batches: TenantBatches::default(),
            cpu_time: CpuTimeReader::new(&cpu),
            cpu_set_id: cpu_set_id(cpu.threads().get()),
            cpu,
        }
    }

    fn sample_limits(&self) -> pushdown::Limits {
        pushdown::Limits {
            max_pixels: self.limits.max_pixels,
            max_object_bytes: self.limits.max_object_bytes,
            tables: self.limits.tables(self.memory.total_bytes()),
            ..pushdown::Limits::default()
        }
    }
}
