//! Signatures checked against AWS's example and `aws-sigv4`'s own presigner.

use aws_sigv4::{
    http_request::{
        PercentEncodingMode, SignableBody, SignableRequest, SignatureLocation, SigningSettings,
        UriPathNormalizationMode, sign,
    },
    sign::v4,
};

use super::*;

fn credentials(token: Option<&str>) -> Credentials {
    Credentials::new(
        "AKIAIOSFODNN7EXAMPLE",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        token.map(str::to_owned),
        None,
        "test",
    )
}

fn time() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_000_000_250)
}

/// The start of its minute.
fn minute() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_mins(1_795_000_000 / 60)
}

/// The signature that the presigner of `aws-sigv4` computes.
fn reference(path: &str, host: &str, token: Option<&str>) -> Vec<(String, String)> {
    let identity = credentials(token).into();
    let mut settings = SigningSettings::default();
    settings.signature_location = SignatureLocation::QueryParams;
    settings.expires_in = Some(MAX_EXPIRES);
    settings.percent_encoding_mode = PercentEncodingMode::Single;
    settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region("eu-west-1")
        .name("s3")
        .time(minute())
        .settings(settings)
        .build()
        .unwrap()
        .into();
    let uri = format!("http://{host}{path}");
    let request = SignableRequest::new(
        "GET",
        &uri,
        [("host", host)].into_iter(),
        SignableBody::UnsignedPayload,
    )
    .unwrap();
    let (instructions, _) = sign(request, &params).unwrap().into_parts();
    instructions
        .params()
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.to_string()))
        .collect()
}

#[test]
fn agrees_with_the_presigner_of_aws() {
    for token in [None, Some("FwoGZXIvYXdzE+/=token==")] {
        let presigner =
            Presigner::new(&credentials(token), "eu-west-1", "gateway.local:9900", time()).unwrap();
        for key in ["a.jpg", "a b+c/\u{e9}%2F.jpg", "//x/../y", "k=v&x?y#z", "~-_."] {
            let path = ObjectPaths::with_bucket("bucket").path(key);
            let mut ours: Vec<(String, String)> = presigner
                .target(&path)
                .split_once('?')
                .unwrap()
                .1
                .split('&')
                .map(|parameter| {
                    let (name, value) = parameter.split_once('=').unwrap();
                    let value = percent_encoding::percent_decode_str(value).decode_utf8().unwrap();
                    (name.to_owned(), value.into_owned())
                })
                .collect();
            let mut expected = reference(&path, "gateway.local:9900", token);
            ours.sort();
            expected.sort();
            assert_eq!(ours, expected, "{key}");
        }
    }
}

#[test]
fn the_query_has_the_parameters_of_a_batch() {
    let presigner = Presigner::new(&credentials(Some("t/+=")), "eu-west-1", "h", time()).unwrap();
    assert_eq!(
        presigner.query(),
        "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20261118%2Feu-west-1%2Fs3%2F\
         aws4_request&X-Amz-Date=20261118T110600Z&X-Amz-Expires=900&X-Amz-Security-Token=t%2F%2B%3D\
         &X-Amz-SignedHeaders=host"
    );
}

#[test]
fn presigners_of_one_minute_sign_equal_targets() {
    let target = |time| {
        let presigner = Presigner::new(&credentials(Some("token")), "eu-west-1", "h", time).unwrap();
        presigner.target("/bucket/key")
    };
    let expected = target(minute());
    for millis in [1, 250, 40_250, 59_999] {
        assert_eq!(
            target(minute() + Duration::from_millis(millis)),
            expected,
            "{millis}"
        );
    }
    for other in [
        minute() - Duration::from_nanos(1),
        minute() + Duration::from_mins(1),
    ] {
        assert_ne!(target(other), expected);
    }
}

/// The signing key and the scope have the date of the rounded time.
#[test]
fn the_first_minute_of_a_day_is_signed_for_that_day() {
    let midnight = SystemTime::UNIX_EPOCH + Duration::from_hours(1_795_000_000 / 86_400 * 24);
    let presigner = |time| Presigner::new(&credentials(None), "eu-west-1", "h", time).unwrap();
    let first = presigner(midnight + Duration::from_secs(59));
    assert!(first.query().contains("20261118%2Feu-west-1") && first.query().contains("20261118T000000Z"));
    assert_eq!(first.target("/b/k"), presigner(midnight).target("/b/k"));
    let last = presigner(midnight - Duration::from_secs(1));
    assert!(last.query().contains("20261117%2Feu-west-1") && last.query().contains("20261117T235900Z"));
}

#[test]
fn a_signature_does_not_outlive_its_credentials() {
    for (life, expires) in [(3600, "900"), (900, "900"), (899, "899"), (70, "70"), (0, "1")] {
        let end = minute() + Duration::from_millis(life * 1000 + 400);
        let session = Credentials::new("A", "s", Some("t".to_owned()), Some(end), "test");
        let presigner = Presigner::new(&session, "eu-west-1", "h", time()).unwrap();
        let expected = format!("&X-Amz-Expires={expires}&");
        assert!(
            presigner.query().contains(&expected),
            "{life}: {}",
            presigner.query()
        );
        assert!(life == 0 || presigner.validity().end <= end, "{life}");
    }
}

#[test]
fn debug_shows_no_secret() {
    let presigner = Presigner::new(&credentials(Some("token")), "eu-west-1", "h", time()).unwrap();
    let shown = format!("{presigner:?}");
    assert!(!shown.contains("key:") && !shown.contains("token"), "{shown}");
}
