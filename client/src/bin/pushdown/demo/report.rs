//! What the ways cost and what came of them, for people and as JSON.

use std::fmt;

use indicatif::DecimalBytes;
use serde::Serialize;

use super::{
    features::Cost,
    labels::Dataset,
    metrics::{auc, balanced_accuracy, prediction},
};

/// All that the demo tells.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    samples: usize,
    positives: usize,
    held_out: usize,
    parts: Vec<Part>,
}

/// One head, by several ways.
#[derive(Debug, Serialize)]
pub(crate) struct Part {
    name: String,
    pipeline: String,
    lines: Vec<Line>,
    /// What the first way predicts.
    #[serde(skip)]
    predictions: Vec<bool>,
}

/// One way.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    way: &'static str,
    #[serde(flatten)]
    cost: Cost,
    /// Behind the reading: the head is there after both.
    train_seconds: f64,
    balanced_accuracy: Option<f64>,
    auc: Option<f64>,
    /// Samples that are held out and that the first way predicts otherwise.
    other_predictions: usize,
}

impl Report {
    pub(crate) fn new(data: &Dataset, parts: Vec<Part>) -> Self {
        Self {
            samples: data.objects.len(),
            positives: data.labels.iter().filter(|label| **label).count(),
            held_out: data.held_out_labels().len(),
            parts,
        }
    }
}

impl Part {
    pub(crate) fn new(name: String, pipeline: &str) -> Self {
        Self {
            name,
            pipeline: pipeline.to_owned(),
            lines: Vec::new(),
            predictions: Vec::new(),
        }
    }

    /// Adds a way, with the scores of the samples that are held out.
    pub(crate) fn push(&mut self, data: &Dataset, line: Line, scores: &[f64]) {
        let predictions: Vec<bool> = scores.iter().map(|score| prediction(*score)).collect();
        if self.lines.is_empty() {
            self.predictions.clone_from(&predictions);
        }
        let pairs = predictions.iter().zip(&self.predictions);
        self.lines.push(Line {
            balanced_accuracy: balanced_accuracy(scores, data.held_out_labels()),
            auc: auc(scores, data.held_out_labels()),
            other_predictions: pairs.filter(|(found, first)| found != first).count(),
            ..line
        });
    }
}

impl Line {
    pub(crate) const fn new(way: &'static str, cost: Cost, train_seconds: f64) -> Self {
        Self {
            way,
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
            "{samples} samples, {positives} of them positive; {held_out} are held out"
        )?;
        self.parts.iter().try_for_each(|part| write!(f, "\n{part}"))
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}\n", self.name, self.pipeline)?;
        writeln!(
            f,
            "{:11}  {:>10}  {:>10}  {:>8}  {:>8}  {:>11}  {:>13}  {:>6}  {:>9}",
            "", "received", "sent", "wall", "CPU here", "gateway CPU", "balanced acc.", "AUC", "predicted"
        )?;
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        writeln!(f)?;
        for line in &self.lines {
            writeln!(f, "{}: {}", line.way, arrivals(&line.cost))?;
            for text in line.cost.plan.iter().flat_map(|plan| plan.lines()) {
                writeln!(f, "  {text}")?;
            }
        }
        self.lines
            .iter()
            .filter(|line| line.way == "plain")
            .try_for_each(|line| writeln!(f, "{}", crossover(&line.cost)))
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { way, cost, .. } = self;
        let or_not = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
        let seconds = |seconds: f64| format!("{seconds:.2} s");
        let same = match self.other_predictions {
            0 => "alike".to_owned(),
            other => format!("{other} others"),
        };
        write!(
            f,
            "{way:11}  {:>10}  {:>10}  {:>8}  {:>8}  {:>11}  {:>13}  {:>6}  {same:>9}",
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

/// Where the values of samples came from, and how far along.
fn arrivals(cost: &Cost) -> String {
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
    let kept = match cost.kept {
        0 => String::new(),
        kept => format!("; {kept} were kept and not asked for"),
    };
    format!("{}{kept}", stages.join(", "))
}

/// What a link has to carry so that it is this host that plain reading waits for.
fn crossover(cost: &Cost) -> String {
    let samples = float(cost.samples).max(1.0);
    let (bytes, seconds) = (float(cost.stored_bytes) / samples, cost.cpu_seconds / samples);
    format!(
        "a sample has {} and takes {:.1} ms of CPU here: below {:.1} Mbit/s for each core plain reading waits for the link",
        DecimalBytes(cost.stored_bytes / cost.samples.max(1)),
        1e3 * seconds,
        8e-6 * bytes / seconds
    )
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
const fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests;
