use super::*;

#[test]
fn signed_headers_are_forwarded_and_unsigned_gateway_headers_are_not() {
    let caller = Request::get("/b/a%2Fb?x-pushdown-pipeline=decode")
        .header(HOST, "gateway")
        .header("x-pushdown-pipeline", "decode")
        .header("x-pushdown-split", "full")
        .header(RANGE, "bytes=0-1")
        .header(ACCEPT, "application/x-npy")
        .header(IF_NONE_MATCH, "\"derived\"")
        .header("user-agent", "test")
        .header(
            "authorization",
            "AWS4-HMAC-SHA256 Credential=a/d/r/s3/aws4_request, SignedHeaders=host;range;x-pushdown-pipeline, Signature=0",
        )
        .body(())
        .unwrap()
        .into_parts()
        .0;
    let mut request = OriginRequest::from_caller(&caller, StoreSignature::Unchanged).unwrap();
    request.add(RANGE, HeaderValue::from_static("bytes=9-"));
    request.add(IF_MATCH, HeaderValue::from_static("\"e\""));
    let (head, _) = request.into_head();
    assert_eq!(head.uri, "/b/a%2Fb?x-pushdown-pipeline=decode");
    assert_eq!(head.headers[RANGE], "bytes=0-1");
    assert_eq!(head.headers[IF_MATCH], "\"e\"");
    assert!(head.headers.contains_key("x-pushdown-pipeline"));
    for gone in ["x-pushdown-split", "accept", "if-none-match"] {
        assert!(!head.headers.contains_key(gone), "{gone}");
    }
}
#[test]
fn a_request_with_demands_of_its_own_is_not_plain() {
    let is_plain = |name: &'static str| {
        let mut request = OriginRequest::for_sample(HeaderValue::from_static("h"), "/b/k".parse().unwrap());
        request.add(HeaderName::from_static(name), HeaderValue::from_static("1"));
        request.is_plain()
    };
    for name in [
        "accept-encoding",
        "user-agent",
        "x-amz-checksum-mode",
        "x-amz-user-agent",
    ] {
        assert!(is_plain(name), "{name}");
    }
    for name in [
        "x-amz-expected-bucket-owner",
        "x-amz-request-payer",
        "x-amz-server-side-encryption-customer-key",
        "x-amz-unknown",
    ] {
        assert!(!is_plain(name), "{name}");
    }
}
