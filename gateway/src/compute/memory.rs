//! The memory budget: a semaphore, in KiB, over the memory of all requests.

mod wait_slots;

use std::{sync::Arc, time::Duration};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::wait_slots::WaitSlots;
use super::{Ledger, Tenant, fair_lock::FairLock};
use crate::{
    error::{Error, ErrorKind, Result},
    telemetry::{GaugeGuard, Metrics},
};

/// Bytes per permit of the semaphore.
const UNIT_BYTES: u64 = 1024;

/// The budget. Clones share it.
#[derive(Debug, Clone)]
pub struct Memory {
    units: Arc<Semaphore>,
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
    gauge: GaugeGuard,
    metrics: Arc<Metrics>,
}

impl Memory {
    /// A budget of `total_bytes`. At most `max_waiting` requests wait for it, each for at most `max_wait`, in the order of
    /// `ledger`. A tenant may use as many wait slots as it leaves free.
    pub fn build(
        total_bytes: u64,
        max_waiting: usize,
        max_wait: Duration,
        ledger: Ledger,
        metrics: Metrics,
    ) -> Self {
        let units = usize::try_from(total_bytes / UNIT_BYTES)
            .unwrap_or(usize::MAX)
            .min(Semaphore::MAX_PERMITS);
        Self {
            units: Arc::new(Semaphore::new(units)),
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

    /// Waits for `bytes` as a whole: fair between tenants, first come first served within a tenant.
    ///
    /// # Errors
    /// [`ErrorKind::EntityTooLarge`] for more than the whole budget; [`ErrorKind::SlowDown`] if too many requests wait or
    /// the wait takes too long.
    pub async fn acquire(&self, tenant: &Tenant, bytes: u64) -> Result<Permit> {
        let units = self.units(bytes)?;
        let free = || Arc::clone(&self.units).try_acquire_many_owned(units).ok();
        if let Some(permit) = self.wait_lock.run_if_free(free) {
            return Ok(self.permit(permit));
        }
        let _slot = self
            .wait_slots
            .acquire(tenant)
            .ok_or_else(|| slow_down("too many requests are waiting for memory"))?;
        let _queued = self.metrics.track_queued();
        let started = tokio::time::Instant::now();
        let wait = async {
            let _guard = self.wait_lock.lock(tenant).await.ok()?;
            Arc::clone(&self.units).acquire_many_owned(units).await.ok()
        };
        let permit = tokio::time::timeout(self.max_wait, wait).await;
        self.metrics.observe_queue_wait(started.elapsed());
        match permit {
            Ok(Some(permit)) => Ok(self.permit(permit)),
            Ok(None) => Err(slow_down("the gateway is stopping")),
            Err(_elapsed) => Err(slow_down("the wait for memory took too long")),
        }
    }

    /// Adds `bytes` to a permit without waiting: a request that has memory must not wait for more (deadlock).
    ///
    /// # Errors
    /// Like [`acquire`](Self::acquire).
    pub fn grow(&self, permit: &mut Permit, bytes: u64) -> Result<()> {
        let units = self.units(permit.bytes() + bytes)? - self.units(permit.bytes())?;
        let more = Arc::clone(&self.units)
            .try_acquire_many_owned(units)
            .map_err(|_| slow_down("the memory budget is full"))?;
        permit.units.merge(more);
        permit.gauge = self.metrics.track_memory(permit.bytes());
        Ok(())
    }

    fn permit(&self, units: OwnedSemaphorePermit) -> Permit {
        let gauge = self.metrics.track_memory(units.num_permits() as u64 * UNIT_BYTES);
        Permit {
            units,
            gauge,
            metrics: Arc::clone(&self.metrics),
        }
    }

    fn units(&self, bytes: u64) -> Result<u32> {
        if bytes > self.total_bytes {
            return Err(Error::new(
                ErrorKind::EntityTooLarge,
                format!(
                    "the request is too large: expected at most {} bytes of memory (the whole budget), found {bytes}",
                    self.total_bytes
                ),
            ));
        }
        u32::try_from(bytes.div_ceil(UNIT_BYTES))
            .map_err(|_| slow_down("the request requires too much memory at once"))
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
        self.gauge = self.metrics.track_memory(self.bytes());
        let rest = units.num_permits() as u64 * UNIT_BYTES;
        Some(Self {
            units,
            gauge: self.metrics.track_memory(rest),
            metrics: Arc::clone(&self.metrics),
        })
    }
}

fn slow_down(reason: &'static str) -> Error {
    Error::new(ErrorKind::SlowDown, format!("{reason}; try again later"))
        .with_retry_after(Duration::from_secs(1))
}

#[cfg(test)]
mod tests;
