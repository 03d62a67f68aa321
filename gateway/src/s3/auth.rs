//! Verifies the signature of a request: AWS Signature Version 4, in the `Authorization` header or in the query.
//!
//! [`Verifier::verify`] is the only way to a [`Verified`] request. It does no I/O, reads the head only, and refuses what it does
//! not understand: version 2, asymmetric signatures, HTML forms and session tokens.

mod canonical;
mod carrier;
mod clock;
mod error;
mod payload;
mod scope;
mod signed_headers;
mod signing_keys;
pub mod stream;

use std::fmt;
use std::iter;
use std::sync::Arc;
use std::time::SystemTime;

use http::header::HOST;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue};
use pushdown_s3::presign;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

pub(super) use self::error::malformed;
pub use self::error::{AuthError, Mismatch, Quoted};
pub use self::payload::{ChunkSeed, PayloadMode};

use self::canonical::CanonicalRequest;
use self::carrier::Claim;
use self::payload::Payload;
use self::scope::Scope;
use self::signed_headers::SignedHeaders;
use self::signing_keys::SigningKeys;
use super::escapes;
use super::query::Query;
use super::sign::{ALGORITHM, Carrier};
use super::{AddressStyle, RequestAddress};
use crate::access::{Caller, Key, Keys, Secret};

const SECURITY_TOKEN: &str = "x-amz-security-token";

/// Verifies requests to one gateway.
#[derive(Debug)]
pub struct Verifier {
    regions: Vec<String>,
    domains: Vec<String>,
    public_hosts: Vec<String>,
    signing_keys: SigningKeys,
}

/// A request whose signature is valid. Only [`Verifier::verify`] makes one.
pub struct Verified {
    key: Arc<Key>,
    secret_index: usize,
    address: RequestAddress,
    query: Query,
    signed_headers: Vec<String>,
    carrier: Carrier,
    payload: PayloadMode,
    chunk_seed: Option<ChunkSeed>,
}

impl Verifier {
    /// A verifier of signatures for one of the `regions`. Answers to signatures for other regions name the first.
    ///
    /// The `domains` are those of virtual hosts: `bucket.domain`. The `public_hosts` are `Host` headers, with their ports,
    /// that clients sign in front of a proxy that sends another `Host`.
    pub fn new(regions: Vec<String>, domains: Vec<String>, public_hosts: Vec<String>) -> Self {
        Self {
            regions,
            domains,
            public_hosts,
            signing_keys: SigningKeys::default(),
        }
    }

    /// What a request addresses by the host that it was sent to. `None` for a malformed path.
    pub fn address(&self, head: &Parts) -> Option<RequestAddress> {
        RequestAddress::new(host(head), head.uri.path(), &self.domains)
    }

    /// Whether the host that a request was sent to names its bucket, whatever the path is.
    pub fn is_virtual_host(&self, head: &Parts) -> bool {
        let address = RequestAddress::from_decoded(host(head), b"/", &self.domains);
        address.is_some_and(|address| address.style() == AddressStyle::VirtualHost)
    }

    /// Verifies the head of a request at the time `now`. What it says about its body is not verified yet: [`Verified::payload`].
    ///
    /// `address` is that of [`address`](Self::address). If the client signed another host, because a proxy sent its own, the request
    /// has the address of the signed host.
    ///
    /// # Errors
    /// The first step that fails. Whether an access key exists is no secret; nothing else depends on secrets.
    pub fn verify(
        &self,
        parts: &Parts,
        address: Option<RequestAddress>,
        keys: &Keys,
        now: SystemTime,
    ) -> Result<Verified, AuthError> {
        let path = escapes::decode(parts.uri.path().as_bytes())
            .filter(|path| path.starts_with(b"/"))
            .ok_or(AuthError::InvalidUri)?;
        let query = Query::parse(parts.uri.query().unwrap_or_default())?;
        carrier::refuse_form(parts)?;
        let claim = Claim::from_request(&parts.headers, &query)?;
        let scope = Scope::parse(&claim.credential, claim.carrier)?;
        scope.check(&self.regions, &claim.timestamp, claim.carrier)?;
        claim.check_time(now)?;
        let key = keys.get(scope.access_key).ok_or_else(|| AuthError::UnknownKey {
            access_key: scope.access_key.to_owned(),
        })?;
        refuse_token(&parts.headers, &query)?;
        let signed_headers = SignedHeaders::parse(&claim.signed_headers, claim.carrier)?;
        signed_headers.check(&parts.headers, claim.carrier)?;
        let payload = Payload::from_request(claim.carrier, &parts.headers, &query, &signed_headers)?;
        let request = CanonicalRequest {
            method: parts.method.as_str(),
            query: &query,
            headers: &parts.headers,
            signed_headers: &signed_headers,
            payload: &payload.line,
        };
        let signed = self.compare(&request, &claim, &scope, &key, parts.uri.path(), &path)?;
        let address = match signed.other_host {
            Some(host) => RequestAddress::from_decoded(host, &path, &self.domains),
            None => address,
        };
        Ok(Verified {
            address: address.ok_or(AuthError::InvalidUri)?,
            secret_index: signed.secret_index,
            signed_headers: signed_headers.to_strings(),
            carrier: claim.carrier,
            payload: payload.mode,
            chunk_seed: payload.mode.has_signed_chunks().then(|| {
                let timestamp = claim.timestamp.to_string();
                ChunkSeed::new(signed.signing_key, scope.to_string(), timestamp, signed.signature)
            }),
            query: query.without_signature(),
            key,
        })
    }

