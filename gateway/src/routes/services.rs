//! The components that the routes share.

use super::batch::TenantBatches;
use crate::{
    compute::{CpuPool, CpuTimeReader, Memory, MicroBatcher, cpu_set_id},
    config::Limits,
    models::ModelRegistry,
    origin::Origin,
    telemetry::Metrics,
};

/// Handles to the components that answer requests with a pipeline. Clones share everything.
#[derive(Debug, Clone)]
pub struct Services {
    pub(super) origin: Origin,
    pub(super) cpu: CpuPool,
    pub(super) micro_batcher: MicroBatcher,
    pub(super) memory: Memory,
    pub(super) models: ModelRegistry,
    pub(super) limits: Limits,
    pub(super) metrics: Metrics,
    pub(super) tenant_batches: TenantBatches,
    pub(super) cpu_time: CpuTimeReader,
    /// Identifies the CPUs that steps run on, if steps run on all of them.
    pub(super) cpu_set_id: Option<String>,
}

impl Services {
    /// Handles to a store, a CPU pool, a memory budget and the models that pipelines can use.
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

    pub(super) fn sample_limits(&self) -> pushdown::Limits {
        pushdown::Limits {
            max_pixels: self.limits.max_pixels,
            max_object_bytes: self.limits.max_object_bytes,
            tables: self.limits.tables(self.memory.total_bytes()),
            ..pushdown::Limits::default()
        }
    }
}
