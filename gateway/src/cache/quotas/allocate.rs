//! Divides a capacity between sets: to those that gain most per byte, within a fair bound per tenant.

use super::{SetId, float};

/// What a set can use.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Demand {
    pub(super) set: SetId,
    /// Seconds saved per second and cached byte. Each byte of a set gains the same: its objects are all requested as often.
    pub(super) gain_per_byte: f64,
    /// Whether the set has these bytes already. They come before those that a set does not have yet, whatever the gains.
    pub(super) is_held: bool,
    /// The bytes of all its values.
    pub(super) max_bytes: f64,
    /// The tenants that use it, numbered from 0. Its bytes are charged to them in equal parts. A set without tenants gets only
    /// what the others leave.
    pub(super) tenants: Vec<usize>,
}

/// The bytes of each set, in the order of `demands`.
///
/// Hits grow linearly with the cached bytes, since nothing is evicted, so without a bound for tenants this is the fractional
/// knapsack problem, which is solved exactly in the order of the gains (Dantzig, "Discrete-variable extremum problems",
/// 1957). First, a tenant gets at most its fair part, `capacity_bytes` by the number of tenants. Then, in the same order, the
/// sets get what is left. A set without a gain gets nothing.
pub(super) fn allocate(capacity_bytes: f64, demands: &[Demand]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..demands.len())
        .filter(|index| demands[*index].gain_per_byte > 0.0 && demands[*index].max_bytes > 0.0)
        .collect();
    order.sort_unstable_by(|one, other| {
        let (one, other) = (&demands[*one], &demands[*other]);
        let by_gain = other.gain_per_byte.total_cmp(&one.gain_per_byte);
        let by_gain = by_gain.then(one.set.cmp(&other.set));
        other.is_held.cmp(&one.is_held).then(by_gain)
    });

    let useful: Vec<&Demand> = order.iter().map(|index| &demands[*index]).collect();
    let mut accounts = Accounts::new(capacity_bytes, &useful);
    let mut free_bytes = capacity_bytes;
    let mut bytes = vec![0.0; demands.len()];
    for index in order.iter().copied() {
        let demand = &demands[index];
        bytes[index] = demand.max_bytes.min(accounts.room(demand)).min(free_bytes);
        accounts.charge(demand, bytes[index]);
        free_bytes -= bytes[index];
    }
    for index in order {
        let rest = (demands[index].max_bytes - bytes[index]).min(free_bytes);
        bytes[index] += rest;
        free_bytes -= rest;
    }
    bytes
}

/// What tenants have been charged.
struct Accounts {
    /// The fair part of a tenant.
    bound_bytes: f64,
    /// Charged bytes by tenant.
    charged_bytes: Vec<f64>,
}

impl Accounts {
    fn new(capacity_bytes: f64, demands: &[&Demand]) -> Self {
        let tenants = || demands.iter().flat_map(|demand| demand.tenants.iter().copied());
        let numbers = tenants().max().map_or(0, |last| last + 1);
        let mut is_active = vec![false; numbers];
        for tenant in tenants() {
            is_active[tenant] = true;
        }
        let active = is_active.into_iter().filter(|is_active| *is_active).count();
        Self {
            bound_bytes: capacity_bytes / float(active.max(1) as u64),
            charged_bytes: vec![0.0; numbers],
        }
    }

    /// The bytes that the set may get until one of its tenants has its fair part.
    fn room(&self, demand: &Demand) -> f64 {
        let charged = demand.tenants.iter().map(|tenant| self.charged_bytes[*tenant]);
        let most_charged = charged.fold(f64::NEG_INFINITY, f64::max);
        if most_charged == f64::NEG_INFINITY {
            return 0.0;
        }
        (self.bound_bytes - most_charged).max(0.0) * float(demand.tenants.len() as u64)
    }

    fn charge(&mut self, demand: &Demand, bytes: f64) {
        for tenant in &demand.tenants {
            self.charged_bytes[*tenant] += bytes / float(demand.tenants.len() as u64);
        }
    }
}

#[cfg(test)]
mod tests;
