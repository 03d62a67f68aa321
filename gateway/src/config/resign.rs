//! Configuration of re-sign mode.

mod settings;

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::values::{Text, duration};
use super::{Audit, Faults, list, path};
use crate::s3::AddressStyle;
pub use settings::ResignSettings;

/// Region of signatures if none is configured: that of most stores other than AWS.
const DEFAULT_REGION: &str = "us-east-1";
/// Longest time that a version of an object may be taken for the current one without asking the store (law 6).
const MAX_CACHE_MAX_AGE: Duration = Duration::from_hours(1);

/// Re-sign mode: the gateway verifies callers by its keys file, and signs again for the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Resign {
    /// The keys file.
    pub keys: PathBuf,
    /// Region of signatures for the store.
    pub region: String,
    /// Regions that callers may sign for.
    pub regions: Vec<String>,
    /// Domains of virtual hosts.
    pub domains: Vec<String>,
    /// Hosts that callers sign in front of a proxy.
    pub public_hosts: Vec<String>,
    /// How requests for the store name their bucket. Default: by the store's host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream_style: Option<AddressStyle>,
    /// Where the gateway's own credentials for the store come from.
    pub upstream_credentials: CredentialSource,
    /// The audit log. Default: none.
    pub audit: Option<Audit>,
    /// Time for which hits of the result cache need no request to the store, for keys whose grants decide.
    #[serde(serialize_with = "duration")]
    pub cache_max_age: Duration,
}

/// Where the gateway's own credentials for the store come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CredentialSource {
    /// The default chain of the AWS SDKs: environment, profile, web identity, container, instance.
    Chain,
    /// The environment alone.
    #[serde(rename = "env")]
    Environment,
}

impl Resign {
    /// The mode, if a keys file is configured.
    pub(super) fn validate(settings: &ResignSettings, faults: &mut Faults) -> Option<Self> {
        let others = [
            ("resign-region", &settings.region),
            ("resign-regions", &settings.regions),
            ("resign-domains", &settings.domains),
            ("resign-public-hosts", &settings.public_hosts),
            ("resign-upstream-style", &settings.upstream_style),
            ("resign-upstream-credentials", &settings.upstream_credentials),
            ("audit-log", &settings.audit),
            ("audit-overflow", &settings.audit_overflow),
            ("resign-cache-max-age", &settings.cache_max_age),
        ];
        let Some(keys) = &settings.keys else {
            for (name, _) in others.iter().filter(|(_, value)| value.is_some()) {
                faults.add(format!("{name}: requires resign-keys"));
            }
            return None;
        };
        let region = settings.region.as_ref().map_or(DEFAULT_REGION, |Text(text)| text);
        let mut regions = names(settings.regions.as_ref());
        if regions.is_empty() {
            regions.push(region.to_owned());
        }
        let domains = names(settings.domains.as_ref());
        let public_hosts = names(settings.public_hosts.as_ref());
        for host in &public_hosts {
            let name = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
            if domains.iter().any(|domain| name.ends_with(&format!(".{domain}"))) {
                faults.add(format!(
                    "resign-public-hosts: expected a host that is not below a domain of resign-domains, where its first part is a \
                     bucket; found `{host}`"
                ));
            }
        }
        Some(Self {
            keys: path(keys),
            region: region.to_owned(),
            regions,
            domains,
            public_hosts,
            upstream_style: style(settings.upstream_style.as_ref(), faults),
            upstream_credentials: faults.parsed(
                "resign-upstream-credentials",
                settings.upstream_credentials.as_ref(),
                CredentialSource::Chain,
                |text| match text {
                    "chain" => Ok(CredentialSource::Chain),
                    "env" => Ok(CredentialSource::Environment),
                    other => Err(format!("expected chain or env, found `{other}`")),
                },
            ),
            audit: Audit::validate(settings.audit.as_ref(), settings.audit_overflow.as_ref(), faults),
            cache_max_age: faults.duration_within(
                "resign-cache-max-age",
                settings.cache_max_age.as_ref(),
                Duration::ZERO,
                Duration::ZERO..=MAX_CACHE_MAX_AGE,
            ),
        })
    }
}

fn style(text: Option<&Text>, faults: &mut Faults) -> Option<AddressStyle> {
    faults.parsed("resign-upstream-style", text, None, |text| match text {
        "virtual" => Ok(Some(AddressStyle::VirtualHost)),
        "path" => Ok(Some(AddressStyle::Path)),
        other => Err(format!("expected virtual or path, found `{other}`")),
    })
}

fn names(text: Option<&Text>) -> Vec<String> {
    text.map_or_else(Vec::new, |Text(text)| list(text).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests;
