//! The plan, for people.

use std::{fmt, iter::repeat_n};

use pushdown::{
    Pipeline, Step,
    pipeline::RowStage,
    plan::{Bound, Class, Decision, Plan, Stage},
};

/// The plan of a reader in [`Mode::Auto`](crate::reader::Mode::Auto), and what it was made from.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanReport {
    /// The pipeline. Its models are cut where a split may be worthwhile.
    pub pipeline: Pipeline,
    /// The cost of each candidate split, by class of samples, and the fractions.
    pub decision: Decision,
    /// What the samples are.
    pub samples: PlannedSamples,
    /// How often the plan has changed.
    pub changes: u64,
}

/// The samples of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlannedSamples {
    /// Objects, or members of shards. Stages are numbers of steps.
    Objects {
        /// The most bytes of an object of each class, from the smallest objects to the largest; any number for the last.
        max_bytes: Vec<u64>,
    },
    /// Rows of Parquet objects, all in one class.
    Rows {
        /// Where rows are handed over, by stage of the decision. The first stage is plain reading.
        stages: Vec<RowStage>,
    },
}

impl PlanReport {
    /// Predicted samples per second of the plan.
    pub fn samples_per_second(&self) -> f64 {
        1.0 / self.decision.plan.load.seconds()
    }

    /// Predicted samples per second of plain reading.
    pub fn plain_samples_per_second(&self) -> f64 {
        let Decision {
            tiers,
            classes,
            rules,
            ..
        } = &self.decision;
        1.0 / Plan::plain(tiers, classes, rules).load.seconds()
    }

    /// The names of the classes.
    fn class_names(&self) -> Vec<String> {
        let PlannedSamples::Objects { max_bytes } = &self.samples else {
            return vec!["rows".to_owned()];
        };
        let sides = self.decision.sides.len();
        let sizes = max_bytes.iter().flat_map(|max_bytes| repeat_n(max_bytes, sides));
        let classes = self.decision.classes.iter().zip(sizes);
        let names = classes.map(|(class, max_bytes)| {
            let size = match max_bytes {
                &u64::MAX => "larger objects".to_owned(),
                max_bytes => format!("objects up to {} KB", max_bytes / 1000),
            };
            if sides > 1 {
                format!("{size}, {}", cached_stages(class))
            } else {
                size
            }
        });
        names.collect()
    }

    /// The part of samples that arrive at a stage.
    fn route(&self, stage: Stage, percent: f64) -> String {
        if stage == Stage::CroppedJpeg {
            return format!("{percent:.0} % cropped");
        }
        let stage = stage.steps();
        let at = match &self.samples {
            PlannedSamples::Objects { .. } => Some(RowStage {
                steps: stage,
                inner: 0,
            }),
            PlannedSamples::Rows { stages } => stages.get(stage).copied(),
        };
        match at.and_then(|at| Some((at, self.pipeline.last_step(at)?))) {
            None => format!("{percent:.0} % plain"),
            Some((RowStage { steps, inner: 0 }, step)) => {
                format!("{percent:.0} % up to `{}` (stage {steps})", step.name())
            }
            Some((RowStage { steps, inner }, step)) => {
                let around = self.pipeline.steps().get(steps).map_or("", Step::name);
                format!(
                    "{percent:.0} % up to `{}` (stage {steps} and step {inner} of `{around}`)",
                    step.name()
                )
            }
        }
    }
}

/// A bandwidth, for people.
fn megabits(bytes_per_second: f64) -> String {
    if bytes_per_second.is_finite() {
        format!("{:.0} Mbit/s", bytes_per_second * 8e-6)
    } else {
        "not measured".to_owned()
    }
}

/// The stages at which the gateway caches all objects of a class.
fn cached_stages(class: &Class) -> String {
    let cached = class
        .candidates
        .iter()
        .filter(|split| split.hits.later_ratio >= 1.0);
    let stages: Vec<_> = cached.map(|split| split.stage.steps().to_string()).collect();
    if stages.is_empty() {
        "not cached".to_owned()
    } else {
        format!("cached at stage {}", stages.join(", "))
    }
}

impl fmt::Display for PlanReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Decision {
            tiers, classes, plan, ..
        } = &self.decision;
        let bound = match plan.load.bound() {
            Bound::Gateway => "the gateway's CPU",
            Bound::GatewayPath => "the path from the gateway",
            Bound::StorePath => "the path from the store",
            Bound::Link => "the link",
            Bound::Host => "this host's CPU",
            Bound::Trainer => "the training",
        };
        let unit = match self.samples {
            PlannedSamples::Objects { .. } => "samples",
            PlannedSamples::Rows { .. } => "rows",
        };
        writeln!(
            f,
            "plan: {:.0} {unit}/s (plain reading: {:.0}), limited by {bound}",
            self.samples_per_second(),
            self.plain_samples_per_second()
        )?;
        write!(f, "  link {}", megabits(tiers.link_bytes_per_second))?;
        if let Some(paths) = tiers.paths {
            write!(
                f,
                ", from the store {}, from the gateway {}",
                megabits(paths.store_bytes_per_second),
                megabits(paths.gateway_bytes_per_second)
            )?;
        }
        let (gateway, host) = (tiers.gateway_cores, tiers.host_cores);
        write!(f, ", {gateway:.1} cores at the gateway, {host:.1} on this host")?;
        writeln!(f, "{}", if tiers.shared { " (the same ones)" } else { "" })?;
        for ((class, fractions), name) in classes.iter().zip(&plan.fractions).zip(self.class_names()) {
            let taken = class.candidates.iter().zip(fractions);
            let splits: Vec<_> = taken
                .filter(|(_, fraction)| **fraction > 0.0)
                .map(|(candidate, fraction)| self.route(candidate.stage, fraction / class.fraction * 100.0))
                .collect();
            writeln!(f, "  {name}: {}", splits.join(", "))?;
        }
        Ok(())
    }
}
