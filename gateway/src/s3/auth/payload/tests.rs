use http::HeaderValue;

use super::*;

const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn read(
    carrier: Carrier,
    headers: &[&'static str],
    parameter: Option<&str>,
    signed: &str,
) -> Result<PayloadMode, AuthError> {
    let mut map = HeaderMap::new();
    for &value in headers {
        map.append(CONTENT_SHA256, HeaderValue::from_static(value));
    }
    let query = parameter.map_or_else(String::new, |value| {
        format!("{}={value}", presign::CONTENT_SHA256)
    });
    let signed = SignedHeaders::parse(signed, carrier)?;
    Payload::from_request(carrier, &map, &Query::parse(&query)?, &signed).map(|payload| payload.mode)
}

fn from_header(headers: &[&'static str]) -> Result<PayloadMode, AuthError> {
    read(Carrier::Header, headers, None, "host")
}

fn presigned(headers: &[&'static str], parameter: Option<&str>) -> Result<PayloadMode, AuthError> {
    read(Carrier::Query, headers, parameter, "host")
}

fn empty() -> PayloadMode {
    let mut hash = [0; 32];
    hex::decode_to_slice(EMPTY, &mut hash).unwrap();
    PayloadMode::Hash(hash)
}

#[test]
fn a_header_signature_needs_one_hash_or_keyword() {
    assert_eq!(from_header(&[EMPTY]), Ok(empty()));
    let keywords = [
        ("UNSIGNED-PAYLOAD", PayloadMode::Unsigned),
        ("STREAMING-UNSIGNED-PAYLOAD-TRAILER", PayloadMode::UnsignedTrailer),
        ("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", PayloadMode::SignedChunks),
        (
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
            PayloadMode::SignedChunksTrailer,
        ),
    ];
    for (keyword, mode) in keywords {
        assert_eq!(from_header(&[keyword]), Ok(mode));
    }
    assert_eq!(from_header(&[]), Err(AuthError::MissingPayloadHash));
    let refused: [&[&'static str]; 4] = [&["none"], &[""], &["00ff"], &[EMPTY, EMPTY]];
    for headers in refused {
        assert_eq!(from_header(headers), Err(AuthError::InvalidPayloadHash));
    }
    let with_parameter = read(Carrier::Header, &[EMPTY], Some(EMPTY), "host");
    assert_eq!(with_parameter, Err(AuthError::InvalidPayloadHash));
}

#[test]
fn asymmetric_chunks_are_not_supported() {
    for keyword in [
        "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD",
        "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER",
    ] {
        assert_eq!(from_header(&[keyword]), Err(AuthError::UnsupportedPayload));
    }
}

#[test]
fn a_presigned_body_is_unsigned_or_has_a_signed_hash() {
    assert_eq!(presigned(&[], None), Ok(PayloadMode::Unsigned));
    assert_eq!(presigned(&["UNSIGNED-PAYLOAD"], None), Ok(PayloadMode::Unsigned));
    assert_eq!(
        presigned(&[], Some("UNSIGNED-PAYLOAD")),
        Ok(PayloadMode::Unsigned)
    );
    assert_eq!(presigned(&[], Some(EMPTY)), Ok(empty()));
    assert_eq!(presigned(&[EMPTY], Some(EMPTY)), Ok(empty()));
    let signed = read(Carrier::Query, &[EMPTY], None, "host;x-amz-content-sha256");
    assert_eq!(signed, Ok(empty()));

    let names = CONTENT_SHA256.to_owned();
    assert_eq!(
        presigned(&[EMPTY], None),
        Err(AuthError::UnsignedHeaders { names })
    );
    let refused: [(&[&'static str], &str); 3] = [
        (&["UNSIGNED-PAYLOAD"], EMPTY),
        (&[], "STREAMING-UNSIGNED-PAYLOAD-TRAILER"),
        (&[], "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
    ];
    for (headers, parameter) in refused {
        let found = presigned(headers, Some(parameter));
        assert_eq!(found, Err(AuthError::InvalidPayloadHash), "{parameter}");
    }
}

#[test]
fn a_chunk_seed_hides_its_secrets() {
    let seed = ChunkSeed::new([171; 32], "scope".to_owned(), "time".to_owned(), [205; 32]);
    let shown = format!("{seed:?}");
    assert_eq!(shown, r#"ChunkSeed { scope: "scope", timestamp: "time", .. }"#);
}
