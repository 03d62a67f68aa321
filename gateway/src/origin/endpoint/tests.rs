use http::Request;

use super::*;
use crate::s3::RequestAddress;

const FRANKFURT: &str = "eu-central-1";

fn endpoint(url: &'static str, style: Option<AddressStyle>) -> Endpoint {
    Endpoint::new(Uri::from_static(url), style, FRANKFURT).unwrap()
}

fn addressed(endpoint: &Endpoint, target: &str, region: &str) -> (String, String) {
    let mut parts = Request::get(target).body(()).unwrap().into_parts().0;
    let address = RequestAddress::new(b"gateway", parts.uri.path(), &[]).unwrap();
    let bucket = address.canonical_bucket();
    let host = endpoint
        .address_signed(&mut parts, bucket.as_deref(), region)
        .unwrap();
    (parts.uri.to_string(), host.to_str().unwrap().to_owned())
}

#[test]
fn a_bucket_is_the_first_label_of_the_host_at_aws() {
    let aws = endpoint("https://s3.eu-central-1.amazonaws.com", None);
    for (target, region, host, path) in [
        (
            "/photos/a%20b/c?x-id=G",
            FRANKFURT,
            "photos.s3.eu-central-1.amazonaws.com",
            "/a%20b/c?x-id=G",
        ),
        (
            "/photos?list-type=2",
            FRANKFURT,
            "photos.s3.eu-central-1.amazonaws.com",
            "/?list-type=2",
        ),
        (
            "/photos/k",
            "us-west-2",
            "photos.s3.us-west-2.amazonaws.com",
            "/k",
        ),
        (
            "/my.photos/k",
            "us-west-2",
            "s3.us-west-2.amazonaws.com",
            "/my.photos/k",
        ),
        ("/", FRANKFURT, "s3.eu-central-1.amazonaws.com", "/"),
    ] {
        // The connection is to the region: the number of hosts does not depend on callers.
        let uri = format!("https://s3.{region}.amazonaws.com{path}");
        assert_eq!(
            addressed(&aws, target, region),
            (uri, host.to_owned()),
            "{target}"
        );
    }
}

#[test]
fn other_stores_have_the_bucket_in_the_path() {
    let store = endpoint("http://store:8333", None);
    let expected = ("http://store:8333/photos/k".to_owned(), "store:8333".to_owned());
    assert_eq!(addressed(&store, "/photos/k", FRANKFURT), expected);
    // Its host names no region, so another one changes signatures alone.
    assert_eq!(addressed(&store, "/photos/k", "us-west-2"), expected);
    let store = endpoint("http://s3.localhost:8333", Some(AddressStyle::VirtualHost));
    assert_eq!(
        addressed(&store, "/photos/k", FRANKFURT).1,
        "photos.s3.localhost:8333"
    );
}

#[test]
fn another_region_replaces_the_label_after_s3_alone() {
    for (url, host) in [
        ("https://s3.amazonaws.com", "b-1.s3.us-west-2.amazonaws.com"),
        (
            "https://s3.dualstack.eu-central-1.amazonaws.com",
            "b-1.s3.dualstack.us-west-2.amazonaws.com",
        ),
        (
            "https://eu-central-1.s3.amazonaws.com",
            "b-1.eu-central-1.s3.amazonaws.com",
        ),
    ] {
        assert_eq!(addressed(&endpoint(url, None), "/b-1/k", "us-west-2").1, host);
    }
}

#[test]
fn an_ip_address_has_no_virtual_hosts() {
    for url in ["http://127.0.0.1:1", "http://[::1]:1"] {
        let error = Endpoint::new(Uri::from_static(url), Some(AddressStyle::VirtualHost), "r").unwrap_err();
        assert!(error.to_string().contains("found an IP address"), "{error}");
    }
}
