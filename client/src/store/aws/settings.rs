//! Where endpoint, region and credentials come from: the sources of the AWS tools.

use aws_config::{
    BehaviorVersion, Region, SdkConfig,
    environment::EnvironmentVariableRegionProvider,
    meta::region::{ProvideRegion as _, RegionProviderChain},
    profile::{ProfileFileCredentialsProvider, ProfileFileRegionProvider},
    provider_config::ProviderConfig,
};
use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use aws_types::service_config::ServiceConfigKey;

use super::http;
use crate::{
    error::{Error, ErrorKind, Result},
    store::{AddressingStyle, Credentials, StoreBuilder, bucket_endpoints::AwsEndpoints},
    transport::{DnsResolver, Endpoint},
};

/// The variable with the endpoint of all services; with `_S3` at its end, of S3 alone.
const ENDPOINT_VARIABLE: &str = "AWS_ENDPOINT_URL";
/// The section of a profile with settings of S3 alone.
const S3_SECTION: &str = "s3";

/// Settings resolved from the builder, the environment and the profile.
pub(in crate::store) struct Sources {
    /// `None` for the endpoints of AWS.
    pub(in crate::store) endpoint: Option<Endpoint>,
    pub(in crate::store) style: AddressingStyle,
    pub(in crate::store) aws: AwsEndpoints,
    pub(in crate::store) region: String,
    pub(in crate::store) provider: Option<SharedCredentialsProvider>,
}

impl Sources {
    /// `gateways` are the addresses of the gateway that are set.
    ///
    /// # Errors
    /// For an invalid endpoint; for an invalid addressing style in the profile, if it is used.
    pub(in crate::store) async fn load(builder: &StoreBuilder, gateways: &[Endpoint]) -> Result<Self> {
        let mut profile = ProfileFileRegionProvider::builder();
        let mut loader =
            aws_config::defaults(BehaviorVersion::latest()).http_client(http(DnsResolver::new()));
        if let Some(name) = &builder.spec.profile {
            profile = profile.profile_name(name);
            loader = loader.profile_name(name);
        }
        if let Some(credentials) = &builder.credentials {
            loader = loader.credentials_provider(credentials.to_aws());
        }
        // Not the default chain, which queries the instance metadata service and waits for it.
        let region = RegionProviderChain::first_try(builder.spec.region.clone().map(Region::new))
            .or_else(EnvironmentVariableRegionProvider::new())
            .or_else(profile.build())
            .or_else(Region::from_static("us-east-1"));
        let config = loader.region(region).load().await;
        let endpoint = builder.spec.endpoint.clone();
        let endpoint = endpoint.or_else(|| configured_endpoint(&config));
        let endpoint = endpoint
            .map(|url| Endpoint::parse("endpoint", &url))
            .transpose()?;
        let may_be_gateway = may_be_gateway(endpoint.as_ref(), gateways);
        let style = style(builder.spec.addressing_style, may_be_gateway, || {
            configured_style(&config)
        })?;
        Ok(Self {
            style,
            aws: AwsEndpoints {
                use_fips: config.use_fips().unwrap_or(false),
                use_dual_stack: config.use_dual_stack().unwrap_or(false),
            },
            endpoint,
            region: config
                .region()
                .map_or_else(|| "us-east-1".to_owned(), ToString::to_string),
            provider: config.credentials_provider(),
        })
    }
}

/// The endpoint of S3 in environment and profile, in the order of the AWS tools: `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, `endpoint_url` of
/// `s3` in the `services` section of the profile, `endpoint_url` of the profile. `None` also if these are to be ignored. An empty value is
/// none.
fn configured_endpoint(config: &SdkConfig) -> Option<String> {
    let load = |variable| load(config, variable, "endpoint_url");
    // It evaluates `AWS_IGNORE_CONFIGURED_ENDPOINT_URLS` and `ignore_configured_endpoint_urls`, too.
    let found = load(ENDPOINT_VARIABLE)?;
    let variables = || {
        [format!("{ENDPOINT_VARIABLE}_S3"), ENDPOINT_VARIABLE.to_owned()]
            .into_iter()
            .filter_map(|name| std::env::var(name).ok())
    };
    // An empty variable hides the values after it from `load`. No variable has an empty name.
    let values = [found].into_iter().chain(variables()).chain(load(""));
    values.into_iter().find(|value| !value.is_empty())
}

