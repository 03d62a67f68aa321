//! Statistics of a set: what its values cost, and who asks for them how often.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    RECENT,
    decayed::{DecayedCount, Mean},
    distinct::{DistinctCount, Sampled},
    float,
    tenants::{Hints, SetTenants},
    threshold::Threshold,
};
use crate::compute::Tenant;

/// Repeated requests for objects of the sample from which on a set counts as read more than once.
const MIN_REPEATS: f64 = 2.0;
/// And their minimum ratio of the requests for objects of the sample: a reader repeats some requests after failures.
const MIN_REPEAT_RATIO: f64 = 0.01;

/// Values from which on their means are known well enough.
const MIN_MEASURED: f64 = 32.0;

/// Statistics of a set.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SetStatistics {
    pub(super) tenants: SetTenants,
    pub(super) objects: DistinctCount,
    requests: DecayedCount,
    /// Requests for objects of the sample, and those of them that were not the first ones.
    sampled: DecayedCount,
    repeats: DecayedCount,
    last_request: Duration,
    last_repeat: Option<Duration>,
    value_bytes: Mean,
    saved_seconds: Mean,
    /// Requests and seconds saved by hits, since the set is known.
    total_requests: u64,
    total_saved_seconds: f64,
}

impl SetStatistics {
    pub(super) fn new(now: Duration) -> Self {
        Self {
            tenants: SetTenants::default(),
            objects: DistinctCount::default(),
            requests: DecayedCount::new(now),
            sampled: DecayedCount::new(now),
            repeats: DecayedCount::new(now),
            last_request: now,
            last_repeat: None,
            value_bytes: Mean::default(),
            saved_seconds: Mean::default(),
            total_requests: 0,
            total_saved_seconds: 0.0,
        }
    }

    pub(super) fn observe_request(
        &mut self,
        tenant: &Tenant,
        object_hash: u64,
        hints: Option<Hints>,
        now: Duration,
    ) {
        self.tenants.observe(tenant, hints, now);
        self.requests.add(now);
        self.total_requests += 1;
        self.last_request = self.last_request.max(now);
        let sampled = self.objects.add(object_hash);
        if sampled != Sampled::No {
            self.sampled.add(now);
        }
        if sampled == Sampled::Again {
            self.repeats.add(now);
            self.last_repeat = Some(now);
        }
    }

    pub(super) fn observe_value(&mut self, bytes: u64, saved_seconds: f64) {
        self.value_bytes.add(float(bytes));
        self.saved_seconds.add(saved_seconds);
    }

    pub(super) fn observe_hit(&mut self) {
        self.total_saved_seconds += self.saved_seconds().unwrap_or(0.0);
    }

    pub(super) const fn last_request(&self) -> Duration {
        self.last_request
    }

    pub(super) const fn total_requests(&self) -> u64 {
        self.total_requests
    }

    pub(super) const fn total_saved_seconds(&self) -> f64 {
        self.total_saved_seconds
    }

    pub(super) fn requests_per_second(&self, now: Duration) -> f64 {
        self.requests.per_second(now)
    }

    /// The mean seconds that a hit saves; `None` before the first value.
    pub(super) fn saved_seconds(&self) -> Option<f64> {
        self.saved_seconds.get()
    }

    /// The number of objects: counted, or announced if that is more.
    ///
    /// With an announcement the threshold is right before the objects have been counted.
    pub(super) fn object_count(&self) -> f64 {
        self.objects
            .estimate()
            .max(float(self.tenants.announced_samples()))
    }

    /// The bytes of the values of all objects; `None` before the first value.
    pub(super) fn all_bytes(&self) -> Option<f64> {
        let bytes = self.object_count() * self.value_bytes.get()?;
        (bytes > 0.0).then_some(bytes)
    }

    /// The part of all objects that is cached, from 0 to 1, if objects are admitted by this threshold.
    pub(super) fn cached_ratio(&self, threshold: Threshold) -> f64 {
        let requested_ratio = (self.objects.estimate() / self.object_count().max(1.0)).min(1.0);
        self.objects.admitted_ratio(threshold) * self.objects.cached_ratio(threshold) * requested_ratio
    }

