//! Clock, key, token, headers and payload line.

use super::*;

/// Verifies a request some seconds after it was signed.
fn refusal_after(request: &testkit::Request, seconds: u64) -> Option<AuthError> {
    let now = signing_time() + Duration::from_secs(seconds);
    verifier().verify_sent(&parts(request), &keys(), now).err()
}

/// Verifies a request some seconds before it was signed.
fn refusal_before(request: &testkit::Request, seconds: u64) -> Option<AuthError> {
    let now = signing_time() - Duration::from_secs(seconds);
    verifier().verify_sent(&parts(request), &keys(), now).err()
}

#[test]
fn a_header_signature_needs_one_date() {
    let request = signed(get("/k"));
    for changed in [
        without_header(&request, "x-amz-date"),
        request.clone().header("x-amz-date", "20231114T221320Z"),
        with_header(&request, "x-amz-date", "Tue, 14 Nov 2023 22:13:20 GMT"),
        without_header(&request, "x-amz-date").header("date", "Tue, 14 Nov 2023 22:13:20 GMT"),
    ] {
        assert_eq!(refusal(&changed), AuthError::MissingDate);
    }
}

#[test]
fn a_skewed_clock_is_refused() {
    let request = signed(get("/k"));
    assert_eq!(refusal_after(&request, 900), None);
    assert_eq!(refusal_before(&request, 900), None);
    assert_eq!(
        refusal_after(&request, 901),
        Some(AuthError::Skewed {
            request_time: "20231114T221320Z".to_owned(),
            server_time: "2023-11-14T22:28:21Z".to_owned(),
        })
    );
    assert!(refusal_before(&request, 901).is_some());
}

#[test]
fn a_presigned_request_is_valid_as_long_as_it_says() {
    let request = presigned(get("/k"));
    assert_eq!(refusal_after(&request, 300), None);
    assert_eq!(
        refusal_after(&request, 301),
        Some(AuthError::Expired {
            expires_seconds: 300,
            expired_at: "2023-11-14T22:18:20Z".to_owned(),
            server_time: "2023-11-14T22:18:21Z".to_owned(),
        })
    );
    assert_eq!(refusal_before(&request, 900), None);
    assert_eq!(refusal_before(&request, 901), Some(AuthError::NotYetValid));
}

#[test]
fn an_unknown_key_is_refused_by_its_name() {
    let signer = testkit::Keys::new("TESTOTHERKEY0001", SECRET).with_time(signing_time());
    let request = signer.sign(get("/k"), testkit::Payload::Signed).unwrap();
    let access_key = "TESTOTHERKEY0001".to_owned();
    assert_eq!(refusal(&request), AuthError::UnknownKey { access_key });
}

#[test]
fn session_tokens_are_refused() {
    let token = "X-Amz-Security-Token";
    for request in [
        signed(get("/k").header(token, "t")),
        signed(get("/k")).header(token, "t"),
        signed(get(&format!("/k?{token}=t"))),
        presigned(get("/k").header(token, "t")),
        presigned(get(&format!("/k?{token}=t"))),
    ] {
        assert_eq!(refusal(&request), AuthError::SessionToken, "{request:?}");
    }
}

#[test]
fn unsigned_headers_are_refused_by_their_names() {
    let unsigned = |names: &str| AuthError::UnsignedHeaders {
        names: names.to_owned(),
    };
    for request in [signed(get("/k")), presigned(get("/k"))] {
        let added = request
            .header("x-amz-tagging", "a=b")
            .header("X-Amz-Acl", "public-read");
        assert_eq!(refusal(&added), unsigned("x-amz-acl, x-amz-tagging"));
    }
    let request = with_authorization(&signed(get("/k")), "SignedHeaders=host;", "SignedHeaders=");
    assert_eq!(refusal(&request), unsigned("host"));
    let added = signed(get("/k")).header("range", "bytes=0-1");
    let verified = verify(&added).unwrap();
    assert!(verified.has_signed(&http::header::HOST) && !verified.has_signed(&http::header::RANGE));
}

#[test]
fn a_request_has_one_host() {
    let request = signed(get("/k"));
    for changed in [
        without_header(&request, "host"),
        request.clone().header("host", HOST),
    ] {
        assert_malformed(&changed, Carrier::Header);
    }
}

#[test]
fn the_payload_line_is_required_and_understood() {
    let name = "x-amz-content-sha256";
    let request = signed(get("/k"));
    // Not signed, or the absent header would be a malformed signature.
    let unsigned = with_authorization(&request, "host;x-amz-content-sha256;", "host;");
    assert_eq!(
        refusal(&without_header(&unsigned, name)),
        AuthError::MissingPayloadHash
    );
    for value in ["", "none", "STREAMING-PAYLOAD"] {
        let changed = with_header(&request, name, value);
        assert_eq!(refusal(&changed), AuthError::InvalidPayloadHash, "{value}");
    }
    let changed = with_header(&request, name, "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD");
    assert_eq!(refusal(&changed), AuthError::UnsupportedPayload);
    let hash = header(&request, name);
    let added = presigned(get("/k")).header(name, hash);
    let names = name.to_owned();
    assert_eq!(refusal(&added), AuthError::UnsignedHeaders { names });
}

#[test]
fn a_presigned_hash_is_enforced() {
    let hash = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    let mut expected = [0; 32];
    hex::decode_to_slice(hash, &mut expected).unwrap();
    // The oracle signs UNSIGNED-PAYLOAD here. The gateway expects the hash to be signed.
    for request in [
        presigned(get("/k").header("x-amz-content-sha256", hash)),
        presigned(get(&format!("/k?X-Amz-Content-Sha256={hash}"))),
    ] {
        let AuthError::SignatureMismatch(mismatch) = refusal(&request) else {
            panic!("{request:?}");
        };
        assert!(mismatch.canonical_request.as_str().ends_with(hash));
    }
}