/// Whether the configured endpoint may be a gateway in place of its store: there is no gateway beside it.
fn may_be_gateway(endpoint: Option<&Endpoint>, gateways: &[Endpoint]) -> bool {
    endpoint.is_some_and(|endpoint| match gateways {
        [] => true,
        [gateway] => gateway.is_same_address(endpoint),
        _ => false,
    })
}

/// The style that is set, or else that of the profile, which is meant for stores: an endpoint that may be a gateway has paths.
fn style(
    set: Option<AddressingStyle>,
    may_be_gateway: bool,
    of_profile: impl FnOnce() -> Result<AddressingStyle>,
) -> Result<AddressingStyle> {
    match set {
        Some(style) => Ok(style),
        None if may_be_gateway => Ok(AddressingStyle::Auto),
        None => of_profile(),
    }
}

/// `addressing_style` of the profile, in its section for S3, as the AWS tools read it. Default: `auto`.
fn configured_style(config: &SdkConfig) -> Result<AddressingStyle> {
    // No variable has an empty name.
    let Some(section) = load(config, "", S3_SECTION) else {
        return Ok(AddressingStyle::Auto);
    };
    let mut members = section.lines().filter_map(|line| line.split_once('='));
    let style = members.find_map(|(name, value)| (name.trim() == "addressing_style").then(|| value.trim()));
    match style {
        None | Some("auto") => Ok(AddressingStyle::Auto),
        Some("path") => Ok(AddressingStyle::Path),
        Some("virtual") => Ok(AddressingStyle::Virtual),
        Some(other) => Err(Error::config(format!(
            "invalid addressing_style of the profile: expected auto, path or virtual, found `{other}`"
        ))),
    }
}

/// A setting of S3 in the environment, or under this name in the profile.
fn load(config: &SdkConfig, variable: &str, name: &str) -> Option<String> {
    let key = ServiceConfigKey::builder()
        .service_id("S3")
        .env(variable)
        .profile(name)
        .build();
    config.service_config()?.load_config(key.ok()?)
}

impl Credentials {
    /// The credentials of a profile of the AWS configuration files, even if the environment has others.
    ///
    /// # Errors
    /// [`ErrorKind::Credentials`] if the profile has none, or its provider fails.
    pub async fn from_profile(profile: &str) -> Result<Self> {
        let region = ProfileFileRegionProvider::builder().profile_name(profile).build();
        let config = ProviderConfig::without_region()
            .with_http_client(http(DnsResolver::new()))
            .with_region(region.region().await);
        let provider = ProfileFileCredentialsProvider::builder()
            .profile_name(profile)
            .configure(&config)
            .build();
        let found = provider.provide_credentials().await.map_err(|error| {
            let text = format!("no credentials found in the profile `{profile}`");
            Error::new(ErrorKind::Credentials, text).with_source(error)
        })?;
        Ok(Self {
            access_key: found.access_key_id().to_owned(),
            secret_key: found.secret_access_key().to_owned(),
            session_token: found.session_token().map(str::to_owned),
        })
    }

    fn to_aws(&self) -> aws_credential_types::Credentials {
        let (access_key, secret_key) = (self.access_key.clone(), self.secret_key.clone());
        aws_credential_types::Credentials::new(
            access_key,
            secret_key,
            self.session_token.clone(),
            None,
            "explicit",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_of_the_profile_is_for_stores_alone() {
        use AddressingStyle::{Auto, Path, Virtual};
        let url = |url| Endpoint::parse("endpoint", url).unwrap();
        let (store, gateway) = (url("http://s3.lab.example:9000"), url("http://gw:9900"));
        let same = url("http://GW:9900/");
        for (set, endpoint, gateways, expected) in [
            (None, None, vec![], Virtual),
            (None, None, vec![&gateway], Virtual),
            (None, Some(&store), vec![&gateway], Virtual),
            (None, Some(&gateway), vec![], Auto),
            (None, Some(&gateway), vec![&same], Auto),
            // Several gateways are never in place of the store.
            (None, Some(&gateway), vec![&same, &store], Virtual),
            (Some(Path), None, vec![], Path),
            (Some(Virtual), Some(&gateway), vec![], Virtual),
        ] {
            let gateways: Vec<Endpoint> = gateways.into_iter().cloned().collect();
            let found = style(set, may_be_gateway(endpoint, &gateways), || Ok(Virtual)).unwrap();
            assert_eq!(found, expected, "{set:?} {endpoint:?} {gateways:?}");
        }
        let invalid = || Err(Error::config("invalid"));
        assert_eq!(style(None, true, invalid).unwrap(), Auto);
        assert!(style(None, false, invalid).is_err());
    }
}
