//! Running work: CPU on a pool of its own, memory by permits.

mod cpu;
mod layers;
mod memory;

pub use cpu::CpuPool;
pub use layers::Layers;
pub use memory::{Memory, Permit};
