//! What an answer states about the CPUs of the gateway.

use http::HeaderMap;
use pushdown::wire::{CpuTime, header};

use super::number;

/// What an answer states about the CPUs of the gateway.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct GatewayCpus {
    /// Cores for this reader's tenant.
    pub(crate) cores: Option<f64>,
    /// Number of batches that share them.
    pub(crate) batches: Option<f64>,
    pub(crate) time: Option<CpuTime>,
    /// Identifies the CPUs, to compare them with those of this host.
    pub(crate) fingerprint: Option<String>,
}

impl GatewayCpus {
    /// What the head of an answer states.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        Self {
            cores: number(headers.get(header::CORES)),
            batches: number(headers.get(header::BATCHES)),
            time: text(header::CPU).and_then(|time| time.parse().ok()),
            fingerprint: text(header::CPUS).map(str::to_owned),
        }
    }
}
