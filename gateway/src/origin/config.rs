//! The configuration of the connection to the store.

use std::{io, path::PathBuf, sync::Arc};

use http::Uri;

use super::{Origin, StallTimeouts, client, endpoint::Endpoint};
use crate::{config::Limits, s3::AddressStyle, telemetry::Metrics};

/// Address of the store, and timeouts.
#[derive(Debug, Clone)]
pub struct Config {
    /// Scheme and authority of the store.
    pub url: Uri,
    /// How signed requests name their bucket. Default: by virtual hosts for AWS, in the path for other stores.
    pub style: Option<AddressStyle>,
    /// The region that the authority may name.
    pub region: String,
    /// Certificate authorities to trust instead of the system's.
    pub ca: Option<PathBuf>,
    /// Timeouts of requests to the store.
    pub limits: Limits,
    /// Whether a request may only be sent with a [`Signing`](super::Signing): in re-sign mode.
    pub requires_signing: bool,
}

impl Config {
    /// Builds the pool. Does not connect to the store.
    ///
    /// # Errors
    /// A URL without scheme or host, virtual hosts below an IP address, or authorities that cannot be read.
    pub fn build(self, metrics: &Metrics) -> io::Result<Origin> {
        let endpoint = Endpoint::new(self.url, self.style, &self.region)?;
        let client = client::Config {
            is_tls: endpoint.is_tls(),
            ca: self.ca,
            connect_timeout: self.limits.origin_connect_timeout,
            stall_timeouts: StallTimeouts {
                client: self.limits.client_idle_timeout,
                store: self.limits.origin_first_byte_timeout,
            },
        };
        Ok(Origin {
            client: client.build()?,
            endpoint: Arc::new(endpoint),
            requires_signing: self.requires_signing,
            idle_timeout: self.limits.origin_idle_timeout,
            max_object_bytes: self.limits.max_object_bytes,
            metrics: metrics.clone(),
        })
    }
}
