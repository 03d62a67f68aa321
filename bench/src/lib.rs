//! Measures pushdown against what it is to be held against, in CPU time, each contender in its turn.
//!
//! `README.md` beside this crate tells what each figure is and how to get it.

pub mod cores;
pub mod cpu;
pub mod forward;
pub mod libraries;
pub mod load;
pub mod memory;
pub mod models;
pub mod nginx;
pub mod operators;
pub mod overhead;
mod peer;
pub mod photos;
pub mod progress;
pub mod report;
pub mod rounds;
pub mod simulate;
pub mod stats;
pub mod store;
