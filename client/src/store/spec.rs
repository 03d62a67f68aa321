//! The settings of a store as data.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::AddressingStyle;
use crate::{retry::RetryPolicy, transport::Timeouts};

/// The settings of a store that serialize: all but explicit credentials. Missing members have their defaults, and unknown ones are
/// errors.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSpec {
    /// URL of the endpoint: [`StoreBuilder::endpoint`](crate::store::StoreBuilder::endpoint).
    pub endpoint: Option<String>,
    /// URL of the gateway, or several: [`StoreBuilder::gateway`](crate::store::StoreBuilder::gateway).
    pub gateway: Option<String>,
    /// Addresses of names: [`StoreBuilder::hosts_file`](crate::store::StoreBuilder::hosts_file).
    pub hosts_file: Option<PathBuf>,
    /// How requests name their bucket: [`StoreBuilder::addressing_style`](crate::store::StoreBuilder::addressing_style).
    pub addressing_style: Option<AddressingStyle>,
    /// Region to sign for: [`StoreBuilder::region`](crate::store::StoreBuilder::region).
    pub region: Option<String>,
    /// Profile of the AWS configuration files: [`StoreBuilder::profile`](crate::store::StoreBuilder::profile).
    pub profile: Option<String>,
    /// Timeouts of every request.
    pub timeouts: Timeouts,
    /// When to retry.
    pub retry: RetryPolicy,
    /// Cache folder for the weights of models. Not used by a build without models.
    pub model_cache: Option<PathBuf>,
}
