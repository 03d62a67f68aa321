mod confirmed;

use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::*;
use crate::origin::OriginObject;

const SIGNED: &str = "/b/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a%2F20260101%2Fr%2Fs3%2Faws4_request\
    &X-Amz-Date=20260101T000000Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host&X-Amz-Signature=00";

fn remembered() -> Remembered {
    let rules = Rules {
        auth_ttl: Duration::from_mins(1),
        ..Rules::default()
    };
    Remembered::new(rules, 1 << 20).unwrap()
}

fn request(target: &str) -> OriginRequest {
    OriginRequest::for_sample(HeaderValue::from_static("store"), target.parse().unwrap())
}

fn authorization(request: &OriginRequest) -> Authorization {
    let headers = HeaderMap::from_iter([(header::ETAG, HeaderValue::from_static("\"e\""))]);
    let answer = OriginObject::for_test(StatusCode::OK, headers);
    Authorization::from_answer(request.object_id(), &answer).unwrap()
}

/// Seconds after the time of the signature.
fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600 + seconds)
}

#[test]
fn only_the_same_bytes_are_recalled() {
    let remembered = remembered();
    let request = request(SIGNED);
    remembered.insert(&request, &authorization(&request), at(0));
    assert_eq!(remembered.get(&request, at(59)), Some(authorization(&request)));
    assert_eq!(remembered.get(&request, at(60)), None, "after the ttl");
    let others = [
        SIGNED.replace("Signature=00", "Signature=01"),
        SIGNED.replace("/b/k", "/b/%6B"),
        format!("{SIGNED}&x=y"),
    ];
    for other in others {
        assert_eq!(remembered.get(&self::request(&other), at(1)), None, "{other}");
    }
    let other_host = OriginRequest::for_sample(HeaderValue::from_static("other"), SIGNED.parse().unwrap());
    assert_eq!(remembered.get(&other_host, at(1)), None);
}

#[test]
fn nothing_is_remembered_beyond_its_signature() {
    let remembered = remembered();
    let request = request(SIGNED);
    remembered.insert(&request, &authorization(&request), at(890));
    assert!(remembered.get(&request, at(899)).is_some());
    assert_eq!(remembered.get(&request, at(900)), None);
}

#[test]
fn requests_whose_target_does_not_say_all_are_not_remembered() {
    for target in [
        "/b/k".to_owned(),
        SIGNED.replace("SignedHeaders=host", "SignedHeaders=host%3Brange"),
        SIGNED.replace("X-Amz-Expires=900", "X-Amz-Expires=soon"),
        SIGNED.replace("X-Amz-Date=20260101T000000Z", "X-Amz-Date=today"),
        SIGNED.replace("&X-Amz-Signature=00", ""),
        format!("{SIGNED}&X-Amz-Expires=900000"),
    ] {
        assert_eq!(signature_expiry(&request(&target)), None, "{target}");
    }
    assert!(Remembered::new(Rules::default(), 1 << 20).is_none());
}
