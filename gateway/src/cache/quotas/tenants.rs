//! The tenants that ask for objects of a set, and what their readers announced.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::RECENT;
use crate::compute::Tenant;

/// Maximum number of tenants of a set. One more displaces the one whose last request is the oldest.
const MAX_TENANTS: usize = 64;

/// What a reader announces with its requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// Epochs that the reader still plans, including this one; 0 for a single read.
    pub epochs: u32,
    /// Samples of its data set.
    pub samples: u64,
}

/// The tenants of a set.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Activity>", into = "Vec<Activity>")]
pub(super) struct SetTenants(Vec<Activity>);

/// The requests of a tenant for objects of a set.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Activity {
    #[serde(with = "access_key")]
    tenant: Tenant,
    last_request: Duration,
    /// The last request of a reader that plans more epochs after this one.
    last_plan: Option<Duration>,
    samples: Option<Announced>,
}

/// The largest number of samples that a reader of the tenant announced.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Announced {
    samples: u64,
    at: Duration,
}

impl SetTenants {
    /// Records a request.
    pub(super) fn observe(&mut self, tenant: &Tenant, hints: Option<Hints>, now: Duration) {
        if let Some(activity) = self.0.iter_mut().find(|activity| activity.tenant == *tenant) {
            activity.observe(hints, now);
            return;
        }
        if self.0.len() >= MAX_TENANTS {
            self.remove_oldest();
        }
        let mut activity = Activity {
            tenant: tenant.clone(),
            last_request: now,
            last_plan: None,
            samples: None,
        };
        activity.observe(hints, now);
        self.0.push(activity);
    }

    /// The number of samples that all recent tenants announced at least; 0 if one of them announced none.
    ///
    /// An announcement lowers the threshold of the set before its objects have been counted. It is the minimum, so that a
    /// tenant that announces too many loses only its own hits: the others announce fewer.
    pub(super) fn announced_samples(&self) -> u64 {
        let Some(newest) = self.0.iter().map(|activity| activity.last_request).max() else {
            return 0;
        };
        let recent = self
            .0
            .iter()
            .filter(|activity| newest.saturating_sub(activity.last_request) <= RECENT);
        recent.map(Activity::announced_samples).min().unwrap_or(0)
    }

    /// A reader plans to read the set once more. A plan lasts until the tenant's later requests announce none for 10 minutes,
    /// and through pauses.
    pub(super) fn plan_reuse(&self) -> bool {
        self.0.iter().any(Activity::plans_reuse)
    }

    /// The tenants that asked in the last 10 minutes.
    pub(super) fn recent(&self, now: Duration) -> impl Iterator<Item = &Tenant> {
        let is_recent = move |activity: &&Activity| now.saturating_sub(activity.last_request) <= RECENT;
        self.0.iter().filter(is_recent).map(|activity| &activity.tenant)
    }

    /// All tenants, in the order of their first requests.
    pub(super) fn all(&self) -> impl Iterator<Item = &Tenant> {
        self.0.iter().map(|activity| &activity.tenant)
    }

    /// Forgets tenants without a request for this time.
    pub(super) fn expire(&mut self, expiry: Duration, now: Duration) {
        self.0
            .retain(|activity| now.saturating_sub(activity.last_request) <= expiry);
    }

    fn remove_oldest(&mut self) {
        let oldest = self
            .0
            .iter()
            .enumerate()
            .min_by_key(|(_, activity)| activity.last_request);
        if let Some((index, _)) = oldest {
            self.0.remove(index);
        }
    }
}

impl From<Vec<Activity>> for SetTenants {
    fn from(mut tenants: Vec<Activity>) -> Self {
        tenants.truncate(MAX_TENANTS);
        Self(tenants)
    }
}

impl From<SetTenants> for Vec<Activity> {
    fn from(tenants: SetTenants) -> Self {
        tenants.0
    }
}

/// The saved form of a tenant.
pub(super) mod access_key {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    use crate::compute::Tenant;

