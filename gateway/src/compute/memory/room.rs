//! Places for those who wait, of which no tenant takes all.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use parking_lot::Mutex;

use crate::compute::Tenant;

/// A room with so many places. Clones share it.
///
/// A tenant may have as many places as are left free: one alone half of them, two a third each, and so on, so that whoever
/// comes new finds one. After Choudhury and Hahne, "Dynamic queue length thresholds for shared-memory packet switches"
/// (1998), with a factor of one.
#[derive(Debug, Clone)]
pub(super) struct Room {
    most: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// No tenant without a place is listed.
    of: HashMap<Tenant, usize>,
}

/// A place in the room, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    taken: Arc<Mutex<Taken>>,
    tenant: Tenant,
}

impl Room {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            taken: Arc::default(),
        }
    }

    /// Takes a place, if the tenant may have one more.
    pub(super) fn enter(&self, tenant: &Tenant) -> Option<Place> {
        let mut taken = self.taken.lock();
        let free = self.most.saturating_sub(taken.all);
        if taken.of.get(tenant).copied().unwrap_or_default() >= free {
            return None;
        }
        taken.all += 1;
        *taken.of.entry(tenant.clone()).or_default() += 1;
        Some(Place {
            taken: Arc::clone(&self.taken),
            tenant: tenant.clone(),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.taken.lock();
        taken.all -= 1;
        if let Entry::Occupied(mut places) = taken.of.entry(self.tenant.clone()) {
            *places.get_mut() -= 1;
            if *places.get() == 0 {
                places.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    fn fill(room: &Room, tenant: &Tenant) -> Vec<Place> {
        iter::from_fn(|| room.enter(tenant)).collect()
    }

    #[test]
    fn whoever_comes_new_finds_a_place() {
        let room = Room::new(64);
        let tenants = ["a", "b", "c", "d"].map(|key| Tenant::of(Some(key)));
        let places: Vec<_> = tenants.iter().map(|tenant| fill(&room, tenant)).collect();
        let counts: Vec<_> = places.iter().map(Vec::len).collect();
        assert_eq!(counts, [32, 16, 8, 4]);
        // Who left makes room for all.
        let [mut first, rest @ ..] = <[Vec<Place>; 4]>::try_from(places).unwrap();
        first.clear();
        assert_eq!(fill(&room, &tenants[3]).len(), 16);
        drop((first, rest));
        assert_eq!(fill(&room, &tenants[0]).len(), 32);
        let taken = room.taken.lock();
        assert!(taken.all == 0 && taken.of.is_empty(), "{taken:?}");
    }

    #[test]
    fn a_room_may_have_no_place() {
        assert!(Room::new(0).enter(&Tenant::default()).is_none());
        let one = Room::new(1);
        let place = one.enter(&Tenant::default());
        assert!(place.is_some() && one.enter(&Tenant::of(Some("b"))).is_none());
    }
}
