//! The `[resign]` table and its flags, as given.

use clap::Args;
use serde::Deserialize;

use crate::config::values::Text;

/// The `[resign]` table as given, not validated.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[command(next_help_heading = "Re-sign mode")]
pub struct ResignSettings {
    /// File of the gateway's own keys; with it the gateway verifies callers, and signs again for the store
    #[arg(
        id = "resign_keys",
        long = "resign-keys",
        env = "PUSHDOWN_RESIGN_KEYS",
        value_name = "FILE"
    )]
    pub keys: Option<Text>,
    /// Region of signatures for the store [default: us-east-1]
    #[arg(
        id = "resign_region",
        long = "resign-region",
        env = "PUSHDOWN_RESIGN_REGION",
        value_name = "NAME"
    )]
    pub region: Option<Text>,
    /// Regions that callers may sign for, separated by commas [default: the region of the store]
    #[arg(
        id = "resign_regions",
        long = "resign-regions",
        env = "PUSHDOWN_RESIGN_REGIONS",
        value_name = "NAMES"
    )]
    pub regions: Option<Text>,
    /// Domains of virtual hosts, `bucket.DOMAIN`, separated by commas
    #[arg(
        id = "resign_domains",
        long = "resign-domains",
        env = "PUSHDOWN_RESIGN_DOMAINS",
        value_name = "DOMAINS"
    )]
    pub domains: Option<Text>,
    /// Host headers, with their ports, that callers sign in front of a proxy that sends another one, separated by commas
    #[arg(
        id = "resign_public_hosts",
        long = "resign-public-hosts",
        env = "PUSHDOWN_RESIGN_PUBLIC_HOSTS",
        value_name = "HOSTS"
    )]
    pub public_hosts: Option<Text>,
    /// How requests for the store name their bucket: virtual (in the host) or path [default: virtual for AWS, else path]
    #[arg(
        id = "resign_upstream_style",
        long = "resign-upstream-style",
        env = "PUSHDOWN_RESIGN_UPSTREAM_STYLE",
        value_name = "STYLE"
    )]
    pub upstream_style: Option<Text>,
    /// Where the gateway's own credentials for the store come from: chain (all sources of the AWS SDKs, refreshed) or env (the
    /// environment alone) [default: chain]
    #[arg(
        id = "resign_upstream_credentials",
        long = "resign-upstream-credentials",
        env = "PUSHDOWN_RESIGN_UPSTREAM_CREDENTIALS",
        value_name = "SOURCE"
    )]
    pub upstream_credentials: Option<Text>,
    /// File of the audit log: a line of JSON for each request; opened again on SIGHUP
    #[arg(
        id = "resign_audit",
        long = "audit-log",
        env = "PUSHDOWN_AUDIT_LOG",
        value_name = "FILE"
    )]
    pub audit: Option<Text>,
    /// What happens while the audit log cannot be written: requests wait and fail (block), or lines are dropped (drop)
    /// [default: block]
    #[arg(
        id = "resign_audit_overflow",
        long = "audit-overflow",
        env = "PUSHDOWN_AUDIT_OVERFLOW",
        value_name = "POLICY"
    )]
    pub audit_overflow: Option<Text>,
    /// Longest time that a cache hit is served without asking the store, at most 1h. Changes that bypass this gateway stay
    /// invisible for that time. Only for keys with `upstream = "gateway"` [default: 0s]
    #[arg(
        id = "resign_cache_max_age",
        long = "resign-cache-max-age",
        env = "PUSHDOWN_RESIGN_CACHE_MAX_AGE",
        value_name = "TIME"
    )]
    pub cache_max_age: Option<Text>,
}

impl ResignSettings {
    /// These settings, with `fallback` for those that are not set.
    pub(in crate::config) fn with_fallback(self, fallback: Self) -> Self {
        Self {
            keys: self.keys.or(fallback.keys),
            region: self.region.or(fallback.region),
            regions: self.regions.or(fallback.regions),
            domains: self.domains.or(fallback.domains),
            public_hosts: self.public_hosts.or(fallback.public_hosts),
            upstream_style: self.upstream_style.or(fallback.upstream_style),
            upstream_credentials: self.upstream_credentials.or(fallback.upstream_credentials),
            audit: self.audit.or(fallback.audit),
            audit_overflow: self.audit_overflow.or(fallback.audit_overflow),
            cache_max_age: self.cache_max_age.or(fallback.cache_max_age),
        }
    }
}
