//! What tenants have used of their share of the CPU.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;

use super::Tenant;

/// What each tenant is given in a round, in nanoseconds. Less than most work costs, so that an unused rest is worth
/// little; rounds in which nobody may run are not gone through one by one.
const QUANTUM: i64 = 1_000_000;
/// Tenants that are remembered at a time; one more, and all begin anew.
const MOST_ACCOUNTS: usize = 4096;

/// The accounts of all tenants, in CPU time, whichever queue they wait in. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Ledger(Arc<Mutex<Accounts>>);

/// Accounts in one round.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    /// What waits, in all queues. While nothing does, nobody takes anything from anyone, and nothing is noted.
    waiting: usize,
    /// CPU time of all tenants so far.
    spent: Duration,
    /// Nanoseconds that a tenant may still use, or has used too much; who is not here has a whole quantum.
    credit: HashMap<Tenant, i64>,
}

impl Ledger {
    /// Takes CPU time that a tenant has used from its account.
    pub fn charge(&self, tenant: &Tenant, time: Duration) {
        let mut accounts = self.0.lock();
        accounts.spent = accounts.spent.saturating_add(time);
        if accounts.waiting == 0 || accounts.credit.len() >= MOST_ACCOUNTS {
            accounts.credit.clear();
        }
        if accounts.waiting > 0 {
            let time = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
            let credit = accounts.credit.entry(tenant.clone()).or_insert(QUANTUM);
            *credit = credit.saturating_sub(time);
        }
    }

    /// The CPU time of all tenants so far.
    pub(super) fn spent(&self) -> Duration {
        self.0.lock().spent
    }

    /// Changes, or looks at, the accounts.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut Accounts) -> T) -> T {
        change(&mut self.0.lock())
    }

    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.0.lock().credit.len()
    }
}

impl Accounts {
    /// Something more waits.
    pub(super) fn enter(&mut self) {
        self.waiting += 1;
    }

    /// So many wait no longer.
    pub(super) fn leave(&mut self, count: usize) {
        self.waiting = self.waiting.saturating_sub(count);
    }

    /// The place of the first of these tenants, in their order, who has credit. Where none has, the rounds pass that
    /// it takes until one has.
    pub(super) fn first(&mut self, tenants: &VecDeque<Tenant>) -> Option<usize> {
        let place = |accounts: &Self| tenants.iter().position(|tenant| accounts.credit(tenant) > 0);
        place(self).or_else(|| {
            let most = tenants.iter().map(|tenant| self.credit(tenant)).max()?;
            self.pass(most.saturating_neg() / QUANTUM + 1);
            place(self)
        })
    }

    fn credit(&self, tenant: &Tenant) -> i64 {
        self.credit.get(tenant).copied().unwrap_or(QUANTUM)
    }

    /// Gives each tenant its quantum of so many rounds; what was not used of earlier ones is lost.
    fn pass(&mut self, rounds: i64) {
        let given = rounds.saturating_mul(QUANTUM);
        self.credit.retain(|_, credit| {
            *credit = credit.saturating_add(given);
            *credit < QUANTUM
        });
    }
}
