//! The hosts with open connections: callers choose them, so that their number is limited.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use pushdown::wire::StoreHost;

use crate::telemetry::Metrics;

/// Maximum hosts that have open connections at a time. With virtual hosts, each bucket is one.
pub(super) const MAX_OPEN_HOSTS: usize = 1000;

/// The hosts with open connections, and how many each of them has.
#[derive(Debug, Clone, Default)]
pub(super) struct OpenHosts(Arc<Counted>);

#[derive(Debug, Default)]
struct Counted {
    connections: Mutex<HashMap<StoreHost, usize>>,
    metrics: Metrics,
}

/// A connection of a host, counted until this is dropped.
#[derive(Debug)]
pub(super) struct OpenHost {
    hosts: OpenHosts,
    host: StoreHost,
}

impl OpenHosts {
    /// No hosts yet. Their number is one of `metrics`.
    pub(super) fn new(metrics: Metrics) -> Self {
        Self(Arc::new(Counted {
            connections: Mutex::default(),
            metrics,
        }))
    }

    /// Whether there are [`MAX_OPEN_HOSTS`] others.
    pub(super) fn is_full_for(&self, host: &StoreHost) -> bool {
        is_full_for(&self.0.connections.lock(), host)
    }

    /// Counts a connection to a host. `None` if there are [`MAX_OPEN_HOSTS`] others.
    pub(super) fn open(&self, host: &StoreHost) -> Option<OpenHost> {
        let mut hosts = self.0.connections.lock();
        if is_full_for(&hosts, host) {
            return None;
        }
        *hosts.entry(host.clone()).or_default() += 1;
        self.0.metrics.set_store_hosts(hosts.len());
        Some(OpenHost {
            hosts: self.clone(),
            host: host.clone(),
        })
    }
}

fn is_full_for(hosts: &HashMap<StoreHost, usize>, host: &StoreHost) -> bool {
    !hosts.contains_key(host) && hosts.len() >= MAX_OPEN_HOSTS
}

impl Drop for OpenHost {
    fn drop(&mut self) {
        let Counted { connections, metrics } = &*self.hosts.0;
        let mut hosts = connections.lock();
        if let Some(connections) = hosts.get_mut(&self.host) {
            *connections -= 1;
            if *connections == 0 {
                hosts.remove(&self.host);
                metrics.set_store_hosts(hosts.len());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_host_waits_until_another_has_no_connections() {
        let hosts = OpenHosts::default();
        let host = |number: usize| StoreHost::Name(format!("bucket-{number}.s3.example"));
        let mut open: Vec<_> = (0..MAX_OPEN_HOSTS)
            .map(|number| hosts.open(&host(number)).unwrap())
            .collect();
        assert!(hosts.open(&host(MAX_OPEN_HOSTS)).is_none());
        let second = hosts.open(&host(0));
        assert!(second.is_some());
        open.remove(0);
        assert!(hosts.open(&host(MAX_OPEN_HOSTS)).is_none());
        drop(second);
        assert!(hosts.open(&host(MAX_OPEN_HOSTS)).is_some());
        drop(open);
        assert!(hosts.0.connections.lock().is_empty());
    }
}
