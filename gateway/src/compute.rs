//! Running work: CPU on a pool of its own, memory by permits.

mod cpu;
mod memory;

pub use cpu::CpuPool;
pub use memory::{Memory, Permit};
