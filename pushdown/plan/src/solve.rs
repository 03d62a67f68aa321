//! The linear program of a plan.

use super::{
    Candidate, Class, Load,
    simplex::{Equation, Tableau},
};

/// Cost of a CPU second on the host, as a ratio of the bytes of the largest value. Small, yet ten microseconds exceed what the
/// simplex method takes for rounding, which grows with the values.
const HOST_SECOND_COST_RATIO: f64 = 1e-4;

/// A candidate of a class, by indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SplitIndex {
    pub(super) class: usize,
    pub(super) candidate: usize,
}

impl SplitIndex {
    pub(super) fn candidate(self, classes: &[Class]) -> &Candidate {
        &classes[self.class].candidates[self.candidate]
    }
}

/// Returns the share of each split. Solves two programs over the same constraints: the first minimises the time of the slowest
/// tier; the second, within `tie(time)`, minimises the bytes, and for equal bytes the CPU time on the host.
///
/// `fixed_load` is the load of each tier per sample that no share changes.
///
/// Columns: the splits, the time `t`, a slack for each tier and one for `t`. Rows: the shares of each class sum to that of the
/// class; no tier takes longer than `t`; `t` has an upper bound.
pub(super) fn solve(
    classes: &[Class],
    splits: &[SplitIndex],
    loads: &[Load],
    fixed_load: &Load,
    tie: impl Fn(f64) -> f64,
) -> Vec<f64> {
    /// Longer than any time: no upper bound yet.
    const UNBOUNDED_SECONDS: f64 = 1e12;
    let tiers: [fn(&Load) -> f64; 3] = [
        |load| load.gateway_seconds,
        |load| load.link_seconds,
        |load| load.host_seconds,
    ];
    let fixed_seconds = tiers.map(|tier| tier(fixed_load));
    let time = splits.len();
    let columns = time + 1 + tiers.len() + 1;
    let row = || vec![0.0; columns];
    let mut equations = Vec::new();
    let mut basis = Vec::new();
    for (index, class) in classes.iter().enumerate() {
        let mut shares = row();
        for (column, split) in splits.iter().enumerate() {
            shares[column] = if split.class == index { 1.0 } else { 0.0 };
        }
        equations.push(Equation {
            coefficients: shares,
            right_side: class.share,
        });
        // The first split of the class takes all of its samples.
        let first = splits.iter().position(|split| split.class == index);
        basis.push(first.unwrap_or(time));
    }
    for (slack, tier) in tiers.iter().enumerate() {
        let mut limit = row();
        for (split, load) in loads.iter().enumerate() {
            limit[split] = tier(load);
        }
        limit[time] = -1.0;
        limit[time + 1 + slack] = 1.0;
        equations.push(Equation {
            coefficients: limit,
            right_side: -fixed_seconds[slack],
        });
        basis.push(time + 1 + slack);
    }
    let mut upper_bound = row();
    upper_bound[time] = 1.0;
    upper_bound[columns - 1] = 1.0;
    equations.push(Equation {
        coefficients: upper_bound,
        right_side: UNBOUNDED_SECONDS,
    });
    basis.push(columns - 1);

    // The start has to be feasible: `t` is the time of the slowest tier for the first splits.
    let slowest = (0..tiers.len()).max_by(|a, b| {
        let seconds = |tier: usize| -> f64 {
            let first_splits = basis[..classes.len()].iter().zip(classes);
            let variable: f64 = first_splits
                .map(|(split, class)| loads.get(*split).map_or(0.0, tiers[tier]) * class.share)
                .sum();
            variable + fixed_seconds[tier]
        };
        seconds(*a).total_cmp(&seconds(*b))
    });
    basis[classes.len() + slowest.unwrap_or_default()] = time;

    let mut tableau = Tableau::new(equations, basis);
    let mut objective = row();
    objective[time] = 1.0;
    tableau.minimise(&objective);
    let best_seconds = tableau.value(time);
    tableau.set_slack(columns - 1, (tie(best_seconds) - best_seconds).max(0.0));
    let candidates = || splits.iter().map(|split| split.candidate(classes));
    let largest_bytes = candidates().map(|candidate| candidate.bytes).fold(0.0, f64::max);
    let mut objective = row();
    for (cost, candidate) in objective.iter_mut().zip(candidates()) {
        *cost = candidate.bytes + HOST_SECOND_COST_RATIO * largest_bytes * candidate.host_seconds;
    }
    tableau.minimise(&objective);
    (0..splits.len()).map(|split| tableau.value(split)).collect()
}
