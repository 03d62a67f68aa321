//! Accounts of the CPU time that tenants used.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;

use super::Tenant;

/// Credit of each tenant per round, in nanoseconds. Less than the cost of most work items, so that an unused rest is
/// worth little. Rounds in which no tenant has credit are skipped at once.
const QUANTUM_NANOSECONDS: i64 = 1_000_000;
/// Maximum number of accounts. One more clears all of them.
const MAX_ACCOUNTS: usize = 4096;

/// The accounts of all tenants in CPU time, for all queues together. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Ledger(Arc<Mutex<Accounts>>);

/// The accounts of the current round.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    /// Items that wait in all queues. While this is 0, no tenant delays another, and nothing is recorded.
    waiting: usize,
    /// CPU time of all tenants so far.
    total_time: Duration,
    /// Remaining credit in nanoseconds; negative for a debt. A tenant without an entry has a whole quantum.
    credit_nanoseconds: HashMap<Tenant, i64>,
}

impl Ledger {
    /// Charges a tenant's account for used CPU time.
    pub fn charge(&self, tenant: &Tenant, time: Duration) {
        let mut accounts = self.0.lock();
        accounts.total_time = accounts.total_time.saturating_add(time);
        if accounts.waiting == 0 || accounts.credit_nanoseconds.len() >= MAX_ACCOUNTS {
            accounts.credit_nanoseconds.clear();
        }
        if accounts.waiting > 0 {
            let time = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
            let credit = accounts
                .credit_nanoseconds
                .entry(tenant.clone())
                .or_insert(QUANTUM_NANOSECONDS);
            *credit = credit.saturating_sub(time);
        }
    }

    /// Moves a cost from one tenant's account to another's.
    pub(super) fn transfer(&self, from: &Tenant, to: &Tenant, time: Duration) {
        let mut accounts = self.0.lock();
        if accounts.waiting > 0 && accounts.credit_nanoseconds.len() < MAX_ACCOUNTS {
            let time = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
            for (tenant, cost) in [(from, -time), (to, time)] {
                let credit = accounts
                    .credit_nanoseconds
                    .entry(tenant.clone())
                    .or_insert(QUANTUM_NANOSECONDS);
                *credit = credit.saturating_sub(cost).min(QUANTUM_NANOSECONDS);
            }
        }
    }

    /// The CPU time of all tenants so far.
    pub(super) fn total_time(&self) -> Duration {
        self.0.lock().total_time
    }

    /// Reads or changes the accounts under their lock.
    pub(super) fn update<T>(&self, change: impl FnOnce(&mut Accounts) -> T) -> T {
        change(&mut self.0.lock())
    }

    #[cfg(test)]
    pub(super) fn account_count(&self) -> usize {
        self.0.lock().credit_nanoseconds.len()
    }
}

impl Accounts {
    /// Counts one more waiting item.
    pub(super) fn add_waiting(&mut self) {
        self.waiting += 1;
    }

    /// Counts `count` fewer waiting items.
    pub(super) fn remove_waiting(&mut self, count: usize) {
        self.waiting = self.waiting.saturating_sub(count);
    }

    /// The index of the first of these tenants that has credit. If none has, advances to the first round in which one has.
    pub(super) fn first_with_credit(&mut self, tenants: &VecDeque<Tenant>) -> Option<usize> {
        let first = |accounts: &Self| {
            tenants
                .iter()
                .position(|tenant| accounts.credit_nanoseconds(tenant) > 0)
        };
        first(self).or_else(|| {
            let max = tenants
                .iter()
                .map(|tenant| self.credit_nanoseconds(tenant))
                .max()?;
            self.advance_rounds(max.saturating_neg() / QUANTUM_NANOSECONDS + 1);
            first(self)
        })
    }

    fn credit_nanoseconds(&self, tenant: &Tenant) -> i64 {
        let credit = self.credit_nanoseconds.get(tenant).copied();
        credit.unwrap_or(QUANTUM_NANOSECONDS)
    }

    /// Adds the quanta of `rounds` rounds to each account. Unused credit of earlier rounds is lost.
    fn advance_rounds(&mut self, rounds: i64) {
        let quanta = rounds.saturating_mul(QUANTUM_NANOSECONDS);
        self.credit_nanoseconds.retain(|_, credit| {
            *credit = credit.saturating_add(quanta);
            *credit < QUANTUM_NANOSECONDS
        });
    }
}