    /// A hit is cheaper than computing.
    pub(super) fn is_worth_caching(&self) -> bool {
        self.saved_seconds().is_some_and(|seconds| seconds > 0.0)
    }

    /// Few values have been measured yet.
    pub(super) const fn is_hardly_measured(&self) -> bool {
        self.value_bytes.count() < MIN_MEASURED
    }

    /// Evidence that somebody is going to read the objects once more: a reader plans another epoch, or tenants or jobs share the
    /// set. Jobs of one tenant have no names: they show as repeated requests for objects of the sample.
    pub(super) fn is_reused(&self, now: Duration) -> bool {
        let repeats = self.repeats.get(now);
        let has_recent_repeat = self
            .last_repeat
            .is_some_and(|at| now.saturating_sub(at) <= RECENT);
        let has_repeats = has_recent_repeat
            && repeats >= MIN_REPEATS
            && repeats >= MIN_REPEAT_RATIO * self.sampled.get(now);
        has_repeats || self.tenants.plan_reuse() || self.tenants.recent(now).nth(1).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::object_hash, *};

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn read(set: &mut SetStatistics, tenant: &Tenant, epochs: u32, objects: u64, now: Duration) {
        let hints = Some(Hints {
            epochs,
            samples: objects,
        });
        for object in 0..objects {
            set.observe_request(tenant, object_hash(object), hints, now);
        }
    }

    fn set_with_values() -> SetStatistics {
        let mut set = SetStatistics::new(seconds(0));
        set.observe_value(100, 0.01);
        set
    }

    #[test]
    fn one_epoch_of_one_job_is_no_reuse() {
        let (mut set, tenant) = (set_with_values(), Tenant::default());
        read(&mut set, &tenant, 1, 5000, seconds(0));
        // A failed request is repeated.
        for object in 0..9 {
            set.observe_request(&tenant, object_hash(object), None, seconds(1));
        }
        assert!(!set.is_reused(seconds(1)));
    }

    #[test]
    fn another_epoch_another_tenant_or_another_job_is_reuse() {
        let tenants = [None, Some("other")].map(Tenant::from_access_key);
        let mut set = set_with_values();
        read(&mut set, &tenants[0], 2, 5000, seconds(0));
        assert!(set.is_reused(seconds(0)) && set.is_reused(seconds(9999)));

        let mut set = set_with_values();
        read(&mut set, &tenants[0], 1, 5000, seconds(0));
        read(&mut set, &tenants[1], 0, 1, seconds(600));
        assert!(set.is_reused(seconds(600)));
        assert!(!set.is_reused(seconds(601)));

        let mut set = set_with_values();
        for second in 0..2 {
            read(&mut set, &tenants[0], 1, 5000, seconds(second));
        }
        assert!(set.is_reused(seconds(601)));
        assert!(!set.is_reused(seconds(602)));
    }

    #[test]
    fn what_is_cheaper_to_compute_is_not_worth_caching() {
        let mut set = SetStatistics::new(seconds(0));
        read(&mut set, &Tenant::default(), 9, 100, seconds(0));
        assert!(!set.is_worth_caching(), "no value yet");
        for saved_seconds in [0.002, -0.003] {
            set.observe_value(100, saved_seconds);
        }
        assert!(!set.is_worth_caching());
    }

    #[test]
    fn objects_are_announced_or_counted() {
        let (mut set, tenant) = (set_with_values(), Tenant::default());
        let hints = Some(Hints {
            epochs: 1,
            samples: 4000,
        });
        set.observe_request(&tenant, object_hash(0), hints, seconds(0));
        assert_eq!((set.object_count(), set.all_bytes()), (4000.0, Some(400_000.0)));
        for object in 0..20_000 {
            set.observe_request(&tenant, object_hash(object), hints, seconds(0));
        }
        let count = set.object_count();
        assert!((18_000.0..22_000.0).contains(&count), "{count}");
    }
}