    /// Compares the signature with those of all readings of the request: the host as sent and the public hosts, the canonical
    /// path and the path as sent, each secret of the key.
    fn compare<'a>(
        &'a self,
        request: &CanonicalRequest<'a>,
        claim: &Claim<'_>,
        scope: &Scope<'_>,
        key: &Arc<Key>,
        raw_path: &str,
        path: &[u8],
    ) -> Result<Signed<'a>, AuthError> {
        let signature = claim.signature_bytes()?;
        let sent_host = signed_headers::host(request.headers, claim.carrier)?;
        let signing_keys = self.signing_keys.get(key, scope.date, scope.region);
        let canonical_path = escapes::encode_path(path);
        let string_to_sign = |host: &[u8], path: &str| {
            let digest = hex::encode(Sha256::digest(request.render(path, host)));
            format!("{ALGORITHM}\n{}\n{scope}\n{digest}", claim.timestamp)
        };
        // Some clients sign the path as they send it. Both readings have the same address.
        let raw_path = Some(raw_path).filter(|raw| *raw != canonical_path);
        for host in iter::once(sent_host).chain(self.public_hosts.iter().map(String::as_bytes)) {
            for path in iter::once(canonical_path.as_str()).chain(raw_path) {
                let text = string_to_sign(host, path);
                for (secret_index, signing_key) in signing_keys.iter().enumerate() {
                    let expected = signing_keys::hmac(signing_key, text.as_bytes());
                    if bool::from(expected[..].ct_eq(&signature[..])) {
                        return Ok(Signed {
                            other_host: Some(host).filter(|host| *host != sent_host),
                            secret_index,
                            signing_key: *signing_key,
                            signature,
                        });
                    }
                }
            }
        }
        Err(AuthError::SignatureMismatch(Box::new(Mismatch {
            access_key: scope.access_key.to_owned(),
            string_to_sign: Quoted::new(string_to_sign(sent_host, &canonical_path).as_bytes()),
            signature_provided: Quoted::new(claim.signature.as_bytes()),
            canonical_request: Quoted::new(&request.render(&canonical_path, sent_host)),
        })))
    }
}

/// A reading of a request that its signature covers.
struct Signed<'a> {
    /// The host, if it is not the one that was sent.
    other_host: Option<&'a [u8]>,
    secret_index: usize,
    signing_key: [u8; 32],
    signature: [u8; 32],
}

fn refuse_token(headers: &HeaderMap, query: &Query) -> Result<(), AuthError> {
    if headers.contains_key(SECURITY_TOKEN) || query.get(presign::SECURITY_TOKEN).is_some() {
        return Err(AuthError::SessionToken);
    }
    Ok(())
}

impl Verified {
    /// Who signed.
    pub fn caller(&self) -> Caller {
        Caller::new(Arc::clone(&self.key), self.secret_index)
    }

    /// The key that signed.
    pub fn key(&self) -> &Arc<Key> {
        &self.key
    }

    /// The one of the key's secrets that signed.
    pub fn secret(&self) -> &Secret {
        &self.key.secrets()[self.secret_index]
    }

    /// What the request addresses.
    pub fn address(&self) -> &RequestAddress {
        &self.address
    }

    /// The signed parameters, without those of the signature and of the body's hash.
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// Whether a header is signed. Unsigned headers can have been changed on the way.
    pub fn has_signed(&self, name: &HeaderName) -> bool {
        self.signed_headers.iter().any(|signed| signed == name.as_str())
    }

    /// Where the signature was: [`Carrier::Header`] or [`Carrier::Query`].
    pub fn carrier(&self) -> Carrier {
        self.carrier
    }

    /// How to verify the body.
    pub fn payload(&self) -> PayloadMode {
        self.payload
    }

    /// What the signatures of chunks are computed from, if chunks are signed.
    pub fn chunk_seed(&self) -> Option<&ChunkSeed> {
        self.chunk_seed.as_ref()
    }
}

/// The host that a request was sent to; empty without one.
fn host(head: &Parts) -> &[u8] {
    head.headers.get(HOST).map_or(&b""[..], HeaderValue::as_bytes)
}

impl fmt::Debug for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verified")
            .field("access_key", &self.key.access_key())
            .field("address", &self.address)
            .field("query", &self.query)
            .field("signed_headers", &self.signed_headers)
            .field("carrier", &self.carrier)
            .field("payload", &self.payload)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
