//! The linear program of a plan.

use super::{Class, Load, simplex::Tableau};

/// What a second of the host's CPU is worth beside bytes, as a part of the largest value: little, and yet ten microseconds
/// are more than what the simplex method takes for rounding, which grows with the values.
const HOST_SECOND: f64 = 1e-4;

/// The share of each way. Two programs over the same constraints: first the least time of the slowest tier, then, up to
/// the time that `tie` makes of that, the fewest bytes, and for equal bytes the least of the host's CPU.
///
/// Each tier has something to do before any sample: `before`, for each of them.
///
/// Columns: the ways, the time `t`, a slack for each tier and one for `t`. Rows: each class is shared out whole; no tier
/// takes longer than `t`; `t` has a most.
pub(super) fn solve(
    classes: &[Class],
    ways: &[(usize, usize)],
    loads: &[Load],
    before: &Load,
    tie: impl Fn(f64) -> f64,
) -> Vec<f64> {
    /// More than any time: no bound yet.
    const OPEN: f64 = 1e12;
    let tiers: [fn(&Load) -> f64; 3] = [|load| load.gateway, |load| load.link, |load| load.host];
    let fixed = tiers.map(|tier| tier(before));
    let time = ways.len();
    let columns = time + 1 + tiers.len() + 1;
    let row = || vec![0.0; columns];
    let mut rows = Vec::new();
    let mut basis = Vec::new();
    for (index, class) in classes.iter().enumerate() {
        let mut shares = row();
        for (way, (of, _)) in ways.iter().enumerate() {
            shares[way] = if *of == index { 1.0 } else { 0.0 };
        }
        rows.push((shares, class.share));
        // All of it by the first way of the class.
        basis.push(ways.iter().position(|(of, _)| *of == index).unwrap_or(time));
    }
    for (slack, tier) in tiers.iter().enumerate() {
        let mut limit = row();
        for (way, load) in loads.iter().enumerate() {
            limit[way] = tier(load);
        }
        limit[time] = -1.0;
        limit[time + 1 + slack] = 1.0;
        rows.push((limit, -fixed[slack]));
        basis.push(time + 1 + slack);
    }
    let mut most = row();
    most[time] = 1.0;
    most[columns - 1] = 1.0;
    rows.push((most, OPEN));
    basis.push(columns - 1);

    // The start has to be feasible: `t` is what the slowest tier takes of the first ways.
    let slowest = (0..tiers.len()).max_by(|a, b| {
        let taken = |tier: usize| -> f64 {
            let first = basis[..classes.len()].iter().zip(classes);
            let taken: f64 = first
                .map(|(way, class)| loads.get(*way).map_or(0.0, tiers[tier]) * class.share)
                .sum();
            taken + fixed[tier]
        };
        taken(*a).total_cmp(&taken(*b))
    });
    basis[classes.len() + slowest.unwrap_or_default()] = time;

    let mut tableau = Tableau::new(rows, basis);
    let mut objective = row();
    objective[time] = 1.0;
    tableau.minimise(&objective);
    let best = tableau.value(time);
    tableau.bound(columns - 1, (tie(best) - best).max(0.0));
    let candidates = || {
        ways.iter()
            .map(|(class, place)| &classes[*class].candidates[*place])
    };
    let largest = candidates().map(|candidate| candidate.bytes).fold(0.0, f64::max);
    let mut objective = row();
    for (cost, candidate) in objective.iter_mut().zip(candidates()) {
        *cost = candidate.bytes + HOST_SECOND * largest * candidate.host_seconds;
    }
    tableau.minimise(&objective);
    (0..ways.len()).map(|way| tableau.value(way)).collect()
}
