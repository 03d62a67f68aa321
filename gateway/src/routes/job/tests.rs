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
    PipelineJob::for_request(&request.into_parts().0, &models, &ModelScope::All)
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
