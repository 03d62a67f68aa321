//! Jobs, and a cache that follows the quotas.

use std::collections::BTreeSet;

use super::*;

/// The size of each value.
pub(super) const VALUE_BYTES: u64 = 100;

/// A job that reads all objects of a set once per epoch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Job {
    pub(super) set: u8,
    pub(super) tenant: &'static str,
    pub(super) hints: Option<Hints>,
    pub(super) objects: u64,
    pub(super) per_second: u32,
    pub(super) saved_seconds: f64,
}

/// A cache that follows the quotas. It evicts nothing: what it still has above a threshold is not counted as a hit.
pub(super) struct Cache {
    pub(super) quotas: Quotas,
    pub(super) cached: BTreeSet<(SetId, u64)>,
    pub(super) now: Duration,
    reallocated_at: Duration,
}

impl Cache {
    pub(super) fn new(memory_bytes: u64, disk_bytes: u64) -> Self {
        Self {
            quotas: Quotas::new(memory_bytes, disk_bytes, DAY, PIN_RATIO),
            cached: BTreeSet::new(),
            now: HOUR,
            reallocated_at: HOUR,
        }
    }

    /// One epoch of jobs that read at the same time. The result is the number of hits of each.
    pub(super) fn read(&mut self, jobs: &[Job]) -> Vec<u32> {
        let mut hits = vec![0; jobs.len()];
        for step in 0..jobs[0].objects {
            self.now += Duration::from_secs(1) / jobs[0].per_second;
            for (nth, (job, hits)) in jobs.iter().zip(&mut hits).enumerate() {
                // Jobs start at different objects.
                let object = (step + 1_234 * nth as u64) % job.objects;
                *hits += u32::from(self.request(job, object_hash(object)));
            }
            if self.now.saturating_sub(self.reallocated_at) >= REALLOCATION_INTERVAL {
                self.reallocate();
            }
        }
        hits
    }

    pub(super) fn request(&mut self, job: &Job, hash: u64) -> bool {
        let (set, tenant) = (set_id(job.set), Tenant::from_access_key(Some(job.tenant)));
        self.quotas
            .observe_request(set, &tenant, hash, job.hints, self.now);
        if self.quotas.placement(set, hash).is_some() && self.cached.contains(&(set, hash)) {
            self.quotas.observe_hit(set, hash);
            return true;
        }
        self.quotas
            .observe_value(set, hash, VALUE_BYTES, job.saved_seconds);
        if self.quotas.placement(set, hash).is_some() {
            self.cached.insert((set, hash));
        }
        false
    }

    /// The next reallocation is an interval after this time.
    pub(super) const fn reallocated_at(&mut self, now: Duration) {
        self.reallocated_at = now;
    }

    pub(super) fn reallocate(&mut self) {
        self.quotas.reallocate(self.now);
        self.reallocated_at = self.now;
    }

    /// The bytes that a set may use.
    pub(super) fn bytes(&self, set: u8) -> f64 {
        let set = self.quotas.sets.get(&set_id(set));
        set.map_or(0.0, |set| set.used_bytes().total())
    }

    pub(super) fn ratio(&self, set: u8) -> f64 {
        self.quotas.cached_ratio(set_id(set))
    }
}
