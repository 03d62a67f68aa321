//! The planner of a reader: costs go in, plans come out.
//!
//! Objects and rows are planned by the same arithmetic, and what is the same for both is here: the CPUs at both ends, and the
//! plan that changes. What differs is in their drivers:
//!
//! | | objects and members ([`adapt`](super::adapt)) | rows ([`rows`](super::rows)) |
//! |---|---|---|
//! | classes | by stored bytes, and by what the gateway caches | one: a row group has rows of all sizes |
//! | stages | between steps | between steps and inside of `each` |
//! | bytes of a value | known, bounded or observed | estimated from footers |
//! | in flight | each sample | not counted |
//! | link and paths | all bytes received while objects or values keep them busy, unless an end is saturated | the fastest range of a row group, for one path |
//! | gateway cores | a part by batches that share them | a part by ranks |
//! | planned again | after each batch, for the samples that are left | after each row group |
//! | before the first plan | two batches, and later ones wait for the plan | a few row groups, and none waits: with few row groups an epoch would be over |

use pushdown::plan::{Decision, Replanner, Rules, SetupCosts, StepCost};

use crate::measure::{GatewayCpus, float, host_cpus};

/// What is known of the costs of samples, and the plan that follows from it.
#[derive(Debug, Clone)]
pub(super) struct Planner {
    pub(super) replanner: Replanner,
    /// Threads that run steps on this host.
    threads: usize,
    /// Identifies their CPUs.
    host_cpus: Option<String>,
    /// How often the plan has changed.
    changes: u64,
}

/// A plan that was made now.
#[derive(Debug)]
pub(super) struct NewPlan<'a> {
    pub(super) decision: &'a Decision,
    /// Whether it differs from the plan before, or is the first one.
    pub(super) has_changed: bool,
}

impl Planner {
    /// A planner without observations, of a pipeline with these steps. `classes` has the fraction and the mean stored bytes of each class of
    /// samples.
    pub(super) fn new(steps: &[StepCost], classes: &[(f64, f64)], threads: usize) -> Self {
        Self {
            replanner: Replanner::new(steps, classes, float(threads as u64)),
            threads,
            host_cpus: host_cpus(threads),
            changes: 0,
        }
    }

    /// The same for a reader that reaches the gateway beside the store.
    pub(super) fn with_two_paths(self) -> Self {
        Self {
            replanner: self.replanner.with_two_paths(),
            ..self
        }
    }

    /// Whether what another planner has observed is of use for this one: it runs steps on as many threads, and bytes arrive over as
    /// many paths.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let paths = |planner: &Self| planner.replanner.links().has_two_paths();
        self.threads == other.threads && paths(self) == paths(other)
    }

    /// Threads that run steps on this host.
    pub(super) const fn threads(&self) -> usize {
        self.threads
    }

    /// The plan in force.
    pub(super) const fn decision(&self) -> Option<&Decision> {
        self.replanner.decision()
    }

    /// How often the plan has changed.
    pub(super) const fn changes(&self) -> u64 {
        self.changes
    }

    /// The same for another reader of the same samples, which has nothing in flight yet.
    pub(super) fn without_in_flight(&self) -> Self {
        Self {
            replanner: self.replanner.without_in_flight(),
            ..self.clone()
        }
    }

    /// Records what an answer states about the CPUs of the gateway. This reader has `part` of the cores.
    pub(super) fn observe_gateway_cpus(&mut self, stated: &GatewayCpus, part: f64) {
        if let Some(cores) = stated.cores {
            self.replanner.set_gateway_cores(cores * part);
        }
        // On the CPUs of this host, the two do not add up.
        let shared = stated.fingerprint.is_some() && stated.fingerprint == self.host_cpus;
        self.replanner.set_shared(shared);
    }

    /// Plans again. `None` without a plan, because too little is known.
    pub(super) fn plan(&mut self, setup: SetupCosts, rules: &Rules) -> Option<NewPlan<'_>> {
        let before = self.decision().map(|decision| decision.plan.fractions.clone());
        let decision = self.replanner.next_batch(setup, rules)?;
        let has_changed = before.as_ref() != Some(&decision.plan.fractions);
        if has_changed {
            tracing::info!(
                samples_per_second = 1.0 / decision.plan.load.seconds(),
                bound = ?decision.plan.load.bound(),
                tiers = ?decision.tiers,
                fractions = ?decision.plan.fractions,
                "planned"
            );
            self.changes += u64::from(before.is_some());
        }
        Some(NewPlan {
            decision,
            has_changed,
        })
    }
}
