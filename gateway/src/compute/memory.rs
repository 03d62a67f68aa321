//! The memory budget: a semaphore, in KiB, over the memory of all requests.

mod unverified;
mod wait_slots;

use std::{sync::Arc, time::Duration};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::{
    unverified::{SizeBudget, UnverifiedBudget},
    wait_slots::WaitSlots,
};
use super::{Ledger, Tenant, fair_lock::FairLock};
use crate::{
    config::UnverifiedBytes,
    error::{Error, ErrorKind, Result},
    telemetry::{GaugeGuard, Metrics},
};

/// Bytes per permit of the semaphore.
const UNIT_BYTES: u64 = 1024;

/// The budget. Clones share it.
#[derive(Debug, Clone)]
pub struct Memory {
    units: Arc<Semaphore>,
    /// What unverified callers may have of the same budget.
    unverified: UnverifiedBudget,
    /// Held while waiting for the semaphore, whose own queue is not fair between tenants.
    wait_lock: FairLock,
    total_bytes: u64,
    wait_slots: WaitSlots,
    max_wait: Duration,
    metrics: Arc<Metrics>,
}

/// A reservation of some bytes, until it is dropped.
#[derive(Debug)]
pub struct Permit {
    units: OwnedSemaphorePermit,
    /// As many, of those for unverified callers.
    unverified_units: Option<OwnedSemaphorePermit>,
    gauge: GaugeGuard,
    metrics: Arc<Metrics>,
}

impl Memory {
    /// A budget of `total_bytes`, of which unverified callers together may have `unverified`. At most `max_waiting`
    /// requests wait for it, each for at most `max_wait`, in the order of `ledger`. A tenant may use as many wait slots as it
    /// leaves free.
    pub fn build(
        total_bytes: u64,
        unverified: UnverifiedBytes,
        max_waiting: usize,
        max_wait: Duration,
        ledger: Ledger,
        metrics: Metrics,
    ) -> Self {
        Self {
            units: semaphore(total_bytes),
            unverified: UnverifiedBudget::new(unverified),
            wait_lock: FairLock::new(ledger),
            total_bytes,
            wait_slots: WaitSlots::new(max_waiting),
            max_wait,
            metrics: Arc::new(metrics),
        }
    }

    /// The whole budget, in bytes.
    pub const fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// The most bytes that a tenant may have.
    pub fn max_bytes(&self, tenant: &Tenant) -> u64 {
        let budget = tenant.unverified_body().map(|size| self.unverified.of(size));
        budget.map_or(self.total_bytes, |budget| budget.total_bytes)
    }

    /// Whether another caller waits for memory that only the bodies of this unverified tenant use.
    pub fn is_contended(&self, tenant: &Tenant) -> bool {
        let budget = tenant.unverified_body().map(|size| self.unverified.of(size));
        budget.is_some_and(SizeBudget::is_awaited)
    }

    /// Waits for `bytes` as a whole: fair between tenants, first come first served within a tenant.
    ///
    /// # Errors
    /// [`ErrorKind::EntityTooLarge`] for more than [`max_bytes`](Self::max_bytes); [`ErrorKind::SlowDown`] if too many requests
    /// wait or the wait takes too long.
    pub async fn acquire(&self, tenant: &Tenant, bytes: u64) -> Result<Permit> {
        let units = units(bytes, self.max_bytes(tenant))?;
        let budget = tenant.unverified_body().map(|size| self.unverified.of(size));
        if let Some(permit) = self.acquire_free(units, budget.map(|budget| &budget.units)) {
            return Ok(permit);
        }
        let _slot = self
            .wait_slots
            .acquire(tenant)
            .ok_or_else(|| slow_down("too many requests are waiting for memory"))?;
        let _queued = self.metrics.track_queued();
        let started = tokio::time::Instant::now();
        let wait = async {
            let acquire = |all: &Arc<Semaphore>| Arc::clone(all).acquire_many_owned(units);
            // Before the lock: who waits for these does not delay others.
            let unverified = match budget {
                Some(budget) => {
                    let _waiting = budget.wait();
                    Some(acquire(&budget.units).await.ok()?)
                }
                None => None,
            };
            let _guard = self.wait_lock.lock(tenant).await.ok()?;
            let units = acquire(&self.units).await.ok()?;
            Some(self.permit(units, unverified))
        };
        let permit = tokio::time::timeout(self.max_wait, wait).await;
        self.metrics.observe_queue_wait(started.elapsed());
        match permit {
            Ok(Some(permit)) => Ok(permit),
            Ok(None) => Err(slow_down("the gateway is stopping")),
            Err(_elapsed) if budget.is_some() => Err(slow_down(
                "the wait for memory took too long: callers that are not verified share a part of it",
            )),
            Err(_elapsed) => Err(slow_down("the wait for memory took too long")),
        }
    }

