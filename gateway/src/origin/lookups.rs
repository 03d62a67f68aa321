//! Look-ups of hosts that callers choose: limited in number and in time, so that names that do not exist delay no other host for long.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use pushdown::wire::StoreHost;
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};

use super::{open_hosts::MAX_OPEN_HOSTS, resolver::Resolver};

/// Look-ups in flight of hosts that the operator named, as many of hosts that were found before, and as many of others. Each takes a
/// thread until the system answers, which the gateway cannot hasten.
pub(super) const MAX_LOOKUPS: usize = 64;

/// All look-ups of hosts that callers choose. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Lookups {
    named: Arc<Semaphore>,
    known: Arc<Semaphore>,
    unknown: Arc<Semaphore>,
    found: Arc<Mutex<FoundHosts>>,
    limit: Duration,
}

/// Why the addresses of a host are not known.
#[derive(Debug)]
pub(super) enum LookupError {
    /// [`MAX_LOOKUPS`] others were being looked up all the time.
    TooMany,
    /// The resolver failed, or took too long.
    Failed(io::Error),
}

/// The hosts that were found last, at most [`MAX_OPEN_HOSTS`].
#[derive(Debug, Default)]
struct FoundHosts {
    times: HashMap<StoreHost, u64>,
    by_time: BTreeMap<u64, StoreHost>,
    now: u64,
}

impl Lookups {
    /// Each may take as long as `limit`, with the time until it begins.
    pub(super) fn new(limit: Duration) -> Self {
        let [named, known, unknown] = [(); 3].map(|()| Arc::new(Semaphore::new(MAX_LOOKUPS)));
        Self {
            named,
            known,
            unknown,
            found: Arc::default(),
            limit,
        }
    }

    /// The addresses of a host with this name. Hosts that were found before and those that are `named` by the operator do not wait for
    /// others.
    pub(super) async fn find<R: Resolver>(
        &self,
        resolver: &R,
        host: &StoreHost,
        name: &str,
        is_named: bool,
    ) -> Result<Vec<IpAddr>, LookupError> {
        let deadline = Instant::now() + self.limit;
        let lookups = if is_named {
            &self.named
        } else if self.found.lock().times.contains_key(host) {
            &self.known
        } else {
            &self.unknown
        };
        let lookups = Arc::clone(lookups);
        let Ok(permit) = timeout_at(deadline, lookups.acquire_owned()).await else {
            return Err(LookupError::TooMany);
        };
        let lookup = resolver.resolve(name);
        // A separate task, which keeps its place if nobody waits any more: the system's look-up goes on.
        let lookup = tokio::spawn(async move {
            let addresses = lookup.await;
            drop(permit);
            addresses
        });
        let addresses = match timeout_at(deadline, lookup).await {
            Ok(Ok(addresses)) => addresses.map_err(LookupError::Failed)?,
            Ok(Err(error)) => return Err(LookupError::Failed(io::Error::other(error))),
            Err(_elapsed) => {
                let message = format!("the host was not looked up within {:?}", self.limit);
                return Err(LookupError::Failed(io::Error::new(
                    io::ErrorKind::TimedOut,
                    message,
                )));
            }
        };
        if !is_named {
            self.found.lock().add(host.clone());
        }
        Ok(addresses)
    }
}

impl FoundHosts {
    fn add(&mut self, host: StoreHost) {
        self.now += 1;
        if let Some(before) = self.times.insert(host.clone(), self.now) {
            self.by_time.remove(&before);
        }
        self.by_time.insert(self.now, host);
        if self.times.len() > MAX_OPEN_HOSTS
            && let Some((_, oldest)) = self.by_time.pop_first()
        {
            self.times.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_that_were_found_last_are_remembered() {
        let mut found = FoundHosts::default();
        let host = |number: usize| StoreHost::Name(format!("bucket-{number}.s3.example"));
        for number in (0..MAX_OPEN_HOSTS)
            .chain([0])
            .chain(MAX_OPEN_HOSTS..MAX_OPEN_HOSTS + 10)
        {
            found.add(host(number));
        }
        assert_eq!(
            (found.times.len(), found.by_time.len()),
            (MAX_OPEN_HOSTS, MAX_OPEN_HOSTS)
        );
        assert!(found.times.contains_key(&host(0)) && found.times.contains_key(&host(MAX_OPEN_HOSTS + 9)));
        assert!((1..=10).all(|number| !found.times.contains_key(&host(number))));
    }
}
