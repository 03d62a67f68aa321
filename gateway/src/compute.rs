//! Runs work: a pool of CPU threads and a memory budget, both shared fairly between tenants.

mod batch_size;
mod cooperative_task;
mod cpu;
mod cpu_time;
mod fair_lock;
mod fair_queue;
mod ledger;
mod memory;
mod micro_batch;
mod tenant;
mod thread_budget;

pub use cooperative_task::{CooperativeTask, ScanWaker};
pub use cpu::CpuPool;
pub use cpu_time::{CpuTimeReader, cpu_set_id};
pub use ledger::Ledger;
pub use memory::{Memory, Permit};
pub use micro_batch::MicroBatcher;
pub use tenant::{QueuePosition, Tenant};