    /// `bytes` for a request of a verified caller, if they are free and nobody waits: a request that has memory must not wait for more
    /// (deadlock).
    pub fn try_acquire(&self, bytes: u64) -> Option<Permit> {
        self.acquire_free(units(bytes, self.total_bytes).ok()?, None)
    }

    fn acquire_free(&self, units: u32, unverified: Option<&Arc<Semaphore>>) -> Option<Permit> {
        self.wait_lock.run_if_free(|| {
            let try_acquire = |all: &Arc<Semaphore>| Arc::clone(all).try_acquire_many_owned(units).ok();
            let unverified = match unverified {
                Some(all) => Some(try_acquire(all)?),
                None => None,
            };
            Some(self.permit(try_acquire(&self.units)?, unverified))
        })
    }

    /// Adds `bytes` to a permit of a verified caller without waiting: a request that has memory must not wait for more
    /// (deadlock).
    ///
    /// # Errors
    /// Like [`acquire`](Self::acquire).
    pub fn grow(&self, permit: &mut Permit, bytes: u64) -> Result<()> {
        let all = self.total_bytes;
        let units = units(permit.bytes() + bytes, all)? - units(permit.bytes(), all)?;
        let more = Arc::clone(&self.units)
            .try_acquire_many_owned(units)
            .map_err(|_| slow_down("the memory budget is full"))?;
        permit.units.merge(more);
        permit.gauge = self.metrics.track_memory(permit.bytes());
        Ok(())
    }

    fn permit(&self, units: OwnedSemaphorePermit, unverified: Option<OwnedSemaphorePermit>) -> Permit {
        let gauge = self.metrics.track_memory(units.num_permits() as u64 * UNIT_BYTES);
        Permit {
            units,
            unverified_units: unverified,
            gauge,
            metrics: Arc::clone(&self.metrics),
        }
    }
}

impl Permit {
    /// The reserved bytes.
    pub fn bytes(&self) -> u64 {
        self.units.num_permits() as u64 * UNIT_BYTES
    }

    /// Releases all but `bytes`.
    pub fn shrink_to(&mut self, bytes: u64) {
        drop(self.split_at(bytes));
    }

    /// Keeps `bytes`, and returns the rest. `None` if there is no rest.
    pub fn split_at(&mut self, bytes: u64) -> Option<Self> {
        let kept = usize::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(usize::MAX);
        let spare = self.units.num_permits().checked_sub(kept)?;
        let units = self.units.split(spare)?;
        let unverified_units = self
            .unverified_units
            .as_mut()
            .and_then(|unverified| unverified.split(spare));
        self.gauge = self.metrics.track_memory(self.bytes());
        let rest = units.num_permits() as u64 * UNIT_BYTES;
        Some(Self {
            units,
            unverified_units,
            gauge: self.metrics.track_memory(rest),
            metrics: Arc::clone(&self.metrics),
        })
    }

    /// Counts the bytes no longer as those of an unverified caller.
    pub fn mark_verified(&mut self) {
        self.unverified_units = None;
    }
}

fn semaphore(bytes: u64) -> Arc<Semaphore> {
    let units = usize::try_from(bytes / UNIT_BYTES).unwrap_or(usize::MAX);
    Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS)))
}

/// The units of `bytes`, if these are at most `max_bytes`.
fn units(bytes: u64, max_bytes: u64) -> Result<u32> {
    if bytes > max_bytes {
        return Err(Error::new(
            ErrorKind::EntityTooLarge,
            format!("the request is too large: expected at most {max_bytes} bytes of memory, found {bytes}"),
        ));
    }
    u32::try_from(bytes.div_ceil(UNIT_BYTES))
        .map_err(|_| slow_down("the request requires too much memory at once"))
}

fn slow_down(reason: &'static str) -> Error {
    Error::new(ErrorKind::SlowDown, format!("{reason}; try again later"))
        .with_retry_after(Duration::from_secs(1))
}

#[cfg(test)]
mod tests;
