//! Each way to be refused.

mod heads;
mod readings;

use super::*;

/// The header signature with a part of it replaced.
fn with_authorization(request: &testkit::Request, from: &str, to: &str) -> testkit::Request {
    let authorization = header(request, "authorization");
    assert!(authorization.contains(from), "{authorization}");
    let authorization = authorization.replace(from, to);
    with_header(request, "authorization", &authorization)
}

/// The query signature with a part of it replaced.
fn with_target(request: &testkit::Request, from: &str, to: &str) -> testkit::Request {
    assert!(request.target.contains(from), "{}", request.target);
    let mut request = request.clone();
    request.target = request.target.replace(from, to);
    request
}

fn assert_malformed(request: &testkit::Request, carrier: Carrier) {
    match refusal(request) {
        AuthError::Malformed { carrier: found, .. } => assert_eq!(found, carrier),
        other => panic!("{request:?}: {other:?}"),
    }
}

fn assert_malformed_credential(request: &testkit::Request, carrier: Carrier) {
    match refusal(request) {
        AuthError::MalformedCredential { carrier: found, .. } => assert_eq!(found, carrier),
        other => panic!("{request:?}: {other:?}"),
    }
}

#[test]
fn an_anonymous_request_is_refused() {
    assert_eq!(refusal(&get("/k")), AuthError::Anonymous);
    assert_eq!(
        refusal(&get("/k").header("authorization", "")),
        AuthError::Anonymous
    );
}

#[test]
fn incomplete_escapes_are_refused() {
    for target in ["/k%zz", "/k%", "/k?prefix=%4"] {
        assert_eq!(refusal(&signed(get(target))), AuthError::InvalidUri, "{target}");
    }
}

#[test]
fn two_signatures_are_refused() {
    let (in_header, in_query) = (signed(get("/k")), presigned(get("/k")));
    let authorization = header(&in_header, "authorization").to_owned();
    for request in [
        in_query.clone().header("authorization", &authorization),
        in_query.clone().header("authorization", "AWS AK:c2ln"),
        in_header.clone().header("authorization", &authorization),
        in_header.clone().header("authorization", "Bearer token"),
        signed(get("/k?AWSAccessKeyId=AK&Signature=c2ln&Expires=1")),
        signed(get("/k?X-Amz-Expires=300")),
        with_target(&in_query, "?", "?AWSAccessKeyId=AK&"),
    ] {
        assert_eq!(refusal(&request), AuthError::SeveralSignatures, "{request:?}");
    }
}

#[test]
fn another_scheme_is_refused() {
    for value in ["Bearer token", "Basic dTpw", "aws4-hmac-sha256 x", "AWS4"] {
        assert_eq!(
            refusal(&get("/k").header("authorization", value)),
            AuthError::UnknownScheme,
            "{value}"
        );
    }
    let both = presigned(get("/k")).header("authorization", "Bearer token");
    assert_eq!(refusal(&both), AuthError::SeveralSignatures);
}

#[test]
fn version_2_and_asymmetric_signatures_are_refused() {
    let asymmetric = with_authorization(&signed(get("/k")), "AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256");
    let in_query = with_target(
        &presigned(get("/k")),
        "AWS4-HMAC-SHA256",
        "AWS4-ECDSA-P256-SHA256",
    );
    for request in [
        get("/k").header("authorization", "AWS AK:c2ln"),
        get("/k?AWSAccessKeyId=AK&Signature=c2ln&Expires=1"),
        asymmetric,
        in_query,
    ] {
        assert_eq!(refusal(&request), AuthError::UnsupportedVersion, "{request:?}");
    }
}

#[test]
fn html_forms_are_refused() {
    let form = testkit::Request::new("POST", "/")
        .header("host", HOST)
        .header("content-type", "Multipart/Form-Data; boundary=x");
    assert_eq!(refusal(&form), AuthError::FormUpload);
    assert_eq!(refusal(&signed(form)), AuthError::FormUpload);
}