    pub(in super::super) fn serialize<S: Serializer>(
        tenant: &Tenant,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        tenant.access_key().serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Tenant, D::Error> {
        let access_key = Option::<String>::deserialize(deserializer)?;
        Ok(Tenant::from_access_key(access_key.as_deref()))
    }
}

impl Activity {
    fn observe(&mut self, hints: Option<Hints>, now: Duration) {
        self.last_request = self.last_request.max(now);
        let Some(hints) = hints else { return };
        if hints.epochs > 1 {
            self.last_plan = Some(now);
        }
        // Readers of one tenant may read parts of the set: the largest part counts, as long as it is read.
        let is_superseded = |old: Announced| hints.samples >= old.samples || self.is_outdated(old.at);
        if hints.samples > 0 && self.samples.is_none_or(is_superseded) {
            self.samples = Some(Announced {
                samples: hints.samples,
                at: now,
            });
        }
    }

    fn announced_samples(&self) -> u64 {
        let samples = self.samples.filter(|announced| !self.is_outdated(announced.at));
        samples.map_or(0, |announced| announced.samples)
    }

    fn plans_reuse(&self) -> bool {
        self.last_plan.is_some_and(|at| !self.is_outdated(at))
    }

    /// The tenant's newer requests have not confirmed what was announced then.
    fn is_outdated(&self, at: Duration) -> bool {
        self.last_request.saturating_sub(at) > RECENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn minutes(minutes: u64) -> Duration {
        Duration::from_mins(minutes)
    }

    fn tenant(index: u64) -> Tenant {
        Tenant::from_access_key(Some(&format!("tenant {index}")))
    }

    const fn hints(epochs: u32, samples: u64) -> Hints {
        Hints { epochs, samples }
    }

    #[test]
    fn the_smallest_announcement_of_recent_tenants_counts() {
        let mut tenants = SetTenants::default();
        assert_eq!(tenants.announced_samples(), 0);
        tenants.observe(&tenant(0), Some(hints(1, u64::MAX)), minutes(0));
        assert_eq!(tenants.announced_samples(), u64::MAX);
        tenants.observe(&tenant(1), Some(hints(1, 500)), minutes(1));
        assert_eq!(tenants.announced_samples(), 500);
        tenants.observe(&tenant(2), None, minutes(2));
        assert_eq!(tenants.announced_samples(), 0);
        tenants.observe(&tenant(1), None, minutes(13));
        assert_eq!(tenants.announced_samples(), 0, "unconfirmed for 12 minutes");
        tenants.observe(&tenant(1), Some(hints(1, 400)), minutes(14));
        assert_eq!(tenants.announced_samples(), 400);
    }

    #[test]
    fn of_one_tenant_the_largest_announcement_counts() {
        let mut tenants = SetTenants::default();
        for minute in 0..15 {
            tenants.observe(&tenant(0), Some(hints(1, 500)), minutes(minute));
            tenants.observe(&tenant(0), Some(hints(1, 20)), minutes(minute));
            assert_eq!(tenants.announced_samples(), 500);
        }
        for minute in 15..30 {
            tenants.observe(&tenant(0), Some(hints(1, 20)), minutes(minute));
        }
        assert_eq!(tenants.announced_samples(), 20);
    }

    #[test]
    fn a_plan_lasts_until_newer_requests_have_none() {
        let mut tenants = SetTenants::default();
        tenants.observe(&tenant(0), Some(hints(1, 500)), minutes(0));
        assert!(!tenants.plan_reuse());
        tenants.observe(&tenant(0), Some(hints(2, 500)), minutes(1));
        tenants.observe(&tenant(0), Some(hints(1, 500)), minutes(11));
        assert!(tenants.plan_reuse());
        tenants.observe(&tenant(0), Some(hints(1, 500)), minutes(12));
        assert!(!tenants.plan_reuse());
        tenants.observe(&tenant(0), Some(hints(2, 500)), minutes(13));
        assert!(tenants.recent(minutes(99)).next().is_none() && tenants.plan_reuse());
        tenants.expire(minutes(60), minutes(99));
        assert!(!tenants.plan_reuse());
    }

    #[test]
    fn the_number_of_tenants_is_bounded() {
        let mut tenants = SetTenants::default();
        for index in 0..1000 {
            tenants.observe(&tenant(index), None, minutes(0) + Duration::from_millis(index));
            // Used all the time.
            tenants.observe(&tenant(0), None, minutes(0) + Duration::from_millis(index));
        }
        assert_eq!(tenants.all().count(), MAX_TENANTS);
        assert!(tenants.all().any(|other| *other == tenant(0)));
        assert!(tenants.all().any(|other| *other == tenant(999)));
    }
}
