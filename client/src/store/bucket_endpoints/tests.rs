use aws_credential_types::{Credentials, provider::SharedCredentialsProvider};

use super::*;
use crate::{
    store::aws::SdkClients,
    transport::{DnsResolver, Timeouts},
};

const FIPS: AwsEndpoints = AwsEndpoints {
    use_fips: true,
    use_dual_stack: false,
};
const DUAL_STACK: AwsEndpoints = AwsEndpoints {
    use_fips: false,
    use_dual_stack: true,
};

fn endpoints(
    configured: Option<&str>,
    style: AddressingStyle,
    region: &str,
    aws: AwsEndpoints,
) -> Result<BucketEndpoints> {
    let keys = Credentials::new("A", "s", None, None, "test");
    let clients = SdkClients::new(
        SharedCredentialsProvider::new(keys),
        Timeouts::default(),
        DnsResolver::new(),
    );
    let configured = configured.map(|url| Endpoint::parse("endpoint", url).unwrap());
    BucketEndpoints::new(configured, style, region.to_owned(), aws, clients)
}

fn aws_in(region: &str) -> BucketEndpoints {
    endpoints(None, AddressingStyle::Auto, region, AwsEndpoints::default()).unwrap()
}

/// The URL of an object, and the region that it is signed for.
fn address(endpoints: &BucketEndpoints, bucket: &str) -> (String, String) {
    let found = endpoints.bucket(bucket).unwrap();
    (
        format!("{}{}", found.endpoint(), found.path("a b.jpg")),
        found.region().to_owned(),
    )
}

#[test]
fn the_endpoints_of_aws_are_those_of_its_sdk() {
    for (region, aws, url) in [
        (
            "us-east-1",
            AwsEndpoints::default(),
            "https://photos.s3.us-east-1.amazonaws.com/a%20b.jpg",
        ),
        (
            "cn-north-1",
            AwsEndpoints::default(),
            "https://photos.s3.cn-north-1.amazonaws.com.cn/a%20b.jpg",
        ),
        (
            "us-gov-west-1",
            FIPS,
            "https://photos.s3-fips.us-gov-west-1.amazonaws.com/a%20b.jpg",
        ),
        (
            "eu-central-1",
            DUAL_STACK,
            "https://photos.s3.dualstack.eu-central-1.amazonaws.com/a%20b.jpg",
        ),
    ] {
        let endpoints = endpoints(None, AddressingStyle::Auto, region, aws).unwrap();
        assert_eq!(address(&endpoints, "photos"), (url.to_owned(), region.to_owned()));
        assert!(!endpoints.is_path_style() && endpoints.is_regional());
    }
    assert_eq!(
        aws_in("eu-central-1").url(),
        "https://s3.eu-central-1.amazonaws.com"
    );
}

#[test]
fn the_style_is_as_configured() {
    use AddressingStyle::{Auto, Path, Virtual};
    let store = Some("http://s3.lab.example:9000");
    for (configured, style, bucket, url) in [
        (None, Auto, "photos", "https://photos.s3.us-east-1.amazonaws.com"),
        (None, Path, "photos", "https://s3.us-east-1.amazonaws.com/photos"),
        (
            None,
            Auto,
            "my.photos",
            "https://s3.us-east-1.amazonaws.com/my.photos",
        ),
        (store, Auto, "photos", "http://s3.lab.example:9000/photos"),
        (store, Path, "photos", "http://s3.lab.example:9000/photos"),
        (store, Virtual, "photos", "http://photos.s3.lab.example:9000"),
        (
            store,
            Virtual,
            "my.photos",
            "http://s3.lab.example:9000/my.photos",
        ),
        (store, Virtual, "Photos_1", "http://s3.lab.example:9000/Photos_1"),
        (
            Some("http://127.0.0.1:9000"),
            Virtual,
            "photos",
            "http://127.0.0.1:9000/photos",
        ),
    ] {
        let endpoints = endpoints(configured, style, "us-east-1", AwsEndpoints::default()).unwrap();
        let expected = format!("{url}/a%20b.jpg");
        assert_eq!(
            address(&endpoints, bucket).0,
            expected,
            "{configured:?} {style:?} {bucket}"
        );
    }
}

#[test]
fn a_configured_endpoint_says_itself_where_requests_go() {
    for aws in [FIPS, DUAL_STACK] {
        let endpoints = endpoints(Some("http://store:9000"), AddressingStyle::Auto, "r", aws).unwrap();
        assert_eq!(address(&endpoints, "b").0, "http://store:9000/b/a%20b.jpg");
        assert!(!endpoints.is_regional());
        let bucket = endpoints.bucket("b").unwrap();
        assert!(
            endpoints.is_confirmed(&bucket),
            "its region has no part in the address"
        );
    }
}

