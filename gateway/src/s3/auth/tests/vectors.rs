//! The examples of the S3 documentation, with their published signatures: "Signature Calculations for the Authorization Header",
//! "Authenticating Requests: Using Query Parameters", and "Transferring Payload in Multiple Chunks".

use super::*;
use crate::s3::AddressStyle;

const ACCESS_KEY: &str = "AKIAIOSFODNN7EXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// 2013-05-24T00:00:00Z.
fn time() -> SystemTime {
    UNIX_EPOCH + Duration::from_hours(380_376)
}

fn verify(request: &testkit::Request) -> Result<Verified, AuthError> {
    verifier().verify_sent(&parts(request), &Keys::for_test(&[(ACCESS_KEY, SECRET)]), time())
}

fn example(
    method: &str,
    target: &str,
    payload: &str,
    signed_headers: &str,
    signature: &str,
) -> testkit::Request {
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/20130524/us-east-1/s3/aws4_request,SignedHeaders={signed_headers},\
         Signature={signature}"
    );
    testkit::Request::new(method, target)
        .header("x-amz-date", "20130524T000000Z")
        .header("x-amz-content-sha256", payload)
        .header("Authorization", &authorization)
}

/// An example with a virtual host. Returns the key.
fn verified_key(request: testkit::Request) -> String {
    let request = request.header("Host", "examplebucket.s3.amazonaws.com");
    let verified = verify(&request).unwrap();
    assert_eq!(verified.key().access_key(), ACCESS_KEY);
    assert_eq!(verified.secret().as_bytes(), SECRET.as_bytes());
    assert_eq!(verified.address().style(), AddressStyle::VirtualHost);
    assert_eq!(verified.address().bucket(), b"examplebucket");
    String::from_utf8(verified.address().key().to_vec()).unwrap()
}

#[test]
fn get_object() {
    let request = example(
        "GET",
        "/test.txt",
        EMPTY,
        "host;range;x-amz-content-sha256;x-amz-date",
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
    );
    assert_eq!(verified_key(request.header("Range", "bytes=0-9")), "test.txt");
}

#[test]
fn put_object() {
    let request = example(
        "PUT",
        "/test$file.text",
        "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
        "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
        "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
    )
    .header("Date", "Fri, 24 May 2013 00:00:00 GMT")
    .header("x-amz-storage-class", "REDUCED_REDUNDANCY");
    assert_eq!(verified_key(request), "test$file.text");
}

#[test]
fn get_bucket_lifecycle() {
    let request = example(
        "GET",
        "/?lifecycle",
        EMPTY,
        "host;x-amz-content-sha256;x-amz-date",
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
    );
    assert_eq!(verified_key(request), "");
}

#[test]
fn list_objects() {
    let request = example(
        "GET",
        "/?max-keys=2&prefix=J",
        EMPTY,
        "host;x-amz-content-sha256;x-amz-date",
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
    );
    assert_eq!(verified_key(request), "");
}

#[test]
fn presigned_url() {
    let target = "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
        &X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host\
        &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
    assert_eq!(verified_key(testkit::Request::new("GET", target)), "test.txt");
}

#[test]
fn signed_chunks() {
    let chunks = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";
    let trailer = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER";
    let with_trailer = example(
        "PUT",
        "/examplebucket/chunkObject.txt",
        trailer,
        "content-encoding;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class;x-amz-trailer",
        "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e",
    )
    .header("x-amz-trailer", "x-amz-checksum-crc32c");
    let without_trailer = example(
        "PUT",
        "/examplebucket/chunkObject.txt",
        chunks,
        "content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;\
         x-amz-storage-class",
        "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9",
    )
    .header("Content-Length", "66824");
    for (request, mode, signature) in [
        (without_trailer, PayloadMode::SignedChunks, "4f232c43"),
        (with_trailer, PayloadMode::SignedChunksTrailer, "106e2a8a"),
    ] {
        let request = request
            .header("Host", "s3.amazonaws.com")
            .header("Content-Encoding", "aws-chunked")
            .header("x-amz-decoded-content-length", "66560")
            .header("x-amz-storage-class", "REDUCED_REDUNDANCY");
        let verified = verify(&request).unwrap();
        assert_eq!(verified.address().style(), AddressStyle::Path);
        assert_eq!(verified.payload(), mode);
        let seed = verified.chunk_seed().unwrap();
        assert_eq!(seed.scope(), "20130524/us-east-1/s3/aws4_request");
        assert_eq!(seed.timestamp(), "20130524T000000Z");
        assert!(hex::encode(seed.seed_signature()).starts_with(signature));
    }
}
