//! Running work: CPU on a pool of its own, memory by permits, both shared fairly between tenants.

mod batching;
mod cpu;
mod cpus;
mod fair;
mod layers;
mod ledger;
mod memory;
mod tenant;
mod threads;
mod turns;
mod turnstile;

pub use cpu::CpuPool;
pub use cpus::{Cpus, name as name_of_cpus};
pub use layers::Layers;
pub use ledger::Ledger;
pub use memory::{Memory, Permit};
pub use tenant::{Standing, Tenant};
pub use turns::{Awake, Turns};
