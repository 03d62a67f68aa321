//! Logs and metrics.

pub mod logs;
mod metrics;
mod process;

pub use metrics::{GaugeGuard, Metrics, encode};
