//! The components that the routes share.

use http::{HeaderMap, request::Parts};
use pushdown::wire;
use tokio_util::sync::CancellationToken;

use super::{http::insert, value::ValueFlights};
use crate::{
    cache::ResultCache,
    compute::{CellBudget, CpuPool, DemandTable, Memory, MicroBatcher, cpu_set_id},
    config::{Limits, ReplicaId, TenantBy},
    error::{Error, ErrorKind, Result},
    models::ModelRegistry,
    origin::{Origin, OriginObject},
    server::{Connection, StallGuard},
    telemetry::Metrics,
};

/// Handles to the components that answer requests with a pipeline. Clones share everything.
#[derive(Debug, Clone)]
pub struct Services {
    pub(super) origin: Origin,
    pub(super) cpu: CpuPool,
    pub(super) micro_batcher: MicroBatcher,
    pub(super) cache: ResultCache,
    pub(super) flights: ValueFlights,
    pub(super) memory: Memory,
    /// The memory for values that `each` computes, a part of `memory`.
    pub(super) cell_budget: CellBudget,
    pub(super) models: ModelRegistry,
    /// How many cores the readers could use.
    pub(super) demand: DemandTable,
    pub(super) limits: Limits,
    /// Whose account requests in forward mode are charged to.
    pub(super) tenant_by: TenantBy,
    pub(super) metrics: Metrics,
    /// The id of this gateway among its replicas.
    pub(super) replica: ReplicaId,
    /// Cancelled when the gateway begins to drain.
    pub(super) drain: CancellationToken,
    /// Identifies the CPUs that steps run on, if steps run on all of them.
    pub(super) cpu_set_id: Option<String>,
}

impl Services {
    /// Handles of the gateway `replica` to a store, a CPU pool, a memory budget, the models that pipelines can use, and the result cache.
    #[expect(
        clippy::large_types_passed_by_value,
        reason = "the limits are moved into the services"
    )]
    #[expect(clippy::too_many_arguments, reason = "one for each component")]
    pub fn new(
        origin: Origin,
        cpu: CpuPool,
        memory: Memory,
        models: ModelRegistry,
        cache: ResultCache,
        limits: Limits,
        metrics: Metrics,
        replica: ReplicaId,
    ) -> Self {
        Self {
            origin,
            micro_batcher: MicroBatcher::new(cpu.clone(), metrics.clone()),
            cache,
            flights: ValueFlights::default(),
            cell_budget: CellBudget::new(memory.clone()),
            memory,
            models,
            demand: DemandTable::new(limits.max_demand_cores_per_tenant),
            limits,
            tenant_by: TenantBy::default(),
            metrics,
            replica,
            drain: CancellationToken::new(),
            cpu_set_id: cpu_set_id(cpu.threads().get()),
            cpu,
        }
    }

    /// The same with accounts for other tenants.
    #[must_use]
    pub fn with_tenant_by(self, tenant_by: TenantBy) -> Self {
        Self { tenant_by, ..self }
    }

    /// The same for a gateway that drains once this is cancelled.
    #[must_use]
    pub fn with_drain(self, drain: CancellationToken) -> Self {
        Self { drain, ..self }
    }

    /// How many cores the readers could use.
    pub const fn demand(&self) -> &DemandTable {
        &self.demand
    }

    /// The limits on every value of a sample.
    pub(super) fn sample_limits(&self) -> pushdown::Limits {
        self.limits.sample_limits(self.memory.total_bytes())
    }

    /// Adds the number of CPUs that steps run on.
    pub(super) fn insert_cores(&self, headers: &mut HeaderMap) {
        insert(headers, wire::header::CORES, &self.cpu.threads().to_string());
    }

    /// Adds the number of CPUs that steps run on, and what identifies them.
    pub(super) fn insert_cpus(&self, headers: &mut HeaderMap) {
        self.insert_cores(headers);
        if let Some(name) = &self.cpu_set_id {
            insert(headers, wire::header::CPUS, name);
        }
    }

    /// A guard that cuts the connection if the client does not read the answer for too long.
    pub(super) fn stall_guard(&self, parts: &Parts) -> Option<StallGuard> {
        let connection = parts.extensions.get::<Connection>()?;
        Some(connection.cut_when_stalled(self.limits.send_stall_timeout))
    }

    /// The length of an object.
    ///
    /// # Errors
    /// [`ErrorKind::OriginUnavailable`] without Content-Length; [`ErrorKind::EntityTooLarge`] above the limit.
    pub(super) fn check_length(&self, object: &OriginObject) -> Result<u64> {
        let length = object.content_length.ok_or_else(|| {
            Error::new(
                ErrorKind::OriginUnavailable,
                "invalid answer of the store: expected Content-Length for a pipeline, found none",
            )
        })?;
        if length > self.limits.max_object_bytes {
            return Err(Error::new(
                ErrorKind::EntityTooLarge,
                format!(
                    "the object is too large: expected at most {} bytes, found {length}",
                    self.limits.max_object_bytes
                ),
            ));
        }
        Ok(length)
    }

    /// Checks the size of an answer.
    ///
    /// # Errors
    /// [`ErrorKind::EntityTooLarge`] above the limit.
    pub(super) fn check_output(&self, bytes: u64) -> Result<()> {
        if bytes <= self.limits.max_output_bytes {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::EntityTooLarge,
            format!(
                "the answer is too large: expected at most {} bytes, found {bytes}",
                self.limits.max_output_bytes
            ),
        ))
    }
}
