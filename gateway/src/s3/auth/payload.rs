//! What a signature says about the body: the last line of the canonical request.

use std::borrow::Cow;
use std::fmt;

use http::HeaderMap;
use pushdown_s3::presign;

use super::error::AuthError;
use super::signed_headers::SignedHeaders;
use crate::s3::query::Query;
use crate::s3::sign::Carrier;

/// The header with the hash of the body, or a keyword.
pub(super) const CONTENT_SHA256: &str = "x-amz-content-sha256";

const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

/// How the body of a verified request is verified in its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PayloadMode {
    /// The body has this SHA-256.
    Hash([u8; 32]),
    /// The body is not signed.
    Unsigned,
    /// `aws-chunked` framing with unsigned chunks and a trailer.
    UnsignedTrailer,
    /// `aws-chunked` framing with signed chunks.
    SignedChunks,
    /// `aws-chunked` framing with signed chunks and a signed trailer.
    SignedChunksTrailer,
}

/// What the signatures of chunks are computed from. `Debug` does not show the signing key, nor the signature.
#[derive(Clone)]
pub struct ChunkSeed {
    signing_key: [u8; 32],
    scope: String,
    timestamp: String,
    seed_signature: [u8; 32],
}

/// The last line of a canonical request, and what it means.
#[derive(Debug)]
pub(super) struct Payload<'a> {
    pub(super) line: Cow<'a, str>,
    pub(super) mode: PayloadMode,
}

impl PayloadMode {
    /// Whether the chunks of the body are signed.
    pub fn has_signed_chunks(&self) -> bool {
        matches!(self, Self::SignedChunks | Self::SignedChunksTrailer)
    }

    fn parse(line: &str) -> Result<Self, AuthError> {
        match line {
            UNSIGNED => Ok(Self::Unsigned),
            "STREAMING-UNSIGNED-PAYLOAD-TRAILER" => Ok(Self::UnsignedTrailer),
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" => Ok(Self::SignedChunks),
            "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER" => Ok(Self::SignedChunksTrailer),
            "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD"
            | "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD-TRAILER" => Err(AuthError::UnsupportedPayload),
            _ => {
                let mut hash = [0; 32];
                hex::decode_to_slice(line, &mut hash).map_err(|_| AuthError::InvalidPayloadHash)?;
                Ok(Self::Hash(hash))
            }
        }
    }
}

impl ChunkSeed {
    /// The seed of a request: the key and the scope of its signature, its time as sent, and the signature itself.
    pub(crate) fn new(
        signing_key: [u8; 32],
        scope: String,
        timestamp: String,
        seed_signature: [u8; 32],
    ) -> Self {
        Self {
            signing_key,
            scope,
            timestamp,
            seed_signature,
        }
    }

    /// The key that signs chunks.
    pub(crate) fn signing_key(&self) -> &[u8; 32] {
        &self.signing_key
    }

    /// Date, region, service and terminal: `20130524/us-east-1/s3/aws4_request`.
    pub(crate) fn scope(&self) -> &str {
        &self.scope
    }

    /// Time of the request as sent: `20130524T000000Z`.
    pub(crate) fn timestamp(&self) -> &str {
        &self.timestamp
    }

    /// The signature of the head. The first chunk's signature covers it.
    pub(crate) fn seed_signature(&self) -> &[u8; 32] {
        &self.seed_signature
    }
}

impl fmt::Debug for ChunkSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChunkSeed")
            .field("scope", &self.scope)
            .field("timestamp", &self.timestamp)
            .finish_non_exhaustive()
    }
}

impl<'a> Payload<'a> {
    /// Reads the payload line of a request.
    pub(super) fn from_request(
        carrier: Carrier,
        headers: &'a HeaderMap,
        query: &Query,
        signed_headers: &SignedHeaders<'_>,
    ) -> Result<Self, AuthError> {
        let header = header(headers)?;
        let parameter = query.decoded(presign::CONTENT_SHA256);
        let line = if carrier == Carrier::Query {
            presigned_line(header, parameter, signed_headers.contains(CONTENT_SHA256))?
        } else if parameter.is_some() {
            return Err(AuthError::InvalidPayloadHash);
        } else {
            Cow::Borrowed(header.ok_or(AuthError::MissingPayloadHash)?)
        };
        let mode = PayloadMode::parse(&line)?;
        let is_whole = matches!(mode, PayloadMode::Hash(_) | PayloadMode::Unsigned);
        if carrier == Carrier::Query && !is_whole {
            return Err(AuthError::InvalidPayloadHash);
        }
        Ok(Self { line, mode })
    }
}

/// `x-amz-content-sha256`, which may be sent once.
fn header(headers: &HeaderMap) -> Result<Option<&str>, AuthError> {
    let mut values = headers.get_all(CONTENT_SHA256).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value
            .to_str()
            .map(Some)
            .map_err(|_| AuthError::InvalidPayloadHash),
        (Some(_), Some(_)) => Err(AuthError::InvalidPayloadHash),
    }
}

/// The payload line of a presigned request: unsigned, unless the signature covers a hash in a header or a parameter. An
/// unsigned hash is refused: nobody would enforce it.
fn presigned_line(
    header: Option<&str>,
    parameter: Option<String>,
    is_header_signed: bool,
) -> Result<Cow<'_, str>, AuthError> {
    match (header, parameter) {
        (None, None) => Ok(Cow::Borrowed(UNSIGNED)),
        (None, Some(parameter)) => Ok(Cow::Owned(parameter)),
        (Some(header), None) if is_header_signed || header == UNSIGNED => Ok(Cow::Borrowed(header)),
        (Some(_), None) => Err(AuthError::UnsignedHeaders {
            names: CONTENT_SHA256.to_owned(),
        }),
        (Some(header), Some(parameter)) if header == parameter => Ok(Cow::Owned(parameter)),
        (Some(_), Some(_)) => Err(AuthError::InvalidPayloadHash),
    }
}

#[cfg(test)]
mod tests;
