//! AWS Signature Version 4: for GET of an object as query parameters, and for a batch in headers, if the gateway can verify it.
//!
//! Every signed GET uses query parameters, direct ones too: a batch of presigned samples then needs 64 bytes of signature per
//! sample and the parameters once. Only `host` is signed, so that pipeline headers may be added.

mod batch;
mod members;
mod path;

use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_sdk_s3::primitives::{DateTime, DateTimeFormat};
use aws_sigv4::sign::v4::{calculate_signature, generate_signing_key};
use http::Method;
use pushdown::pipeline::Digest;
use pushdown_s3::{escapes::encode_component, presign};

pub(crate) use batch::{BatchAuthority, BatchPost, BatchSigner, RequestSigner};
pub(crate) use members::{check_members, with_members};
pub(crate) use path::ObjectPaths;

use crate::error::{Error, Result};

/// Longest validity of a signature, from the start of its minute. Every attempt is signed again, so this only covers clock differences and
/// slow answers.
const MAX_EXPIRES: Duration = Duration::from_mins(15);
/// Time stamps are rounded down to this many seconds. Readers with the same credentials then send equal targets for an object, by
/// which a gateway may remember the store's authorization.
const STAMP_SECONDS: u64 = 60;

/// Signs requests for any number of objects with one time stamp, the start of a minute, and one set of credentials.
pub(crate) struct Presigner {
    /// The parameters that all signatures share.
    query: String,
    host: String,
    stamp: String,
    scope: String,
    key: Vec<u8>,
    validity: Validity,
}

/// Whose signatures these are, and until when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Validity {
    pub(crate) access_key: String,
    pub(crate) end: SystemTime,
}

impl Presigner {
    /// Signatures of `credentials` for requests to `host` (with the port, unless it is the scheme's default). They do not outlive the
    /// credentials. All presigners of one minute are equal.
    ///
    /// # Errors
    /// If the time cannot be formatted.
    pub(crate) fn new(credentials: &Credentials, region: &str, host: &str, time: SystemTime) -> Result<Self> {
        let time = rounded_down(time);
        let expires = expires(credentials, time);
        let stamp = DateTime::from(time)
            .fmt(DateTimeFormat::DateTime)
            .map_err(|error| Error::internal("cannot format the time").with_source(error))?;
        // 2026-11-01T00:00:00.25Z -> 20261101T000000Z
        let digits: String = stamp
            .chars()
            .filter(|char| !matches!(char, '-' | ':'))
            .take(15)
            .collect();
        let stamp = format!("{digits}Z");
        let scope = format!("{}/{region}/s3/aws4_request", &stamp[..8]);
        let encode = |value: &str| encode_component(value.as_bytes());
        let token = credentials
            .session_token()
            .map(|token| format!("&{}={}", presign::SECURITY_TOKEN, encode(token)))
            .unwrap_or_default();
        let query = format!(
            "{}=AWS4-HMAC-SHA256&{}={}&{}={stamp}&{}={}{token}&{}=host",
            presign::ALGORITHM,
            presign::CREDENTIAL,
            encode(&format!("{}/{scope}", credentials.access_key_id())),
            presign::DATE,
            presign::EXPIRES,
            expires.as_secs(),
            presign::SIGNED_HEADERS,
        );
        let key = generate_signing_key(credentials.secret_access_key(), time, region, "s3")
            .as_ref()
            .to_vec();
        Ok(Self {
            query,
            host: host.to_owned(),
            stamp,
            scope,
            key,
            validity: Validity {
                access_key: credentials.access_key_id().to_owned(),
                end: time + expires,
            },
        })
    }

    /// The validity of its signatures.
    pub(crate) const fn validity(&self) -> &Validity {
        &self.validity
    }

    /// The parameters that all signatures share: everything but the signature.
    pub(crate) fn query(&self) -> &str {
        &self.query
    }

    /// The signature for `GET path`.
    pub(crate) fn signature(&self, path: &str) -> String {
        self.signature_for(&Method::GET, path)
    }

    /// The query of the signed `PUT path`, whose body is not signed.
    pub(crate) fn put_query(&self, path: &str) -> String {
        let signature = self.signature_for(&Method::PUT, path);
        format!("{}&{}={signature}", self.query, presign::SIGNATURE)
    }

    fn signature_for(&self, method: &Method, path: &str) -> String {
        // The parameters are sorted by name, as the canonical request requires.
        let canonical = format!(
            "{method}\n{path}\n{}\nhost:{}\n\nhost\nUNSIGNED-PAYLOAD",
            self.query, self.host
        );
        let digest = Digest::new(canonical.as_bytes());
        let text = format!("AWS4-HMAC-SHA256\n{}\n{}\n{digest}", self.stamp, self.scope);
        calculate_signature(&self.key, text.as_bytes())
    }

    /// The signed request target for `GET path`.
    pub(crate) fn target(&self, path: &str) -> String {
        let (query, signature) = (&self.query, self.signature(path));
        format!("{path}?{query}&{}={signature}", presign::SIGNATURE)
    }
}

/// The validity of signatures with the time stamp `time`, in whole seconds: at least 1, as S3 requires.
fn expires(credentials: &Credentials, time: SystemTime) -> Duration {
    let life = credentials
        .expiry()
        .map(|end| end.duration_since(time).unwrap_or_default());
    let seconds = life.map_or(MAX_EXPIRES, |life| life.min(MAX_EXPIRES)).as_secs();
    Duration::from_secs(seconds.max(1))
}

fn rounded_down(time: SystemTime) -> SystemTime {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs() / STAMP_SECONDS * STAMP_SECONDS)
}

/// Without the key.
impl std::fmt::Debug for Presigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Presigner")
            .field("host", &self.host)
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
