//! Results: tables in Markdown, and JSON for later comparisons.

use std::fmt::{self, Write as _};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use serde::Serialize;

use crate::rounds::Measurement;
use crate::stats::{self, MedianInterval};

/// The results of some contenders.
#[derive(Debug, Clone, Serialize)]
pub struct Table {
    /// What is compared, and on which input.
    pub title: String,
    /// Unit of every value.
    pub unit: &'static str,
    /// One row per contender.
    pub rows: Vec<ContenderRow>,
}

/// The results of one contender.
#[derive(Debug, Clone, Serialize)]
pub struct ContenderRow {
    /// Its name.
    pub name: String,
    /// Median and quartiles of its rounds.
    pub value: MedianInterval,
    /// The value of each round.
    pub rounds: Vec<f64>,
    /// Ratios to other contenders.
    pub ratios: Vec<Ratio>,
}

/// The ratio of two contenders' values.
#[derive(Debug, Clone, Serialize)]
pub struct Ratio {
    /// Meaning of the ratio.
    pub what: String,
    /// Median with its 95 % interval.
    pub value: MedianInterval,
    /// The target, if there is one.
    pub target: Option<Target>,
    /// Whether the median meets the target.
    pub met: bool,
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

// === impl Table ===

impl Table {
    /// A table without comparisons.
    pub fn new(title: impl Into<String>, unit: &'static str, measured: Vec<Measurement>) -> Self {
        let rows = measured.into_iter().map(|measured| ContenderRow {
            name: measured.name,
            value: stats::median_and_quartiles(&measured.rounds),
            rounds: measured.rounds,
            ratios: Vec::new(),
        });
        Self {
            title: title.into(),
            unit,
            rows: rows.collect(),
        }
    }

    /// Adds to the row `name` the ratio of `numerator` to `denominator`, computed per round. Does nothing if one of the rows is
    /// missing because a peer was skipped.
    pub fn compare(
        &mut self,
        name: &str,
        (numerator, denominator): (&str, &str),
        what: &str,
        target: Option<Target>,
    ) {
        let rounds = |name: &str| {
            self.rows
                .iter()
                .find(|row| row.name == name)
                .map(|row| row.rounds.clone())
        };
        let (Some(numerator), Some(denominator)) = (rounds(numerator), rounds(denominator)) else {
            return;
        };
        let value = stats::median_ratio(&numerator, &denominator);
        let ratio = Ratio {
            what: what.to_owned(),
            value,
            target,
            met: target.is_none_or(|target| target.is_met(value.median)),
        };
        if let Some(row) = self.rows.iter_mut().find(|row| row.name == name) {
            row.ratios.push(ratio);
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "**{}**, {}\n", self.title, self.unit)?;
        writeln!(
            f,
            "| | median | quartiles | ratio (95 % interval) |\n|---|---|---|---|"
        )?;
        for row in &self.rows {
            let MedianInterval { median, low, high } = row.value;
            let ratios: Vec<_> = row.ratios.iter().map(ToString::to_string).collect();
            let (median, low, high) = (Digits(median), Digits(low), Digits(high));
            writeln!(
                f,
                "| {} | {median} | {low} to {high} | {} |",
                row.name,
                ratios.join("<br>")
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MedianInterval { median, low, high } = self.value;
        write!(f, "{median:.2} ({low:.2} to {high:.2}) {}", self.what)?;
        let verdict = if self.met { "met" } else { "**missed**" };
        match self.target {
            Some(Target::AtLeast(bound)) => write!(f, ", target ≥ {bound}: {verdict}"),
            Some(Target::AtMost(bound)) => write!(f, ", target ≤ {bound}: {verdict}"),
            None => Ok(()),
        }
    }
}

impl Target {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(bound) => value >= bound,
            Self::AtMost(bound) => value <= bound,
        }
    }
}

/// Formats a number with at least three significant digits.
struct Digits(f64);

impl fmt::Display for Digits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.abs() {
            0.0..10.0 => write!(f, "{:.2}", self.0),
            10.0..100.0 => write!(f, "{:.1}", self.0),
            _ => write!(f, "{:.0}", self.0),
        }
    }
}

/// Writes the tables to `folder` as JSON, with a description of the machine.
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
        "time": seconds,
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

/// All tables in Markdown.
pub fn markdown(tables: &[Table]) -> String {
    tables.iter().fold(String::new(), |mut text, table| {
        // Writing to a string does not fail.
        _ = writeln!(text, "{table}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_shows_which_targets_are_met() {
        let row = |name: &str, rounds: &[f64]| Measurement {
            name: name.to_owned(),
            rounds: rounds.to_vec(),
        };
        let mut table = Table::new(
            "t",
            "u",
            vec![row("ours", &[8.0, 8.0]), row("bare", &[10.0, 10.0])],
        );
        table.compare("ours", ("ours", "bare"), "of bare", Some(Target::AtLeast(0.78)));
        table.compare("ours", ("bare", "ours"), "of ours", Some(Target::AtMost(1.2)));
        table.compare("ours", ("ours", "absent"), "of nothing", None);
        let text = table.to_string();
        assert!(
            text.contains("0.80 (0.80 to 0.80) of bare, target ≥ 0.78: met"),
            "{text}"
        );
        assert!(text.contains("target ≤ 1.2: **missed**"), "{text}");
        assert!(!text.contains("nothing"), "{text}");
    }
}
