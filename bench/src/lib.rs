//! Measures the CPU time of pushdown and its peers in alternating rounds.
//!
//! This crate's `README.md` explains each figure and how to measure it.

pub mod cores;
pub mod cpu;
pub mod crops;
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
pub mod store;
