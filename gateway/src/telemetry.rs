//! Logs and metrics.

pub mod logs;
mod list;
mod metrics;
mod process;

pub use list::{METRICS, Metric, Metrics, Stability};
pub use metrics::{GaugeGuard, encode};
