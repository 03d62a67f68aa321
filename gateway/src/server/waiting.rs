//! The places of connections that wait for a slot. A client has a part of them, so that none keeps the others from waiting.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::slots::ClientAddress;
use crate::config::Network;

/// Connections that may wait, as a part of all slots.
const PART_OF_SLOTS: usize = 8;

/// Fewest connections that may wait.
const MIN_PLACES: usize = 16;

/// Those of one client, as a part of the places. A proxy may have all.
const PART_OF_CLIENT: usize = 4;

/// All places.
#[derive(Debug)]
pub(super) struct WaitingPlaces {
    places: usize,
    taken: Mutex<HashMap<Network, usize>>,
}

/// A place of a connection, until it is dropped.
#[derive(Debug)]
pub(super) struct WaitingPlace {
    places: Arc<WaitingPlaces>,
    client: Network,
}

impl WaitingPlaces {
    /// The places beside this many slots.
    pub(super) fn new(slots: usize) -> Self {
        Self {
            places: (slots / PART_OF_SLOTS).max(MIN_PLACES),
            taken: Mutex::default(),
        }
    }

    /// A place for a connection of this client, if it may have another one.
    pub(super) fn take(self: &Arc<Self>, client: ClientAddress) -> Option<WaitingPlace> {
        let ClientAddress { client, is_proxy } = client;
        let mut taken = self.taken.lock();
        let all: usize = taken.values().sum();
        let own = taken.get(&client).copied().unwrap_or_default();
        if all >= self.places || !is_proxy && own >= self.places / PART_OF_CLIENT {
            return None;
        }
        taken.insert(client, own + 1);
        Some(WaitingPlace {
            places: Arc::clone(self),
            client,
        })
    }
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock();
        if let Some(own) = taken.get_mut(&self.client) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(address: [u8; 4], is_proxy: bool) -> ClientAddress {
        ClientAddress {
            client: Network::from(std::net::IpAddr::from(address)),
            is_proxy,
        }
    }

    #[test]
    fn a_client_has_a_quarter_of_the_places() {
        let places = Arc::new(WaitingPlaces::new(1024));
        let take = |address, is_proxy| places.take(client(address, is_proxy));
        let mut taken: Vec<_> = (0..32).map(|_| take([10, 0, 0, 1], false).unwrap()).collect();
        assert!(take([10, 0, 0, 1], false).is_none());
        taken.extend((0..96).map(|_| take([10, 0, 0, 9], true).unwrap()));
        assert!(take([10, 0, 0, 9], true).is_none() && take([10, 0, 0, 2], false).is_none());
        taken.remove(0);
        assert!(take([10, 0, 0, 2], false).is_some());
        drop(taken);
        assert!(places.taken.lock().is_empty());
        assert_eq!(WaitingPlaces::new(3).places, 16);
    }
}
