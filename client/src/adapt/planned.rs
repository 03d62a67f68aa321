//! The plan, as people are told of it.

use std::fmt;

use pushdown::{
    Pipeline,
    plan::{Bound, Decision, Plan},
};

/// What a reader in [`Mode::Auto`](crate::Mode::Auto) does with the samples, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// The pipeline; its models are cut where a split may be worth while.
    pub pipeline: Pipeline,
    /// What each way costs, by class of samples from the smallest objects to the largest, and the shares.
    pub decision: Decision,
    /// The most bytes of an object of each class; any number for the last.
    pub up_to: Vec<u64>,
    /// How often the plan was another one before.
    pub changes: u64,
}

impl Planned {
    /// Samples per second that the plan comes to.
    pub fn samples_per_second(&self) -> f64 {
        1.0 / self.decision.plan.load.seconds()
    }

    /// Samples per second that reading plainly would come to.
    pub fn plainly(&self) -> f64 {
        let Decision {
            tiers,
            classes,
            rules,
            ..
        } = &self.decision;
        1.0 / Plan::plain(tiers, classes, rules).load.seconds()
    }
}

impl fmt::Display for Planned {
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
            "plan: {:.0} samples/s, {:.0} plainly; what limits it is {bound}",
            self.samples_per_second(),
            self.plainly()
        )?;
        if tiers.link_bytes_per_second.is_finite() {
            write!(f, "  link {:.0} Mbit/s", tiers.link_bytes_per_second * 8e-6)?;
        } else {
            write!(f, "  link not measured")?;
        }
        let (there, here) = (tiers.gateway_cores, tiers.host_cores);
        write!(f, ", {there:.1} cores at the gateway, {here:.1} here")?;
        writeln!(f, "{}", if tiers.shared { ", the same ones" } else { "" })?;
        for ((class, shares), up_to) in classes.iter().zip(&plan.shares).zip(&self.up_to) {
            match up_to {
                &u64::MAX => write!(f, "  larger objects:")?,
                up_to => write!(f, "  objects up to {} KB:", up_to / 1000)?,
            }
            let taken = class.candidates.iter().zip(shares);
            for (way, share) in taken.filter(|(_, share)| **share > 0.0) {
                let part = share / class.share * 100.0;
                match way
                    .stage
                    .checked_sub(1)
                    .and_then(|step| self.pipeline.steps().get(step))
                {
                    None => write!(f, " {part:.0} % as they are")?,
                    Some(step) => write!(f, " {part:.0} % up to `{}` (stage {})", step.name(), way.stage)?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
