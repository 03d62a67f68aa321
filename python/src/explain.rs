//! The costs of a pipeline.

use pushdown_cli::{Assumptions, Explanation, spread};
use pushdown_client::store::{Objects, Profile};
use pyo3::PyResult;
use serde::Deserialize;

use crate::error::{config, internal};

/// What to measure, and what to assume instead of measuring it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExplainOptions {
    samples: usize,
    #[serde(default)]
    pub(crate) seed: Option<u64>,
    #[serde(default)]
    pub(crate) epoch: u32,
    #[serde(default)]
    assumptions: Assumptions,
}

impl ExplainOptions {
    /// The objects to measure, evenly spaced.
    pub(crate) fn sampled(&self, all: &Objects) -> Objects {
        spread(all, self.samples)
    }

    /// The report as JSON.
    pub(crate) fn explanation(&self, profile: Profile, objects: usize) -> PyResult<String> {
        if profile.samples.is_empty() {
            let reason = profile.failed.first();
            let reason = reason
                .map(|(key, reason)| format!(": {key}: {reason}"))
                .unwrap_or_default();
            return Err(config(format!("no sample could be measured{reason}")));
        }
        let mut warnings: Vec<String> = profile
            .pipeline
            .warnings()
            .iter()
            .map(ToString::to_string)
            .collect();
        warnings.extend(profile.engine_mismatch.clone());
        let failed: Vec<String> = profile
            .failed
            .iter()
            .map(|(key, reason)| format!("{key}: {reason}"))
            .collect();
        let explanation = Explanation::new(
            profile,
            u32::try_from(objects).unwrap_or(u32::MAX),
            &self.assumptions,
        );
        let mut text = Vec::new();
        explanation
            .table(&mut text)
            .map_err(|error| internal(format!("cannot write the report: {error}")))?;
        let mut report = explanation.as_json();
        report["text"] = String::from_utf8_lossy(&text).into();
        report["warnings"] = warnings.into();
        report["failed"] = failed.into();
        Ok(report.to_string())
    }
}
