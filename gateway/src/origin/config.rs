//! The configuration of connections to stores.

use std::{io, path::PathBuf, sync::Arc};

use http::Uri;

use super::{
    AllowedStores, Origin, OwnStore, StallTimeouts, StatedStores, client, connector::HostCheck,
    endpoint::Endpoint,
};
use crate::{
    config::{AllowedStore, Limits, Stores},
    s3::AddressStyle,
    telemetry::Metrics,
};

/// Addresses of stores, and timeouts.
#[derive(Debug, Clone)]
pub struct Config {
    /// The gateway's own store. `None` if requests state theirs.
    pub own: Option<OwnStoreConfig>,
    /// The stores that requests may state. `None` if they may not: in re-sign mode.
    pub stated: Option<Stores>,
    /// Timeouts of requests to stores.
    pub limits: Limits,
    /// Whether a request may only be sent with a [`Signing`](super::Signing): in re-sign mode.
    pub requires_signing: bool,
}

/// The gateway's own store.
#[derive(Debug, Clone)]
pub struct OwnStoreConfig {
    /// Scheme and authority of the store.
    pub url: Uri,
    /// How signed requests name their bucket. Default: by virtual hosts for AWS, in the path for other stores.
    pub style: Option<AddressStyle>,
    /// The region that the authority may name.
    pub region: String,
    /// Certificate authorities to trust instead of the system's.
    pub ca: Option<PathBuf>,
}

impl Config {
    /// Builds the pools. Does not connect to a store.
    ///
    /// # Errors
    /// A URL without scheme or host, virtual hosts below an IP address, or authorities that cannot be read.
    pub fn build(self, metrics: &Metrics) -> io::Result<Origin> {
        let limits = self.limits;
        let own = self.own.map(|own| own.build(&limits)).transpose()?;
        let own_url = own.as_ref().and_then(|own| own.url.clone());
        let stated = self.stated.map(|stores| {
            let allowed = AllowedStores::new(&stores, own_url.map(AllowedStore::exactly));
            build_stated(stores, allowed, &limits, metrics)
        });
        Ok(Origin {
            own,
            stated: stated.transpose()?,
            requires_signing: self.requires_signing,
            idle_timeout: limits.origin_idle_timeout,
            max_object_bytes: limits.max_object_bytes,
            metrics: metrics.clone(),
        })
    }
}

impl OwnStoreConfig {
    fn build(self, limits: &Limits) -> io::Result<OwnStore> {
        let endpoint = Endpoint::new(self.url, self.style, &self.region)?;
        let client = client::Config {
            is_tls: endpoint.is_tls(),
            ca: self.ca,
            ca_setting: "upstream-ca",
            check: None,
            connect_timeout: limits.origin_connect_timeout,
            stall_timeouts: stall_timeouts(limits),
        };
        Ok(OwnStore {
            client: client.build()?,
            url: endpoint.url(),
            endpoint: Arc::new(endpoint),
        })
    }
}

fn build_stated(
    stores: Stores,
    allowed: AllowedStores,
    limits: &Limits,
    metrics: &Metrics,
) -> io::Result<StatedStores> {
    let allowed = Arc::new(allowed);
    let client = client::Config {
        is_tls: stores.allowed.iter().any(AllowedStore::is_tls),
        ca: stores.ca,
        ca_setting: "store-ca",
        check: Some(HostCheck::new(
            Arc::clone(&allowed),
            limits.origin_connect_timeout,
            metrics,
        )),
        connect_timeout: limits.origin_connect_timeout,
        stall_timeouts: stall_timeouts(limits),
    };
    Ok(StatedStores {
        client: client.build()?,
        allowed,
    })
}

fn stall_timeouts(limits: &Limits) -> StallTimeouts {
    StallTimeouts {
        client: limits.client_idle_timeout,
        store: limits.origin_first_byte_timeout,
    }
}
