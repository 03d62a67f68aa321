//! The plan, for people.

use std::fmt;

use pushdown::{
    Pipeline,
    plan::{Bound, Class, Decision, Plan},
};

/// The plan of a reader in [`Mode::Auto`](crate::reader::Mode::Auto), and what it was made from.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanReport {
    /// The pipeline. Its models are cut where a split may be worthwhile.
    pub pipeline: Pipeline,
    /// The cost of each candidate split, by class of samples from the smallest objects to the largest, and the fractions.
    pub decision: Decision,
    /// The most bytes of an object of each class; any number for the last.
    pub max_object_bytes: Vec<u64>,
    /// How often the plan has changed.
    pub changes: u64,
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
}

/// The stages at which the gateway caches all objects of a class.
fn cached_stages(class: &Class) -> String {
    let cached = class
        .candidates
        .iter()
        .filter(|split| split.hits.later_ratio >= 1.0);
    let stages: Vec<_> = cached.map(|split| split.stage.to_string()).collect();
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
            Bound::Link => "the link",
            Bound::Host => "this host's CPU",
            Bound::Trainer => "the training",
        };
        writeln!(
            f,
            "plan: {:.0} samples/s (plain reading: {:.0}), limited by {bound}",
            self.samples_per_second(),
            self.plain_samples_per_second()
        )?;
        if tiers.link_bytes_per_second.is_finite() {
            write!(f, "  link {:.0} Mbit/s", tiers.link_bytes_per_second * 8e-6)?;
        } else {
            write!(f, "  link not measured")?;
        }
        let (gateway, host) = (tiers.gateway_cores, tiers.host_cores);
        write!(f, ", {gateway:.1} cores at the gateway, {host:.1} on this host")?;
        writeln!(f, "{}", if tiers.shared { " (the same ones)" } else { "" })?;
        let sides = self.decision.sides.len();
        let max_bytes = self
            .max_object_bytes
            .iter()
            .flat_map(|bytes| std::iter::repeat_n(bytes, sides));
        for ((class, fractions), max_bytes) in classes.iter().zip(&plan.fractions).zip(max_bytes) {
            match max_bytes {
                &u64::MAX => write!(f, "  larger objects")?,
                max_bytes => write!(f, "  objects up to {} KB", max_bytes / 1000)?,
            }
            if sides > 1 {
                write!(f, ", {}", cached_stages(class))?;
            }
            write!(f, ":")?;
            let taken = class.candidates.iter().zip(fractions);
            let splits: Vec<_> = taken
                .filter(|(_, fraction)| **fraction > 0.0)
                .map(|(candidate, fraction)| {
                    let percent = fraction / class.fraction * 100.0;
                    let stage = candidate.stage;
                    match stage
                        .checked_sub(1)
                        .and_then(|step| self.pipeline.steps().get(step))
                    {
                        None => format!("{percent:.0} % plain"),
                        Some(step) => format!("{percent:.0} % up to `{}` (stage {stage})", step.name()),
                    }
                })
                .collect();
            writeln!(f, " {}", splits.join(", "))?;
        }
        Ok(())
    }
}
