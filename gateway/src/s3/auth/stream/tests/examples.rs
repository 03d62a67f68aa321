//! Bodies of others: the examples of AWS, and what clients send.

use http::HeaderName;
use pushdown_testkit::{ChunkedBody, Payload, Request};

use super::pieces::{Outcome, read};
use super::upload::{SEED, keys, seed};
use super::*;

/// A body of 66,560 times `a` as AWS signs it, with these signatures of its chunks, and its trailers.
fn example(signatures: [&str; 3], trailers: &str) -> Vec<u8> {
    let [first, second, last] = signatures;
    let (whole, rest) = ("a".repeat(65_536), "a".repeat(1024));
    format!(
        "10000;chunk-signature={first}\r\n{whole}\r\n400;chunk-signature={second}\r\n{rest}\r\n\
         0;chunk-signature={last}\r\n{trailers}\r\n"
    )
    .into_bytes()
}

/// Sends a body with this signature of its head.
fn send(mode: PayloadMode, signature: &str, headers: &HeaderMap, body: &[u8]) -> Outcome {
    let pieces = Pieces {
        left: body.chunks(1000).map(Bytes::copy_from_slice).collect(),
        content_length: Some(body.len() as u64),
        has_ended: false,
    };
    read(VerifyingBody::new(pieces, mode, Some(seed(signature)), headers).unwrap())
}

/// <https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html>
#[test]
fn signed_chunks_of_aws() {
    let signatures = [
        "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
        "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
        "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
    ];
    let mut headers = HeaderMap::new();
    set(&mut headers, "x-amz-decoded-content-length", "66560");
    let body = example(signatures, "");
    let (output, verdict) = send(PayloadMode::SignedChunks, SEED, &headers, &body);
    assert_eq!(verdict, Ok(()));
    assert_eq!(output.len(), 66_560);
    assert!(output.iter().all(|byte| *byte == b'a'));
    let parsed = ChunkedBody::parse(&body, true).unwrap();
    assert_eq!(parsed.signatures, signatures);
    assert!(keys().sign_chunks(parsed.clone(), SEED).unwrap() == parsed);
}

/// <https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming-trailers.html>
#[test]
fn a_signed_trailer_of_aws() {
    let signatures = [
        "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2",
        "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7",
        "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992",
    ];
    let trailer = "x-amz-checksum-crc32c:sOO8/Q==";
    let signature =
        "x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435";
    let mut headers = HeaderMap::new();
    set(&mut headers, "x-amz-decoded-content-length", "66560");
    set(&mut headers, "x-amz-trailer", "x-amz-checksum-crc32c");
    let (whole, rest) = ("a".repeat(65_536), "a".repeat(1024));
    let expected = format!("10000\r\n{whole}\r\n400\r\n{rest}\r\n0\r\n{trailer}\r\n\r\n");
    // The second form is that of minio-go.
    for trailers in [
        format!("{trailer}\r\n{signature}\r\n"),
        format!("{trailer}\n\r\n{signature}\r\n"),
    ] {
        let body = example(signatures, &trailers);
        let seed = "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e";
        let (output, verdict) = send(PayloadMode::SignedChunksTrailer, seed, &headers, &body);
        assert_eq!(verdict, Ok(()));
        assert!(output == expected.as_bytes());
    }
}

#[test]
fn bodies_of_an_sdk() {
    for length in [0, 1, 8192, 20_000] {
        for payload in [Payload::Chunks, Payload::ChunksAndTrailer, Payload::Trailer] {
            let data = vec![b'x'; length];
            let request = Request::new("PUT", "/b/k").header("host", "h").body(data.clone());
            let request = keys().sign(request, payload).unwrap();
            let mut headers = HeaderMap::new();
            for (name, value) in &request.headers {
                let name: HeaderName = name.parse().unwrap();
                headers.append(name, value.parse().unwrap());
            }
            let authorization = headers["authorization"].to_str().unwrap();
            let (_, signature) = authorization.split_once("Signature=").unwrap();
            let mode = match payload {
                Payload::Chunks => PayloadMode::SignedChunks,
                Payload::ChunksAndTrailer => PayloadMode::SignedChunksTrailer,
                _ => PayloadMode::UnsignedTrailer,
            };
            let (output, verdict) = send(mode, signature, &headers, &request.body);
            assert_eq!(verdict, Ok(()), "{payload:?} {length}");
            match payload {
                Payload::Chunks => assert!(output == data),
                Payload::Trailer => assert!(output == request.body),
                _ => assert!(ChunkedBody::parse(&output, false).unwrap().data() == data),
            }
        }
    }
}
