//! What the gateway tells about itself: logs and metrics.

pub mod logs;
mod metrics;
mod process;

pub use metrics::{GaugeGuard, Metrics, encode};
