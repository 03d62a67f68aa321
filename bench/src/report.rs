//! Results as JSON. `bench/e2e/components.py` computes medians and ratios, and prints the tables.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use serde::Serialize;

use crate::rounds::Measurement;

/// The format of the file, which `bench/e2e/components.py` checks.
const FORMAT: &str = "components-1";

/// The results of some contenders.
#[derive(Debug, Clone, Serialize)]
pub struct Table {
    /// What is compared, and on which input.
    pub title: String,
    /// Unit of every value.
    pub unit: &'static str,
    /// One row per contender.
    pub rows: Vec<Measurement>,
    /// Ratios of rows.
    pub comparisons: Vec<Comparison>,
}

/// A ratio of two contenders' values, which is computed per round.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The contender whose row shows the ratio.
    pub row: &'static str,
    /// The contender above the line.
    pub numerator: &'static str,
    /// The contender below the line.
    pub denominator: &'static str,
    /// Meaning of the ratio.
    pub what: &'static str,
    /// The target of the median, if there is one.
    pub target: Option<Target>,
}

/// A bound on a ratio.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// At least this value.
    AtLeast(f64),
    /// At most this value.
    AtMost(f64),
}

impl Table {
    /// A table without comparisons.
    pub fn new(title: impl Into<String>, unit: &'static str, measured: Vec<Measurement>) -> Self {
        Self {
            title: title.into(),
            unit,
            rows: measured,
            comparisons: Vec::new(),
        }
    }

    /// Adds to the row `row` the ratio of `numerator` to `denominator`. Does nothing if one of the rows is missing because a peer
    /// was skipped.
    pub fn compare(
        &mut self,
        row: &'static str,
        (numerator, denominator): (&'static str, &'static str),
        what: &'static str,
        target: Option<Target>,
    ) {
        let is_measured = |name: &str| self.rows.iter().any(|row| row.name == name);
        if [row, numerator, denominator].into_iter().all(is_measured) {
            self.comparisons.push(Comparison {
                row,
                numerator,
                denominator,
                what,
                target,
            });
        }
    }
}

/// Writes the tables to `folder` as JSON, with a description of the machine; returns the path of the file.
pub fn save(folder: &Path, tables: &[Table]) -> Result<PathBuf> {
    let first_line = |path: &str, field: &str| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines()
            .find(|line| line.starts_with(field))
            .unwrap_or_default()
            .to_owned()
    };
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let document = serde_json::json!({
        "format": FORMAT,
        "unix_seconds": seconds,
        "machine": {
            "cpu": first_line("/proc/cpuinfo", "model name").split(": ").nth(1),
            "cores": std::thread::available_parallelism()?.get(),
            "memory": first_line("/proc/meminfo", "MemTotal"),
            "kernel": first_line("/proc/sys/kernel/osrelease", "").trim(),
            "load_at_the_end": first_line("/proc/loadavg", ""),
        },
        "engine": pushdown::Engine::all().to_string(),
        "tables": tables,
    });
    fs::create_dir_all(folder)?;
    let path = folder.join(format!("{seconds}.json"));
    fs::write(&path, serde_json::to_vec_pretty(&document)?)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_has_rounds_and_the_comparisons_of_measured_rows() {
        let row = |name: &str, rounds: &[f64]| Measurement {
            name: name.to_owned(),
            rounds: rounds.to_vec(),
        };
        let mut table = Table::new(
            "t",
            "u",
            vec![row("ours", &[8.0, 8.5]), row("bare", &[10.0, 10.5])],
        );
        table.compare("ours", ("ours", "bare"), "of bare", Some(Target::AtLeast(0.75)));
        table.compare("ours", ("bare", "ours"), "of ours", Some(Target::AtMost(1.25)));
        table.compare("bare", ("bare", "ours"), "times ours", None);
        table.compare("ours", ("ours", "absent"), "of nothing", None);
        table.compare("absent", ("ours", "bare"), "of bare", None);
        assert_eq!(
            serde_json::to_value(&table).unwrap(),
            json!({
                "title": "t",
                "unit": "u",
                "rows": [
                    {"name": "ours", "rounds": [8.0, 8.5]},
                    {"name": "bare", "rounds": [10.0, 10.5]},
                ],
                "comparisons": [
                    {"row": "ours", "numerator": "ours", "denominator": "bare", "what": "of bare", "target": {"at_least": 0.75}},
                    {"row": "ours", "numerator": "bare", "denominator": "ours", "what": "of ours", "target": {"at_most": 1.25}},
                    {"row": "bare", "numerator": "bare", "denominator": "ours", "what": "times ours", "target": null},
                ],
            })
        );
    }
}
