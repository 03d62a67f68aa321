//! Signs requests with AWS Signature Version 4: in headers, in the query, and in chunks; and verifies signatures in headers and in the query.

mod chunked;
mod head;
mod presigned;

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SignatureLocation,
    SigningSettings, UriPathNormalizationMode, sign,
};
use aws_sigv4::sign::v4::{SigningParams, sign_chunk, sign_trailer};
use aws_smithy_runtime_api::client::identity::Identity;
use aws_smithy_runtime_api::http::Headers;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

pub use chunked::{ChunkedBody, Trailers};
pub(crate) use head::{Authorization, CONTENT_SHA256, DATE, SECURITY_TOKEN, signing_time};
pub(crate) use presigned::Presigned;

use crate::raw::Request;

/// Credentials and the time of signing.
#[derive(Debug, Clone)]
pub struct Keys {
    /// The access key.
    pub access: String,
    /// The secret key.
    pub secret: String,
    /// The token of temporary credentials.
    pub token: Option<String>,
    /// The region of the signature.
    pub region: String,
    /// The time of signing; `None` for the current time.
    pub time: Option<SystemTime>,
}

/// How to sign the body of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// The signature covers the digest of the body.
    Signed,
    /// The body is not signed.
    Unsigned,
    /// `aws-chunked` with signed chunks.
    Chunks,
    /// `aws-chunked` with signed chunks and a signed CRC32 trailer.
    ChunksAndTrailer,
    /// `aws-chunked` with unsigned chunks and a CRC32 trailer.
    Trailer,
}

/// Size of the chunks of `aws-chunked` bodies, the minimum that stores accept.
const CHUNK_BYTES: usize = 8192;

/// What signatures require to be percent-encoded in a query value.
const QUERY_VALUE: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

impl Keys {
    /// Keys for `us-east-1`.
    pub fn new(access: &str, secret: &str) -> Self {
        Self {
            access: access.to_owned(),
            secret: secret.to_owned(),
            token: None,
            region: "us-east-1".to_owned(),
            time: None,
        }
    }

    /// The same keys with another time of signing.
    #[must_use]
    pub fn with_time(&self, time: SystemTime) -> Self {
        Self {
            time: Some(time),
            ..self.clone()
        }
    }

    /// Signs in the `Authorization` header, including all headers of the request. Encodes the body as `aws-chunked` if `payload`
    /// requires it.
    pub fn sign(&self, request: Request, payload: Payload) -> Result<Request> {
        let (mut request, signable, raw) = prepare(request, payload);
        let body = match &signable {
            Some(placeholder) => SignableBody::Precomputed((*placeholder).to_owned()),
            None => SignableBody::Bytes(&raw),
        };
        let identity = self.identity();
        // Chunks have the time of their head.
        let now = self.with_time(self.time.unwrap_or_else(SystemTime::now));
        let copy = request.clone();
        let params = now.params(&identity, SignatureLocation::Headers, None)?;
        let (instructions, signature) = sign(signable_of(&copy, body)?, &params.into())?.into_parts();
        for (name, value) in instructions.headers() {
            request.headers.push((name.to_owned(), value.to_owned()));
        }
        request.body = match payload {
            Payload::Signed | Payload::Unsigned => raw,
            Payload::Chunks | Payload::ChunksAndTrailer => {
                let params = now.params(&identity, SignatureLocation::Headers, None)?;
                signed_chunks(&raw, payload == Payload::ChunksAndTrailer, signature, &params)?
            }
            Payload::Trailer => unsigned_chunks(&raw),
        };
        Ok(request)
    }

    /// Signs in the query, including all headers of the request. The body is not signed.
    pub fn presign(&self, request: Request, expires: Duration) -> Result<Request> {
        self.presign_payload(request, SignableBody::UnsignedPayload, expires)
    }

    /// The same with a body of this SHA-256, in hex digits, which is signed and sent in `x-amz-content-sha256`.
    pub fn presign_body(&self, request: Request, sha256: &str, expires: Duration) -> Result<Request> {
        let request = request.header("x-amz-content-sha256", sha256);
        self.presign_payload(request, SignableBody::Precomputed(sha256.to_owned()), expires)
    }

    fn presign_payload(
        &self,
        request: Request,
        body: SignableBody<'_>,
        expires: Duration,
    ) -> Result<Request> {
        let identity = self.identity();
        let params = self.params(&identity, SignatureLocation::QueryParams, Some(expires))?;
        let copy = request.clone();
        let signable = signable_of(&copy, body)?;
        let (instructions, _) = sign(signable, &params.into())?.into_parts();
        let mut request = request;
        for (name, value) in instructions.params() {
            request
                .target
                .push(if request.target.contains('?') { '&' } else { '?' });
            request.target.push_str(name);
            request.target.push('=');
            request.target.extend(utf8_percent_encode(value, QUERY_VALUE));
        }
        Ok(request)
    }

    fn identity(&self) -> Identity {
        Credentials::new(&self.access, &self.secret, self.token.clone(), None, "test").into()
    }

