//! Logs and metrics.

mod list;
pub mod logs;
mod metrics;
mod process;

pub use list::{METRICS, Metric, Metrics, Stability};
pub use metrics::{GaugeGuard, encode};
