//! What a reader does, seen from elsewhere.

use std::{fmt, sync::Arc};

use crate::{
    planning::{Mode, Observations, PlanReport},
    stats::{Counters, Stats},
    store::{ReplicaReport, Store},
};

/// Observes a reader while it reads, and after it is closed.
#[derive(Debug, Clone)]
pub struct ReaderMonitor(Arc<dyn Monitored>);

/// What a reader shows, whatever its samples are.
pub(crate) trait Monitored: fmt::Debug + Send + Sync {
    /// The endpoint, which counts the traffic.
    fn store(&self) -> &Store;

    fn counters(&self) -> &Counters;

    /// The mode in force.
    fn mode(&self) -> Mode;

    /// The plan in force; `None` without a planner.
    fn plan(&self) -> Option<PlanReport> {
        None
    }

    /// What the planner has observed; `None` without one.
    fn observations(&self) -> Option<Observations> {
        None
    }
}

impl ReaderMonitor {
    pub(crate) const fn new(reader: Arc<dyn Monitored>) -> Self {
        Self(reader)
    }

    /// Counts so far.
    pub fn stats(&self) -> Stats {
        let transport = self.0.store().transport();
        let counters = self.0.counters();
        counters.snapshot(transport.traffic(), transport.gateway_traffic())
    }

    /// URL of the store endpoint.
    pub fn endpoint(&self) -> String {
        self.0.store().endpoint()
    }

    /// URL of a [gateway beside the store](crate::store#two-addresses). `None` if the endpoint itself may be a gateway.
    pub fn gateway_url(&self) -> Option<String> {
        self.0.store().gateway_url()
    }

    /// The replicas of the gateway, for all readers of the store; nothing before the address of the gateway is looked up.
    pub fn replicas(&self) -> Vec<ReplicaReport> {
        self.0.store().replica_reports()
    }

    /// The mode in force: plain as well after the gateway turned out to have another engine, and if all steps run on this host.
    pub fn mode(&self) -> Mode {
        self.0.mode()
    }

    /// The plan in force and what it was made from, in [`Mode::Auto`]; `None` before the first plan.
    pub fn plan(&self) -> Option<PlanReport> {
        self.0.plan()
    }

    /// What the planner has observed, for [another reader](crate::reader::PushdownReaderBuilder::observations) of the same data; `None` before
    /// the first plan, and in other modes than [`Mode::Auto`].
    pub fn observations(&self) -> Option<Observations> {
        self.0.observations()
    }
}
