//! Logs and metrics.

mod list;
pub mod logs;
mod metrics;
mod process;

pub use list::{METRICS, Metrics};
pub use metrics::{GaugeGuard, StoreRefusal, encode};
