//! The memory budget: one semaphore over all that requests hold, in KiB.

mod room;

use std::{sync::Arc, time::Duration};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::room::Room;
use super::{Ledger, Tenant, turnstile::Turnstile};
use crate::{
    error::{Error, ErrorKind, Result},
    telemetry::{GaugeGuard, Metrics},
};

/// What one unit of the semaphore stands for.
const UNIT: u64 = 1024;

/// The budget. Clones share it.
#[derive(Debug, Clone)]
pub struct Memory {
    units: Arc<Semaphore>,
    /// In front of the semaphore, whose own queue knows no tenants.
    turnstile: Turnstile,
    total: u64,
    waiting: Room,
    max_wait: Duration,
    metrics: Metrics,
}

/// Leave to hold some bytes, until it is dropped.
#[derive(Debug)]
pub struct Permit {
    units: OwnedSemaphorePermit,
    gauge: GaugeGuard,
    metrics: Metrics,
}

impl Memory {
    /// A budget of `total` bytes, for which at most `max_waiting` wait, of one tenant as many as places are left free, each
    /// for at most `max_wait`, in the order of `ledger`.
    pub fn build(
        total: u64,
        max_waiting: usize,
        max_wait: Duration,
        ledger: Ledger,
        metrics: Metrics,
    ) -> Self {
        let units = usize::try_from(total / UNIT)
            .unwrap_or(usize::MAX)
            .min(Semaphore::MAX_PERMITS);
        Self {
            units: Arc::new(Semaphore::new(units)),
            turnstile: Turnstile::new(ledger),
            total,
            waiting: Room::new(max_waiting),
            max_wait,
            metrics,
        }
    }

    /// The whole budget, in bytes.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Waits for `bytes` at once: tenants in their turns, each of them first come, first served.
    ///
    /// # Errors
    /// [`ErrorKind::EntityTooLarge`] for more than the whole budget, [`ErrorKind::SlowDown`] when too many wait
    /// or the wait takes too long.
    pub async fn acquire(&self, tenant: &Tenant, bytes: u64) -> Result<Permit> {
        let units = self.units_of(bytes)?;
        let free = || Arc::clone(&self.units).try_acquire_many_owned(units).ok();
        if let Some(permit) = self.turnstile.if_free(free) {
            return Ok(self.permit(permit));
        }
        let _place = self
            .waiting
            .enter(tenant)
            .ok_or_else(|| slow_down("too many requests wait for memory"))?;
        let _queued = self.metrics.queued();
        let started = tokio::time::Instant::now();
        let wait = async {
            let _turn = self.turnstile.enter(tenant).await.ok()?;
            Arc::clone(&self.units).acquire_many_owned(units).await.ok()
        };
        let permit = tokio::time::timeout(self.max_wait, wait).await;
        self.metrics.waited(started.elapsed());
        match permit {
            Ok(Some(permit)) => Ok(self.permit(permit)),
            Ok(None) => Err(slow_down("the gateway is stopping")),
            Err(_elapsed) => Err(slow_down("the memory budget stayed full")),
        }
    }

    /// Adds `bytes` to a permit without waiting: who holds memory must not wait for more.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn grow(&self, permit: &mut Permit, bytes: u64) -> Result<()> {
        let units = self.units_of(permit.bytes() + bytes)? - self.units_of(permit.bytes())?;
        let more = Arc::clone(&self.units)
            .try_acquire_many_owned(units)
            .map_err(|_| slow_down("the memory budget is full"))?;
        permit.units.merge(more);
        permit.gauge = self.metrics.permits(permit.bytes());
        Ok(())
    }

    fn permit(&self, units: OwnedSemaphorePermit) -> Permit {
        let gauge = self.metrics.permits(units.num_permits() as u64 * UNIT);
        Permit {
            units,
            gauge,
            metrics: self.metrics.clone(),
        }
    }

    fn units_of(&self, bytes: u64) -> Result<u32> {
        if bytes > self.total {
            return Err(Error::new(
                ErrorKind::EntityTooLarge,
                format!(
                    "the request needs {bytes} bytes of memory, more than the whole budget of {}",
                    self.total
                ),
            ));
        }
        u32::try_from(bytes.div_ceil(UNIT))
            .map_err(|_| slow_down("the request needs too much memory at once"))
    }
}

impl Permit {
    /// What is held.
    pub fn bytes(&self) -> u64 {
        self.units.num_permits() as u64 * UNIT
    }

    /// Gives back all but `bytes`.
    pub fn shrink_to(&mut self, bytes: u64) {
        let keep = usize::try_from(bytes.div_ceil(UNIT)).unwrap_or(usize::MAX);
        let spare = self.units.num_permits().saturating_sub(keep);
        drop(self.units.split(spare));
        self.gauge = self.metrics.permits(self.bytes());
    }
}

fn slow_down(why: &'static str) -> Error {
    Error::new(ErrorKind::SlowDown, format!("{why}; try again later"))
        .with_retry_after(Duration::from_secs(1))
}

#[cfg(test)]
mod tests;