#[test]
fn malformed_header_signatures_are_refused() {
    let request = signed(get("/k"));
    for (from, to) in [
        ("Credential=", ""),
        ("Credential=", "Key="),
        ("SignedHeaders=", "Signature="),
        (", Signature=", ", X="),
        (", Signature=", ", Signature=A"),
        ("SignedHeaders=host", "SignedHeaders=Host"),
        ("SignedHeaders=host", "SignedHeaders=host;host"),
        ("SignedHeaders=host", "SignedHeaders=absent;host"),
    ] {
        assert_malformed(&with_authorization(&request, from, to), Carrier::Header);
    }
    let authorization = header(&request, "authorization");
    let (start, signature) = authorization.rsplit_once('=').unwrap();
    for signature in [
        signature.to_ascii_uppercase(),
        signature[1..].to_owned(),
        format!("{signature}0"),
    ] {
        let changed = with_header(&request, "authorization", &format!("{start}={signature}"));
        assert_malformed(&changed, Carrier::Header);
    }
    assert_malformed(
        &with_header(&request, "authorization", "AWS4-HMAC-SHA256"),
        Carrier::Header,
    );
}

#[test]
fn malformed_query_signatures_are_refused() {
    let request = presigned(get("/k"));
    for name in [
        "X-Amz-Algorithm",
        "X-Amz-Credential",
        "X-Amz-Date",
        "X-Amz-Expires",
        "X-Amz-SignedHeaders",
        "X-Amz-Signature",
    ] {
        let with_equals = format!("{name}=");
        assert_malformed(&with_target(&request, &with_equals, "other="), Carrier::Query);
        let in_lower_case = with_equals.to_ascii_lowercase();
        assert_malformed(
            &with_target(&request, &with_equals, &in_lower_case),
            Carrier::Query,
        );
        let repeated = format!("{name}=1&{name}=");
        assert_malformed(&with_target(&request, &with_equals, &repeated), Carrier::Query);
    }
    for expires in ["604801", "99999999999999999999", "-1", "+300", "5m", ""] {
        let expires = format!("X-Amz-Expires={expires}&");
        assert_malformed(
            &with_target(&request, "X-Amz-Expires=300&", &expires),
            Carrier::Query,
        );
    }
    assert_malformed(
        &with_target(&request, "AWS4-HMAC-SHA256", "AWS4-HMAC-SHA512"),
        Carrier::Query,
    );
    assert_malformed(
        &with_target(&request, "X-Amz-Date=20231114T221320Z", "X-Amz-Date=20231114"),
        Carrier::Query,
    );
}

#[test]
fn malformed_credentials_are_refused() {
    let request = signed(get("/k"));
    for (from, to) in [
        ("/s3/", "/ec2/"),
        ("aws4_request", "aws5_request"),
        ("/20231114/", "/2023/"),
        ("/20231114/", "/20231113/"),
        ("TESTTRAINER00001/", ""),
        ("TESTTRAINER00001", ""),
    ] {
        assert_malformed_credential(&with_authorization(&request, from, to), Carrier::Header);
    }
    let request = presigned(get("/k"));
    for (from, to) in [("%2Fs3%2F", "%2Fec2%2F"), ("%2F20231114%2F", "%2F20231113%2F")] {
        assert_malformed_credential(&with_target(&request, from, to), Carrier::Query);
    }
}

#[test]
fn another_region_is_refused_by_its_name() {
    let mut signer = signer();
    signer.region = "eu-central-1".to_owned();
    let request = signer.sign(get("/k"), testkit::Payload::Signed).unwrap();
    assert!(verify(&request).is_ok(), "each configured region is served");

    signer.region = "mars-1".to_owned();
    let wrong = |carrier| AuthError::WrongRegion {
        carrier,
        found: "mars-1".to_owned(),
        expected: "us-east-1".to_owned(),
    };
    let request = signer.sign(get("/k"), testkit::Payload::Signed).unwrap();
    assert_eq!(refusal(&request), wrong(Carrier::Header));
    let request = signer.presign(get("/k"), Duration::from_mins(5)).unwrap();
    assert_eq!(refusal(&request), wrong(Carrier::Query));
}
