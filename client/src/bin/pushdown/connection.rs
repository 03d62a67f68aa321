//! Where to read from, and how to draw: what `get` and `read` have in common.

use clap::Args;
use pushdown_client::{Store, StoreBuilder};

// Names of variables are no code to `clap`, which would show the marks that documentation wants around them.
const ENDPOINT: &str =
    "URL of the gateway, or with --plain of any S3 store [default: AWS_ENDPOINT_URL, then the profile's]";
const REGION: &str = "Region to sign for [default: AWS_REGION, the profile's, then us-east-1]";

/// The endpoint and the credentials.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    #[arg(long, env = "PUSHDOWN_ENDPOINT", value_name = "URL", help = ENDPOINT)]
    pub(crate) endpoint_url: Option<String>,
    #[arg(long, value_name = "NAME", help = REGION)]
    pub(crate) region: Option<String>,
    /// Profile of the AWS configuration files; credentials come from the usual AWS chain
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
}

/// Seed and epoch of random steps.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Randomness {
    /// Seed of the random steps that have none of their own; `read` shuffles by it, too
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Epoch for the random steps, from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) epoch: u32,
}

impl Connection {
    /// As settings of a store.
    pub(crate) fn store(&self) -> StoreBuilder {
        let mut store = Store::builder();
        if let Some(url) = &self.endpoint_url {
            store = store.endpoint(url);
        }
        if let Some(region) = &self.region {
            store = store.region(region);
        }
        if let Some(profile) = &self.profile {
            store = store.profile(profile);
        }
        store
    }
}
