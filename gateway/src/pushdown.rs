//! The pipeline faces: one object by GET or HEAD, many by POST.

mod answer;
mod batch;
mod conditions;
mod etag;
mod flow;
mod form;
mod head;
mod headers;
mod in_flight;
mod object;
mod refused;
mod request;
mod sample;
mod several;
mod steps;
mod table;
mod timing;

use crate::{
    compute::{CpuPool, Cpus, Layers, Memory, name_of_cpus},
    config::Limits,
    models::ModelRegistry,
    origin::Origin,
    telemetry::Metrics,
};
use in_flight::InFlight;

/// What both faces work with. Clones share it.
#[derive(Debug, Clone)]
pub struct Pushdown {
    origin: Origin,
    cpu: CpuPool,
    layers: Layers,
    memory: Memory,
    models: ModelRegistry,
    limits: Limits,
    metrics: Metrics,
    in_flight: InFlight,
    cpus: Cpus,
    /// What names the CPUs that steps run on, where all of them do.
    name_of_cpus: Option<String>,
}

impl Pushdown {
    /// The faces over a store, a CPU pool, a memory budget and the models that pipelines may name.
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
            layers: Layers::new(cpu.clone(), metrics.clone()),
            memory,
            models,
            limits,
            metrics,
            in_flight: InFlight::default(),
            cpus: Cpus::of(&cpu),
            name_of_cpus: name_of_cpus(cpu.threads().get()),
            cpu,
        }
    }

    fn sample_limits(&self) -> pushdown::Limits {
        pushdown::Limits {
            max_pixels: self.limits.max_pixels,
            max_object_bytes: self.limits.max_object_bytes,
            tables: self.limits.tables(self.memory.total()),
            ..pushdown::Limits::default()
        }
    }
}
