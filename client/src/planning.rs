//! Takes what is measured and decides: which steps of a sample run at the gateway, where rows of a table are computed, and when
//! reads begin.
//!
//! The arithmetic of plans is in [`pushdown::plan`]; this module feeds it.

mod adapt;
mod cropped;
#[cfg(feature = "tables")]
mod expansion_guard;
mod exploration;
mod mode;
mod observations;
mod plan_report;
mod planner;
#[cfg(feature = "tables")]
mod rows;
#[cfg(feature = "tables")]
mod table_stage;

pub(crate) use adapt::{
    Adapter, ArrivingAnswer, Assignment, Event, InFlight, PendingRead, ProbeRequest, ReceivedValue,
    SamplesLeft, stages_after_models,
};
pub(crate) use cropped::arrived_stage;
#[cfg(feature = "tables")]
pub(crate) use expansion_guard::ExpansionGuard;
pub(crate) use exploration::EXPLORATION_BATCHES;
pub use mode::Mode;
pub use observations::Observations;
pub use plan_report::{PlanReport, PlannedSamples};
#[cfg(feature = "tables")]
pub(crate) use rows::{HostTimes, ReadCost, ReaderSize, RowPlanner};
#[cfg(feature = "tables")]
pub(crate) use table_stage::{RowGroupCosts, SplitBytes};
