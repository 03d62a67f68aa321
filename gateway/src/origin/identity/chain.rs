//! The default chain of AWS.

use aws_config::Region;
use aws_config::default_provider::credentials::DefaultCredentialsChain;
use aws_config::provider_config::ProviderConfig;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};

/// The sources in turn: environment, profile, web identity, container, instance. `region` is that of the token service.
pub(super) async fn chain(region: &str) -> DefaultCredentialsChain {
    let http = aws_smithy_http_client::Builder::new()
        .tls_provider(Provider::Rustls(CryptoMode::Ring))
        .build_https();
    let region = Region::new(region.to_owned());
    let config = ProviderConfig::without_region()
        .with_http_client(http)
        .with_region(Some(region.clone()));
    DefaultCredentialsChain::builder()
        .region(region)
        .configure(config)
        .build()
        .await
}
