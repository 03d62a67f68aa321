//! The linear program of a plan.

use super::{
    Load,
    simplex::{Equation, Tableau},
};

/// Cost of a CPU second that counts, as a ratio of the bytes of the largest value. Small, yet ten microseconds exceed what the
/// simplex method takes for rounding, which grows with the values.
const CPU_SECOND_COST_RATIO: f64 = 1e-4;

/// Fractions of samples to determine. Groups of them have fixed sums.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Program {
    /// The sum of the fractions of each group.
    pub(super) groups: Vec<f64>,
    /// The fractions. Each group has at least one, of which the first one has no upper bound.
    pub(super) columns: Vec<Column>,
    /// Upper bounds of fractions.
    pub(super) limits: Vec<Limit>,
    /// The epochs, with their fixed loads.
    pub(super) epochs: Vec<Epoch>,
}

/// A fraction of the samples of an epoch: those of a group at one split.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Column {
    pub(super) group: usize,
    pub(super) epoch: usize,
    /// The load of a sample.
    pub(super) load: Load,
    /// The bytes of a sample that count between equally fast plans.
    pub(super) bytes: f64,
    /// The CPU seconds of a sample that count between plans with equal bytes.
    pub(super) cpu_seconds: f64,
}

/// A fraction is at most `max` and `ratio` times another one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Limit {
    pub(super) column: usize,
    pub(super) max: f64,
    pub(super) ratio: f64,
    /// Another column than `column`.
    pub(super) other: Option<usize>,
}

/// An epoch, or several that are alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Epoch {
    /// The factor of its time in the time of all epochs.
    pub(super) weight: f64,
    /// The load of each tier per sample that no fraction changes.
    pub(super) fixed: Load,
}

impl Program {
    /// The tiers whose times differ between splits or epochs.
    fn tiers(&self) -> Vec<fn(&Load) -> f64> {
        let mut tiers: Vec<fn(&Load) -> f64> =
            vec![|load| load.gateway_seconds, |load| load.link_seconds, |load| {
                load.host_seconds
            }];
        let paths: [fn(&Load) -> f64; 2] = [|load| load.gateway_path_seconds, |load| load.store_path_seconds];
        let loads = || {
            let fixed = self.epochs.iter().map(|epoch| &epoch.fixed);
            self.columns.iter().map(|column| &column.load).chain(fixed)
        };
        tiers.extend(
            paths
                .into_iter()
                .filter(|path| loads().any(|load| path(load) > 0.0)),
        );
        // No split changes the time of the trainer. It counts where one epoch is weighed against others.
        if self.epochs.len() > 1 {
            tiers.push(|load| load.trainer_seconds);
        }
        tiers
    }

    /// Returns the fractions. Solves two programs over the same constraints: the first minimises the weighted sum of the times of
    /// the epochs, each of which is that of its slowest tier; the second minimises the bytes, and for equal bytes the CPU time,
    /// with upper bounds of these times. `tie` returns them for the minimal times.
    ///
    /// Columns: the fractions, the time of each epoch, a slack for each tier of each epoch, one for each limit, and one for each
    /// time. Rows: the sums of the groups; no tier of an epoch takes longer than its time; the limits; the times have upper
    /// bounds.
    pub(super) fn solve(&self, tie: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
        /// Longer than any time: no upper bound yet.
        const UNBOUNDED_SECONDS: f64 = 1e12;
        let tiers = self.tiers();
        let times = self.columns.len();
        let tier_slacks = times + self.epochs.len();
        let limit_slacks = tier_slacks + self.epochs.len() * tiers.len();
        let time_slacks = limit_slacks + self.limits.len();
        let row = || vec![0.0; time_slacks + self.epochs.len()];
        let mut equations = Vec::new();
        let mut basis = Vec::new();
        for (group, sum) in self.groups.iter().enumerate() {
            let mut fractions = row();
            for (fraction, column) in fractions.iter_mut().zip(&self.columns) {
                *fraction = if column.group == group { 1.0 } else { 0.0 };
            }
            equations.push(Equation {
                coefficients: fractions,
                right_side: *sum,
            });
            // The first split of the group takes all of its samples.
            let first = self.columns.iter().position(|column| column.group == group);
            basis.push(first.unwrap_or(times));
        }
        for (epoch, Epoch { fixed, .. }) in self.epochs.iter().enumerate() {
            for (number, tier) in tiers.iter().enumerate() {
                let slack = tier_slacks + epoch * tiers.len() + number;
                let mut limit = row();
                for (seconds, column) in limit.iter_mut().zip(&self.columns) {
                    *seconds = if column.epoch == epoch {
                        tier(&column.load)
                    } else {
                        0.0
                    };
                }
                limit[times + epoch] = -1.0;
                limit[slack] = 1.0;
                equations.push(Equation {
                    coefficients: limit,
                    right_side: -tier(fixed),
                });
                basis.push(slack);
            }
        }
        for (number, limit) in self.limits.iter().enumerate() {
            let mut fractions = row();
            fractions[limit.column] = 1.0;
            if let Some(other) = limit.other {
                fractions[other] = -limit.ratio;
            }
            fractions[limit_slacks + number] = 1.0;
            equations.push(Equation {
                coefficients: fractions,
                right_side: limit.max,
            });
            basis.push(limit_slacks + number);
        }
        let mut sum = row();
        for (epoch, Epoch { weight, .. }) in self.epochs.iter().enumerate() {
            sum[times + epoch] = *weight;
            let mut upper_bound = row();
            upper_bound[times + epoch] = 1.0;
            upper_bound[time_slacks + epoch] = 1.0;
            equations.push(Equation {
                coefficients: upper_bound,
                right_side: UNBOUNDED_SECONDS,
            });
            basis.push(time_slacks + epoch);
        }

        // The start has to be feasible: the time of an epoch is that of its slowest tier for the first splits.
        for (epoch, Epoch { fixed, .. }) in self.epochs.iter().enumerate() {
            let seconds = |tier: usize| -> f64 {
                let first_splits = basis[..self.groups.len()].iter().zip(&self.groups);
                let variable: f64 = first_splits
                    .filter_map(|(column, fraction)| Some((self.columns.get(*column)?, fraction)))
                    .filter(|(column, _)| column.epoch == epoch)
                    .map(|(column, fraction)| tiers[tier](&column.load) * fraction)
                    .sum();
                variable + tiers[tier](fixed)
            };
            let slowest = (0..tiers.len()).max_by(|a, b| seconds(*a).total_cmp(&seconds(*b)));
            let row = self.groups.len() + epoch * tiers.len() + slowest.unwrap_or_default();
            basis[row] = times + epoch;
        }

        let mut tableau = Tableau::new(equations, basis);
        tableau.minimise(&sum);
        let best_seconds: Vec<f64> = (0..self.epochs.len())
            .map(|epoch| tableau.value(times + epoch))
            .collect();
        for (epoch, (best, bound)) in best_seconds.iter().zip(tie(&best_seconds)).enumerate() {
            tableau.set_slack(time_slacks + epoch, (bound - best).max(0.0));
        }
        let largest_bytes = self.columns.iter().map(|column| column.bytes).fold(0.0, f64::max);
        let mut objective = row();
        for (cost, column) in objective.iter_mut().zip(&self.columns) {
            let bytes = column.bytes + CPU_SECOND_COST_RATIO * largest_bytes * column.cpu_seconds;
            *cost = self.epochs[column.epoch].weight * bytes;
        }
        tableau.minimise(&objective);
        (0..self.columns.len())
            .map(|column| tableau.value(column))
            .collect()
    }
}
