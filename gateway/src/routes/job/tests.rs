use http::Request;

use super::*;

const SIGNED: &str =
    "AWS4-HMAC-SHA256 Credential=A/d/r/s3/aws4_request, SignedHeaders=host;range, Signature=0";

fn job(builder: http::request::Builder) -> Result<PipelineJob> {
    let Ok(request) = builder.body(()) else {
        panic!("the request cannot be built")
    };
    let Ok(models) = ModelRegistry::new(None, 0) else {
        panic!("no models is a valid folder")
    };
    let (head, ()) = request.into_parts();
    PipelineJob::for_request(&head, &StoreSignature::Unchanged, &models, TenantBy::AccessKey)
}

fn get(uri: &str) -> http::request::Builder {
    Request::get(uri).header("host", "gateway")
}

#[cfg(all(feature = "models", feature = "tables"))]
fn message(builder: http::request::Builder) -> String {
    job(builder).unwrap_err().to_string()
}

#[test]
fn header_and_query_are_equivalent() {
    let header = job(get("/b/a%20b")
        .header(wire::header::PIPELINE, "decode | to_float")
        .header(wire::header::SPLIT, "1"));
    let query = job(get(
        "/b/a%20b?x-pushdown-pipeline=decode%20%7C+to_float&x-pushdown-split=1",
    ));
    let (header, query) = (header.unwrap(), query.unwrap());
    assert_eq!(header.pipeline, query.pipeline);
    assert_eq!(header.split, Split::At(1));
    assert_eq!(header.sample_id, b"a b");
}

#[test]
fn the_tenant_is_the_access_key() {
    let pipeline = wire::header::PIPELINE;
    let presigned = get("/b/k?X-Amz-Credential=A%2Fd%2Fr%2Fs3%2Faws4_request").header(pipeline, "decode");
    let signed = get("/b/k")
        .header(pipeline, "decode")
        .header("authorization", SIGNED);
    let unsigned = get("/b/k").header(pipeline, "decode");
    assert_eq!(
        job(presigned).unwrap().position.tenant(),
        &Tenant::from_access_key(Some("A"))
    );
    assert_eq!(
        job(signed).unwrap().position.tenant(),
        &Tenant::from_access_key(Some("A"))
    );
    assert_eq!(job(unsigned).unwrap().position.tenant(), &Tenant::default());
}

// An error lists all steps.
#[cfg(all(feature = "models", feature = "tables"))]
#[test]
fn invalid_requests_are_refused_with_a_reason() {
    let pipeline = wire::header::PIPELINE;
    insta::assert_snapshot!(
        [
            message(get("/b/k?x-pushdown-pipeline=decode").header(pipeline, "decode")),
            message(get("/b/k").header(pipeline, "decode").header(pipeline, "decode")),
            message(
                Request::put("/b/k")
                    .header("host", "g")
                    .header(pipeline, "decode")
            ),
            message(get("/b/").header(pipeline, "decode")),
            message(get("/b").header(pipeline, "decode")),
            message(get("/b/k?tagging").header(pipeline, "decode")),
            message(get("/b/k?partNumber=1").header(pipeline, "decode")),
            message(
                get("/b/k")
                    .header(pipeline, "decode")
                    .header("range", "bytes=0-1")
                    .header("authorization", SIGNED)
            ),
            message(
                get("/b/k")
                    .header(pipeline, "decode")
                    .header(wire::header::SEED, "-1")
            ),
            message(
                get("/b/k")
                    .header(pipeline, "decode")
                    .header(wire::header::SPLIT, "half")
            ),
            message(get("/b/k").header(pipeline, "dekode")),
        ]
        .join("\n")
    );
}

#[test]
fn a_member_has_its_place_in_headers_or_in_the_query() {
    let header = job(get("/b/x/train%201.tar")
        .header(wire::header::PIPELINE, "decode")
        .header(wire::header::MEMBER, "a/%C3%A9%25.jpg")
        .header(wire::header::OFFSET, "1024")
        .header(wire::header::SIZE, "7000")
        .header(wire::header::HEADER_SIZE, "1536")
        .header(wire::header::SHARD_ETAG, "\"e\""));
    let query = job(get(
        "/b/x/train%201.tar?x-pushdown-pipeline=decode&x-pushdown-member=a/%25C3%25A9%2525.jpg&x-pushdown-offset=1024\
         &x-pushdown-size=7000&x-pushdown-header-size=1536&x-pushdown-shard-etag=%22e%22",
    ));
    let (header, query) = (header.unwrap(), query.unwrap());
    assert_eq!(header.member, query.member);
    let member = header.member.unwrap();
    assert_eq!(member.name(), "a/\u{e9}%.jpg");
    assert_eq!(member.etag().unwrap(), "\"e\"");
    assert_eq!(header.sample_id, "x/train 1.tar\0a/\u{e9}%.jpg".as_bytes());
    assert_eq!(query.sample_id, header.sample_id);
}

#[test]
fn a_member_without_its_place_is_refused_with_a_reason() {
    let member = |key: &str, headers: &[(&str, &str)]| {
        let request = get(&format!("/b/{key}")).header(wire::header::PIPELINE, "decode");
        let add =
            |request: http::request::Builder, (name, value): &(&str, &str)| request.header(*name, *value);
        job(headers.iter().fold(request, add)).unwrap_err()
    };
    let (name, offset, size) = (
        ("x-pushdown-member", "a.jpg"),
        ("x-pushdown-offset", "0"),
        ("x-pushdown-size", "7"),
    );
    let header_size = |bytes| ("x-pushdown-header-size", bytes);
    for (key, headers, expected) in [
        ("t.tar", &[name][..], "`pushdown ls --members s3://b/t.tar`"),
        ("t.tar", &[name, offset], "`pushdown ls --members s3://b/t.tar`"),
        ("t.tar", &[offset], "unexpected x-pushdown-offset"),
        (
            "t.tar",
            &[header_size("512")],
            "unexpected x-pushdown-header-size",
        ),
        ("t.tar.gz", &[name, offset, size], "ends in .tar or .zip"),
        (
            "t.tar",
            &[name, offset, size, header_size("0")],
            "invalid x-pushdown-offset",
        ),
        (
            "t.tar",
            &[name, offset, ("x-pushdown-size", "-1")],
            "expected a non-negative integer",
        ),
        (
            "t.tar",
            &[("x-pushdown-member", "../a"), offset, size],
            "invalid x-pushdown-member",
        ),
        (
            "t.tar",
            &[("x-pushdown-member", "%ff"), offset, size],
            "percent-encoded UTF-8",
        ),
        (
            "t.tar",
            &[name, offset, size, ("x-pushdown-shard-etag", "\"a b\"")],
            "expected the ETag as listed",
        ),
    ] {
        let error = member(key, headers);
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn unsigned_conditions_apply_to_the_result() {
    let unsigned = SIGNED.replace(";range", "");
    assert!(
        job(get("/b/k")
            .header(wire::header::PIPELINE, "decode")
            .header("range", "bytes=0-1")
            .header("authorization", unsigned))
        .is_ok()
    );
}
