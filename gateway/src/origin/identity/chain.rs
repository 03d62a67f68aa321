//! The default chain of AWS.

use aws_config::Region;
use aws_config::default_provider::credentials::DefaultCredentialsChain;
use aws_config::default_provider::use_dual_stack::use_dual_stack_provider;
use aws_config::default_provider::use_fips::use_fips_provider;
use aws_config::provider_config::ProviderConfig;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};

/// The sources in turn: environment, profile, web identity, container, instance. `region` is that of the token service.
pub(super) async fn chain(region: &str) -> DefaultCredentialsChain {
    let region = Region::new(region.to_owned());
    let config = provider_config(region.clone()).await;
    DefaultCredentialsChain::builder()
        .region(region)
        .configure(config)
        .build()
        .await
}

/// What the sources share. The token service has the endpoint that the environment names, or else the profile, or else that of its
/// region.
async fn provider_config(region: Region) -> ProviderConfig {
    let http = aws_smithy_http_client::Builder::new()
        .tls_provider(Provider::Rustls(CryptoMode::Ring))
        .build_https();
    let config = ProviderConfig::without_region()
        .with_http_client(http)
        .with_region(Some(region));
    // Both read the profile, too, and `config` remembers it. If it were read only when credentials are fetched, the source of web
    // identities, which is built before, would not use the profile's endpoint.
    let use_fips = use_fips_provider(&config).await;
    let use_dual_stack = use_dual_stack_provider(&config).await;
    config.with_use_fips(use_fips).with_use_dual_stack(use_dual_stack)
}