    fn params<'a>(
        &'a self,
        identity: &'a Identity,
        location: SignatureLocation,
        expires: Option<Duration>,
    ) -> Result<SigningParams<'a, SigningSettings>> {
        let mut settings = SigningSettings::default();
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
        settings.signature_location = location;
        settings.expires_in = expires;
        settings.excluded_headers = Some(vec![Cow::Borrowed("authorization"), Cow::Borrowed("connection")]);
        if location == SignatureLocation::Headers {
            settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        }
        SigningParams::builder()
            .identity(identity)
            .region(&self.region)
            .name("s3")
            .time(self.time.unwrap_or_else(SystemTime::now))
            .settings(settings)
            .build()
            .context("cannot sign")
    }
}

/// Adds the headers of the encoding. Returns the raw body, and the placeholder that is signed instead of its digest.
fn prepare(request: Request, payload: Payload) -> (Request, Option<&'static str>, Vec<u8>) {
    let mut request = request;
    let raw = std::mem::take(&mut request.body);
    let placeholder = match payload {
        Payload::Signed => return (request, None, raw),
        Payload::Unsigned => return (request, Some("UNSIGNED-PAYLOAD"), raw),
        Payload::Chunks => "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
        Payload::ChunksAndTrailer => "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
        Payload::Trailer => "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
    };
    request
        .headers
        .retain(|(name, _)| !name.eq_ignore_ascii_case("content-length"));
    let request = request
        .header("content-encoding", "aws-chunked")
        .header("x-amz-decoded-content-length", &raw.len().to_string());
    let request = match payload {
        Payload::Chunks => request,
        _ => request.header("x-amz-trailer", "x-amz-checksum-crc32"),
    };
    let length = framed_length(&raw, payload);
    (
        request.header("content-length", &length.to_string()),
        Some(placeholder),
        raw,
    )
}

fn signable_of<'a>(request: &'a Request, body: SignableBody<'a>) -> Result<SignableRequest<'a>> {
    let host = request
        .headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("host"));
    let (_, host) = host.context("a signed request needs a host header")?;
    let headers = request
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    Ok(SignableRequest::new(
        &request.method,
        format!("http://{host}{}", request.target),
        headers,
        body,
    )?)
}

fn signed_chunks(
    raw: &[u8],
    trailer: bool,
    seed: String,
    params: &SigningParams<'_, SigningSettings>,
) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    let mut running = seed;
    for chunk in raw.chunks(CHUNK_BYTES).chain([&[][..]]) {
        let ((), signature) = sign_chunk(&Bytes::copy_from_slice(chunk), &running, params)?.into_parts();
        body.extend(format!("{:x};chunk-signature={signature}\r\n", chunk.len()).bytes());
        running = signature;
        if !chunk.is_empty() {
            body.extend(chunk);
            body.extend(b"\r\n");
        }
    }
    if trailer {
        let checksum = crc32(raw);
        let mut headers = Headers::new();
        headers.insert("x-amz-checksum-crc32", checksum.clone());
        let ((), signature) = sign_trailer(&headers, &running, params)?.into_parts();
        body.extend(
            format!("x-amz-checksum-crc32:{checksum}\r\nx-amz-trailer-signature:{signature}\r\n").bytes(),
        );
    }
    body.extend(b"\r\n");
    Ok(body)
}

fn unsigned_chunks(raw: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    for chunk in raw.chunks(CHUNK_BYTES) {
        body.extend(format!("{:x}\r\n", chunk.len()).bytes());
        body.extend(chunk);
        body.extend(b"\r\n");
    }
    body.extend(format!("0\r\nx-amz-checksum-crc32:{}\r\n\r\n", crc32(raw)).bytes());
    body
}

fn framed_length(raw: &[u8], payload: Payload) -> usize {
    const SIGNATURE: usize = ";chunk-signature=".len() + 64;
    const TRAILER: usize = "x-amz-checksum-crc32:AAAAAA==\r\n".len();
    let signature = if payload == Payload::Trailer { 0 } else { SIGNATURE };
    let chunks: usize = raw
        .chunks(CHUNK_BYTES)
        .map(|chunk| format!("{:x}", chunk.len()).len() + signature + 4 + chunk.len())
        .sum();
    let last = "0".len() + signature + 2;
    let trailer = match payload {
        Payload::ChunksAndTrailer => TRAILER + "x-amz-trailer-signature:\r\n".len() + 64,
        Payload::Trailer => TRAILER,
        _ => 0,
    };
    chunks + last + trailer + 2
}

/// CRC-32 (IEEE) in base64, as in S3 headers.
fn crc32(bytes: &[u8]) -> String {
    STANDARD.encode(crc32fast::hash(bytes).to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_s3() {
        assert_eq!(crc32(b"123456789"), "y/Q5Jg==");
        assert_eq!(crc32(b""), "AAAAAA==");
    }

    #[test]
    fn content_length_is_the_encoded_length() {
        let keys = Keys::new("ak", "sk");
        for payload in [Payload::Chunks, Payload::ChunksAndTrailer, Payload::Trailer] {
            for length in [0, 1, CHUNK_BYTES, CHUNK_BYTES + 1, 3 * CHUNK_BYTES] {
                let request = Request::new("PUT", "/b/k")
                    .header("host", "h")
                    .body(vec![7; length]);
                let signed = keys.sign(request, payload).unwrap();
                let lengths: Vec<_> = signed
                    .headers
                    .iter()
                    .filter(|(name, _)| name == "content-length")
                    .collect();
                assert_eq!(
                    lengths,
                    [&("content-length".to_owned(), signed.body.len().to_string())]
                );
            }
        }
    }
}
