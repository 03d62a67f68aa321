//! Measures costs and decides: which steps of a sample run at the gateway, where rows of a table are computed, and when
//! reads begin.
//!
//! The arithmetic of plans is in [`pushdown::plan`]; this module feeds it.

mod adapt;
mod cpus;
mod exploration;
#[cfg(feature = "tables")]
mod expansion_guard;
mod gateway_cpus;
mod link_meter;
mod observations;
mod pacer;
mod placement;
mod plan_report;
mod planner;
mod profile;
mod progress;
mod rate;
#[cfg(feature = "tables")]
mod rows;
mod server_timing;
#[cfg(feature = "tables")]
mod table_stage;

pub(crate) use adapt::{
    Adapter, Assignment, Event, InFlight, PendingRead, ProbeRequest, ReceivedValue, SamplesLeft,
    stages_after_models,
};
pub(crate) use exploration::EXPLORATION_BATCHES;
#[cfg(feature = "tables")]
pub(crate) use expansion_guard::ExpansionGuard;
pub(crate) use gateway_cpus::GatewayCpus;
pub use observations::Observations;
#[cfg(feature = "tables")]
pub(crate) use pacer::PacedBytes;
pub(crate) use pacer::Pacer;
pub(crate) use placement::Placement;
pub use plan_report::{PlanReport, PlannedSamples};
#[cfg(feature = "tables")]
use profile::float;
pub(crate) use profile::refined;
pub use profile::{Profile, SampleProfile};
pub(crate) use progress::BatchProgress;
pub(crate) use rate::{PendingRange, RateSamples, ReadRate};
#[cfg(feature = "tables")]
pub(crate) use rows::{HostTimes, ReadCost, ReaderSize, RowPlanner};
#[cfg(feature = "tables")]
use server_timing::ServerTiming;
#[cfg(feature = "tables")]
pub(crate) use table_stage::{RowGroupCosts, SplitBytes};
