//! Threads for computation: decoding and other work that never runs on I/O threads.
//!
//! A [`CpuPool`] runs the tasks of a [`TaskQueue`], which decides their order: the gateway's by tenant, the reader's by batch.

mod pool;
pub mod sync;
mod threads;

pub use pool::{CpuPool, PendingWork, Task, TaskQueue, WorkPanicked};
