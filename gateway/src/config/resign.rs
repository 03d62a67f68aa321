//! Configuration of re-sign mode.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::values::{Text, duration};
use super::{Audit, Faults, path};
use crate::s3::address::AddressStyle;

/// Region of signatures if none is configured: that of most stores other than AWS.
const DEFAULT_REGION: &str = "us-east-1";
/// Longest time that a version of an object may be taken for the current one without asking the store (law 6).
const MAX_CACHE_MAX_AGE: Duration = Duration::from_hours(1);

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
    /// Time for which hits of the result cache need no request to the store, once it has confirmed the object to the gateway's
    /// own identity, at most 1h: within it, an object that was replaced past this gateway does not show; only for keys with
    /// `upstream = "gateway"` [default: 0s]
    #[arg(
        id = "resign_cache_max_age",
        long = "resign-cache-max-age",
        env = "PUSHDOWN_RESIGN_CACHE_MAX_AGE",
        value_name = "TIME"
    )]
    pub cache_max_age: Option<Text>,
}

/// Re-sign mode: the gateway verifies callers by keys of its own, and signs again for the store.
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

impl ResignSettings {
    /// These settings, with `fallback` for those that are not set.
    pub(super) fn with_fallback(self, fallback: Self) -> Self {
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
        let mut regions = list(settings.regions.as_ref());
        if regions.is_empty() {
            regions.push(region.to_owned());
        }
        let domains = list(settings.domains.as_ref());
        let public_hosts = list(settings.public_hosts.as_ref());
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

fn list(text: Option<&Text>) -> Vec<String> {
    let Some(Text(text)) = text else { return Vec::new() };
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validate(settings: &ResignSettings) -> (Option<Resign>, Option<String>) {
        let mut faults = Faults::default();
        let resign = Resign::validate(settings, &mut faults);
        let faults = faults.into_result(());
        (resign, faults.err().map(|faults| faults.to_string()))
    }

    #[test]
    fn a_keys_file_turns_the_mode_on() {
        assert_eq!(validate(&ResignSettings::default()), (None, None));
        let (resign, faults) = validate(&ResignSettings {
            keys: Some("keys.toml".into()),
            domains: Some("s3.lab.example, s3.example".into()),
            ..ResignSettings::default()
        });
        let resign = resign.unwrap();
        assert_eq!(faults, None);
        assert_eq!(
            (resign.region.as_str(), resign.regions),
            ("us-east-1", vec!["us-east-1".to_owned()])
        );
        assert_eq!(resign.domains, ["s3.lab.example", "s3.example"]);
    }

    #[test]
    fn the_other_settings_require_it() {
        let (_, faults) = validate(&ResignSettings {
            region: Some("eu-central-1".into()),
            audit: Some("audit.jsonl".into()),
            cache_max_age: Some("30s".into()),
            ..ResignSettings::default()
        });
        let faults = faults.unwrap();
        for setting in ["resign-region", "audit-log", "resign-cache-max-age"] {
            let fault = format!("{setting}: requires resign-keys");
            assert!(faults.contains(&fault), "{faults}");
        }
    }

    #[test]
    fn style_and_credentials_are_words() {
        let (resign, _) = validate(&ResignSettings {
            keys: Some("keys.toml".into()),
            upstream_style: Some("virtual".into()),
            upstream_credentials: Some("env".into()),
            ..ResignSettings::default()
        });
        let resign = resign.unwrap();
        assert_eq!(resign.upstream_style, Some(AddressStyle::VirtualHost));
        assert_eq!(resign.upstream_credentials, CredentialSource::Environment);
        let (_, faults) = validate(&ResignSettings {
            keys: Some("keys.toml".into()),
            upstream_style: Some("host".into()),
            upstream_credentials: Some("imds".into()),
            ..ResignSettings::default()
        });
        let faults = faults.unwrap();
        assert!(
            faults.contains("resign-upstream-style: expected virtual or path, found `host`"),
            "{faults}"
        );
        assert!(
            faults.contains("resign-upstream-credentials: expected chain or env, found `imds`"),
            "{faults}"
        );
    }

    #[test]
    fn the_store_is_always_asked_by_default_and_once_an_hour_at_least() {
        let max_age = |text: Option<&str>| {
            let (resign, faults) = validate(&ResignSettings {
                keys: Some("keys.toml".into()),
                cache_max_age: text.map(Text::from),
                ..ResignSettings::default()
            });
            faults.map_or_else(|| Ok(resign.unwrap().cache_max_age), Err)
        };
        assert_eq!(max_age(None), Ok(Duration::ZERO));
        assert_eq!(max_age(Some("0s")), Ok(Duration::ZERO));
        assert_eq!(max_age(Some("1h")), Ok(Duration::from_hours(1)));
        for wrong in ["61m", "30", "-1s"] {
            let fault = max_age(Some(wrong)).unwrap_err();
            assert!(fault.contains("resign-cache-max-age: expected"), "{fault}");
        }
    }

    #[test]
    fn a_public_host_is_not_below_a_domain() {
        let (_, faults) = validate(&ResignSettings {
            keys: Some("keys.toml".into()),
            domains: Some("s3.lab.example".into()),
            public_hosts: Some("photos.s3.lab.example:443, s3.lab.example".into()),
            ..ResignSettings::default()
        });
        let faults = faults.unwrap();
        assert!(faults.contains("found `photos.s3.lab.example:443`"), "{faults}");
        assert!(!faults.contains("found `s3.lab.example`"), "{faults}");
    }
}