#[test]
fn a_region_is_learnt_from_an_answer() {
    let local = endpoints(
        Some("http://s3.us-east-1.localhost:8080"),
        AddressingStyle::Virtual,
        "us-east-1",
        AwsEndpoints::default(),
    );
    for (endpoints, host) in [
        (
            aws_in("us-east-1"),
            "https://photos.s3.eu-central-1.amazonaws.com",
        ),
        (local.unwrap(), "http://photos.s3.eu-central-1.localhost:8080"),
    ] {
        let first = endpoints.bucket("photos").unwrap();
        assert!(!endpoints.is_confirmed(&first));
        assert!(endpoints.learn_region("photos", &first, "eu-central-1").unwrap());
        let learnt = (format!("{host}/a%20b.jpg"), "eu-central-1".to_owned());
        assert_eq!(address(&endpoints, "photos"), learnt);
        // The answer to another request that was in flight.
        assert!(endpoints.learn_region("photos", &first, "eu-central-1").unwrap());
        let second = endpoints.bucket("photos").unwrap();
        assert!(!endpoints.learn_region("photos", &second, "eu-central-1").unwrap());
        let other = endpoints.bucket("other-photos").unwrap();
        assert!(
            !endpoints
                .learn_region("other-photos", &other, "us-east-1")
                .unwrap()
        );
        assert!(endpoints.is_confirmed(&other), "an answer has named it");
        assert!(endpoints.is_confirmed(&endpoints.bucket("photos").unwrap()));
        assert!(!endpoints.is_confirmed(&endpoints.bucket("others").unwrap()));
    }
}

#[test]
fn a_region_is_learnt_at_a_host_that_names_none() {
    let endpoints = endpoints(
        Some("http://store:9000"),
        AddressingStyle::Auto,
        "us-east-1",
        AwsEndpoints::default(),
    );
    let endpoints = endpoints.unwrap();
    let first = endpoints.bucket("photos").unwrap();
    assert!(endpoints.learn_region("photos", &first, "lab_1.north").unwrap());
    let learnt = "http://store:9000/photos/a%20b.jpg".to_owned();
    assert_eq!(address(&endpoints, "photos"), (learnt, "lab_1.north".to_owned()));
    assert!(endpoints.bucket("photos").unwrap().has_confirmed_region());
    assert!(!first.has_confirmed_region());
    for region in ["", "evil/", "a b", "a\nb", "é", &"a".repeat(65)] {
        let error = endpoints.learn_region("photos", &first, region).unwrap_err();
        assert!(error.to_string().contains("expected 1 to 64 letters"), "{error}");
    }
    assert_eq!(address(&endpoints, "photos").1, "lab_1.north");
}

/// An answer is untrusted input.
#[test]
fn a_region_that_makes_no_host_is_refused() {
    let endpoints = aws_in("us-east-1");
    let first = endpoints.bucket("photos").unwrap();
    for region in ["", "evil.example/", "a b", "evil@x"] {
        let error = endpoints.learn_region("photos", &first, region).unwrap_err();
        assert!(
            error.to_string().contains("cannot resolve the endpoint of S3"),
            "{error}"
        );
    }
    assert!(endpoints_of_region("not a region").is_err());
}

fn endpoints_of_region(region: &str) -> Result<BucketEndpoints> {
    endpoints(None, AddressingStyle::Auto, region, AwsEndpoints::default())
}

#[test]
fn what_needs_other_requests_is_refused_by_name() {
    for (bucket, found) in [
        ("photos--use1-az4--x-s3", "a directory bucket of S3 Express"),
        ("mfzwi23gnjvgw.mrap", "a multi-region access point"),
        (
            "arn:aws:s3::123456789012:accesspoint",
            "a multi-region access point",
        ),
        (
            "arn:aws:s3:us-west-2:123456789012:accesspoint",
            "the ARN of an access point",
        ),
    ] {
        for configured in [None, Some("http://store:9000")] {
            let endpoints = endpoints(
                configured,
                AddressingStyle::Auto,
                "us-east-1",
                AwsEndpoints::default(),
            );
            let error = endpoints.unwrap().bucket(bucket).unwrap_err().to_string();
            assert!(
                error.contains(&format!("`{bucket}`")) && error.contains(found),
                "{error}"
            );
        }
    }
    let error = aws_in("us-east-1").bucket("test-accessp-e0000075431d83bebde8xz5w8ijx1qzlbp3i3kuse10--op-s3");
    assert!(
        error.is_err(),
        "an access point of Outposts is signed for another service"
    );
    aws_in("us-east-1").bucket("photos-ap-alias-s3alias").unwrap();
}

#[test]
fn an_ip_address_has_no_virtual_hosts() {
    for (url, is_path_style) in [
        ("http://127.0.0.1:9900", true),
        ("http://[::1]:9900", true),
        ("http://store:9000", false),
    ] {
        let endpoints = endpoints(
            Some(url),
            AddressingStyle::Virtual,
            "us-east-1",
            AwsEndpoints::default(),
        );
        assert_eq!(endpoints.unwrap().is_path_style(), is_path_style, "{url}");
    }
}

#[test]
fn a_refusal_or_a_failure_confirms_no_region() {
    for (status, named, is_confirmed) in [
        (200, None, true),
        (206, None, true),
        (304, None, true),
        (404, None, true),
        (412, None, true),
        (416, None, true),
        (403, None, false),
        (500, None, false),
        (503, None, false),
        (403, Some("us-east-1"), true),
        (403, Some("eu-central-1"), false),
        (404, Some("eu-central-1"), false),
    ] {
        let endpoints = aws_in("us-east-1");
        let bucket = endpoints.bucket("photos").unwrap();
        bucket.observe_answer(StatusCode::from_u16(status).unwrap(), named);
        assert_eq!(
            endpoints.is_confirmed(&bucket),
            is_confirmed,
            "{status} {named:?}"
        );
    }
}
