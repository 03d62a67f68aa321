//! Runs work: a pool of CPU threads and a memory budget, both shared fairly between tenants.

#[cfg(feature = "models")]
mod batch_size;
mod cell_memory;
mod cooperative_task;
mod cpu;
mod cpu_time;
mod demand;
mod fair_lock;
mod fair_queue;
mod ledger;
mod memory;
#[cfg_attr(not(feature = "models"), path = "compute/no_micro_batch.rs")]
mod micro_batch;
mod scan_io;
mod tenant;
#[cfg(feature = "models")]
mod thread_budget;

pub use cell_memory::{CellBudget, SharedMemory};
pub use cooperative_task::{CooperativeTask, ScanWaker};
pub use cpu::CpuPool;
pub use cpu_time::{CpuTimeReader, cpu_set_id};
pub use demand::{DemandTable, TenantDemand};
pub use ledger::Ledger;
pub use memory::{Memory, Permit};
pub use micro_batch::{BatchMembers, MicroBatcher};
pub use scan_io::ScanIo;
pub use tenant::{BodySize, QueuePosition, Tenant};
