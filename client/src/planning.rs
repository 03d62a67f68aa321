//! Measures costs and decides: which steps of a sample run at the gateway, where rows of a table are computed, and when
//! batches begin.
//!
//! The arithmetic of plans is in [`pushdown::plan`]; this module feeds it.

mod adapt;
#[cfg(feature = "tables")]
mod expansion_guard;
mod mode;
mod pacer;
mod profile;
mod progress;
mod server_timing;
#[cfg(feature = "tables")]
mod table_stage;

#[cfg(feature = "tables")]
pub(crate) use adapt::cpus;
pub(crate) use adapt::{
    Adapter, Assignment, EXPLORATION_BATCHES, Event, GatewayCpus, InFlight, PendingRead, ProbeRequest,
    ReceivedValue, SamplesLeft, stages_after_models,
};
pub use adapt::{Observations, PlanReport};
#[cfg(feature = "tables")]
pub(crate) use expansion_guard::ExpansionGuard;
pub use mode::Mode;
pub(crate) use pacer::BatchPacer;
#[cfg(feature = "tables")]
pub(crate) use profile::float;
pub(crate) use profile::refined;
pub use profile::{Profile, SampleProfile};
pub(crate) use progress::BatchProgress;
#[cfg(feature = "tables")]
pub(crate) use server_timing::ServerTiming;
#[cfg(feature = "tables")]
pub(crate) use table_stage::{RowGroupCosts, SplitBytes};
