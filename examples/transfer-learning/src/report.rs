//! The cost and the results of the read methods, as text and as JSON.

use std::fmt;

use indicatif::DecimalBytes;
use serde::Serialize;

use crate::{
    labels::Dataset,
    metrics::{auc, balanced_accuracy, prediction},
    read::ReadCost,
};

/// The results of all read methods.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    samples: usize,
    positives: usize,
    held_out: usize,
    parts: Vec<ReportPart>,
}

/// One head, with several read methods.
#[derive(Debug, Serialize)]
pub(crate) struct ReportPart {
    name: String,
    pipeline: String,
    lines: Vec<ReportLine>,
    /// Predictions with the first method.
    #[serde(skip)]
    predictions: Vec<bool>,
}

/// One read method.
#[derive(Debug, Serialize)]
pub(crate) struct ReportLine {
    method: &'static str,
    #[serde(flatten)]
    cost: ReadCost,
    /// Time of the training, after the reading.
    train_seconds: f64,
    balanced_accuracy: Option<f64>,
    auc: Option<f64>,
    /// Held-out samples with another prediction than with the first method.
    other_predictions: usize,
}

impl Report {
    pub(crate) fn new(data: &Dataset, parts: Vec<ReportPart>) -> Self {
        Self {
            samples: data.objects.len(),
            positives: data.labels.iter().filter(|label| **label).count(),
            held_out: data.held_out_labels().len(),
            parts,
        }
    }
}

impl ReportPart {
    pub(crate) fn new(name: String, pipeline: &str) -> Self {
        Self {
            name,
            pipeline: pipeline.to_owned(),
            lines: Vec::new(),
            predictions: Vec::new(),
        }
    }

    /// Adds a read method, with the scores of the held-out samples.
    pub(crate) fn push(&mut self, data: &Dataset, line: ReportLine, scores: &[f64]) {
        let predictions: Vec<bool> = scores.iter().map(|score| prediction(*score)).collect();
        if self.lines.is_empty() {
            self.predictions.clone_from(&predictions);
        }
        let pairs = predictions.iter().zip(&self.predictions);
        self.lines.push(ReportLine {
            balanced_accuracy: balanced_accuracy(scores, data.held_out_labels()),
            auc: auc(scores, data.held_out_labels()),
            other_predictions: pairs.filter(|(found, first)| found != first).count(),
            ..line
        });
    }
}

impl ReportLine {
    pub(crate) const fn new(method: &'static str, cost: ReadCost, train_seconds: f64) -> Self {
        Self {
            method,
            cost,
            train_seconds,
            balanced_accuracy: None,
            auc: None,
            other_predictions: 0,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            samples,
            positives,
            held_out,
            ..
        } = self;
        writeln!(
            f,
            "{samples} samples, {positives} of them positive, {held_out} held out"
        )?;
        self.parts.iter().try_for_each(|part| write!(f, "\n{part}"))
    }
}

impl fmt::Display for ReportPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}\n", self.name, self.pipeline)?;
        writeln!(
            f,
            "{:13}  {:>10}  {:>10}  {:>8}  {:>8}  {:>11}  {:>13}  {:>6}  {:>9}",
            "", "received", "sent", "wall", "host CPU", "gateway CPU", "balanced acc.", "AUC", "predicted"
        )?;
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        writeln!(f)?;
        for line in &self.lines {
            writeln!(f, "{}: {}", line.method, arrivals(&line.cost))?;
            for text in line.cost.plan.iter().flat_map(|plan| plan.lines()) {
                writeln!(f, "  {text}")?;
            }
        }
        self.lines
            .iter()
            .filter(|line| line.method == "plain")
            .try_for_each(|line| writeln!(f, "{}", crossover(&line.cost)))
    }
}

impl fmt::Display for ReportLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { method, cost, .. } = self;
        let or_not = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
        let seconds = |seconds: f64| format!("{seconds:.2} s");
        let same = match self.other_predictions {
            0 => "same".to_owned(),
            other => format!("{other} differ"),
        };
        write!(
            f,
            "{method:13}  {:>10}  {:>10}  {:>8}  {:>8}  {:>11}  {:>13}  {:>6}  {same:>9}",
            DecimalBytes(cost.received_bytes).to_string(),
            DecimalBytes(cost.sent_bytes).to_string(),
            seconds(cost.seconds),
            seconds(cost.cpu_seconds),
            or_not(cost.gateway_cpu_seconds.map(seconds)),
            or_not(
                self.balanced_accuracy
                    .map(|share| format!("{:.1} %", 100.0 * share))
            ),
            or_not(self.auc.map(|area| format!("{area:.3}"))),
        )
    }
}

/// The stages at which samples arrived, and the cache hits.
fn arrivals(cost: &ReadCost) -> String {
    let stages: Vec<_> = cost
        .stages
        .iter()
        .map(|(stage, count)| match stage {
            0 => format!("{count} as stored"),
            stage => format!(
                "{count} after step {stage}, `{}`",
                cost.steps[usize::from(*stage) - 1]
            ),
        })
        .collect();
    let cached = match cost.cache_hits {
        0 => String::new(),
        hits => format!("; {hits} read from the value cache"),
    };
    format!("{}{cached}", stages.join(", "))
}

/// The crossover bandwidth: the link on which plain reading saturates this host.
fn crossover(cost: &ReadCost) -> String {
    let samples = float(cost.samples).max(1.0);
    let (bytes, seconds) = (float(cost.stored_bytes) / samples, cost.cpu_seconds / samples);
    format!(
        "a sample has {} and takes {:.1} ms of CPU on this host: below {:.1} Mbit/s per core, the link limits plain reading",
        DecimalBytes(cost.stored_bytes / cost.samples.max(1)),
        1e3 * seconds,
        8e-6 * bytes / seconds
    )
}

#[expect(clippy::cast_precision_loss, reason = "figures shown to people")]
const fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests;
