use aws_credential_types::provider::{SharedCredentialsProvider, error::CredentialsError, future};
use http::{HeaderMap, HeaderValue, header::HeaderName};
use pushdown::{Limits, wire::header::FEATURES};

use super::{bucket_endpoints::AwsEndpoints, *};

/// A regional host where nothing listens.
const NOBODY: &str = "http://s3.us-east-1.localhost:1";

#[derive(Debug)]
struct NoCredentials;

impl ProvideCredentials for NoCredentials {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        future::ProvideCredentials::ready(Err(CredentialsError::not_loaded("there are none")))
    }
}

fn clients() -> aws::SdkClients {
    let provider = SharedCredentialsProvider::new(NoCredentials);
    aws::SdkClients::new(provider, Timeouts::default(), DnsResolver::new())
}

fn endpoints(url: &str, style: AddressingStyle) -> BucketEndpoints {
    let configured = Endpoint::parse("endpoint", url).unwrap();
    let region = "us-east-1".to_owned();
    BucketEndpoints::new(
        Some(configured),
        style,
        region,
        AwsEndpoints::default(),
        clients(),
    )
    .unwrap()
}

fn transport() -> Transport {
    Transport::new(false, Timeouts::default(), DnsResolver::new()).unwrap()
}

/// A store without credentials, which retries.
fn store(gateway: Option<Gateway>) -> Store {
    let provider = SharedCredentialsProvider::new(NoCredentials);
    Store {
        shared: Arc::new(Shared {
            transport: transport(),
            endpoints: endpoints(NOBODY, AddressingStyle::Auto),
            gateway,
            credentials: Arc::new(RenewedCredentials::new(provider)),
            #[cfg(feature = "models")]
            model_cache: None,
            retry: RetryPolicy::default(),
            outages: Outages::new(NOBODY.to_owned()),
        }),
    }
}

/// A gateway beside the store that has listed these features.
fn gateway_beside(features: &'static str) -> Gateway {
    let endpoint = Endpoint::parse("gateway", "http://127.0.0.1:1").unwrap();
    let gateway = Gateway::beside_store(vec![endpoint], &transport());
    gateway.note_features(&HeaderMap::from_iter([(
        HeaderName::from_static(FEATURES),
        HeaderValue::from_static(features),
    )]));
    gateway
}

/// A request that was sent, or repeated, would be an error of the network.
#[tokio::test]
async fn missing_credentials_are_named_at_once() {
    let store = store(None);
    let mut upload = store.upload("photos", "a.jpg");
    upload.write(b"x").await.unwrap();
    let limits = Limits::default();
    for (what, failed) in [
        ("list", store.list_objects("photos", "").await.map(drop)),
        ("upload", upload.finish().await),
        ("locate", store.locate("photos").await),
        ("etag", store.etag("photos", "a.jpg").await.map(drop)),
        ("get", store.get("photos", "a.jpg", &limits).await.map(drop)),
    ] {
        let error = failed.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Credentials, "{what}: {error}");
        let expected = "no credentials found for s3://photos: set AWS_ACCESS_KEY_ID";
        assert!(error.to_string().starts_with(expected), "{what}: {error}");
    }
}

#[test]
fn an_ip_address_stays_a_gateway_whatever_the_style() {
    let url = "http://127.0.0.1:9900";
    for style in [
        AddressingStyle::Auto,
        AddressingStyle::Path,
        AddressingStyle::Virtual,
    ] {
        let stated = stated_gateway(Some(url.to_owned())).unwrap();
        let found = gateway_address(stated, &endpoints(url, style));
        assert!(
            matches!(found, Some(GatewayAddress::InPlaceOfStore(_))),
            "{style:?}"
        );
    }
}

#[test]
fn the_address_of_the_store_is_no_second_one_however_it_is_written() {
    for (store, address, is_store) in [
        ("http://gw:9900", "http://GW.:9900/", true),
        ("http://gw", "http://gw:80", true),
        ("http://gw:9900", "https://gw:9900", false),
        ("http://gw:9900", "http://gw:9901", false),
    ] {
        let stated = stated_gateway(Some(address.to_owned())).unwrap();
        let found = gateway_address(stated, &endpoints(store, AddressingStyle::Auto)).unwrap();
        match found {
            GatewayAddress::InPlaceOfStore(endpoint) => {
                assert!(is_store, "{store}");
                // Requests have the host that is signed.
                assert_eq!(endpoint.to_string(), store);
            }
            GatewayAddress::BesideStore(_) => assert!(!is_store, "{store}"),
        }
    }
    assert!(stated_gateway(Some(String::new())).unwrap().is_empty());
}

#[test]
fn several_urls_are_separated_by_commas_and_each_counts_once() {
    let urls = " http://a:9900, http://b:9900/,,http://A.:9900 ";
    let stated = stated_gateway(Some(urls.to_owned())).unwrap();
    let found = gateway_address(stated, &endpoints("http://a:9900", AddressingStyle::Auto));
    let Some(GatewayAddress::BesideStore(gateways)) = found else {
        panic!("several gateways are beside the store");
    };
    let urls: Vec<String> = gateways.iter().map(Endpoint::to_string).collect();
    assert_eq!(urls, ["http://a:9900", "http://b:9900"]);
    let error = stated_gateway(Some("http://a:9900,b:9900".to_owned())).unwrap_err();
    assert!(
        error.to_string().starts_with("invalid gateway `b:9900`"),
        "{error}"
    );
}

/// It would refuse the request for rows, where `auto` is to read plainly.
#[tokio::test]
async fn rows_are_not_placed_at_a_gateway_that_reads_no_stores() {
    let url = Endpoint::parse("endpoint", NOBODY).unwrap();
    for (gateway, is_usable) in [
        (None, false),
        (Some(Gateway::in_place_of_store(url, &transport())), true),
        (Some(gateway_beside("families")), false),
        (Some(gateway_beside("families, stores")), true),
    ] {
        let text = format!("{gateway:?}");
        let table = store(gateway).table("b", "t.parquet", &Limits::default());
        assert_eq!(table.has_usable_gateway().await, is_usable, "{text}");
    }
}

#[test]
fn the_advice_names_the_setting_of_the_gateway() {
    let url = Endpoint::parse("endpoint", NOBODY).unwrap();
    let in_place = store(Some(Gateway::in_place_of_store(url, &transport())));
    assert_eq!(in_place.gateway_setting(), "the gateway's URL as the endpoint");
    let beside = store(Some(gateway_beside("")));
    assert_eq!(beside.gateway_setting(), "the gateway's URL as `gateway=`");
}
