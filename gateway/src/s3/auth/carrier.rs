//! Finds the one signature that a request carries.

use std::borrow::Cow;
use std::time::SystemTime;

use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, Method};
use pushdown_s3::presign;

use super::clock;
use super::error::{AuthError, malformed};
use crate::s3::query::Query;
use crate::s3::sign::{ALGORITHM, Carrier, HeaderFields, Mechanism};

const DATE: &str = "x-amz-date";

const FORM: &[u8] = b"multipart/form-data";

const MISSING_PARAMETERS: &str = "Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, \
     X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters.";

/// What a request claims about its signature. Nothing of it is verified.
pub(super) struct Claim<'a> {
    pub(super) carrier: Carrier,
    pub(super) credential: Cow<'a, str>,
    pub(super) signed_headers: Cow<'a, str>,
    pub(super) signature: Cow<'a, str>,
    /// Time of the signature as sent.
    pub(super) timestamp: Cow<'a, str>,
    pub(super) time: SystemTime,
    /// Validity of a presigned request.
    pub(super) expires_seconds: Option<u64>,
}

/// Refuses uploads by HTML forms: they are signed by a policy in their body.
pub(super) fn refuse_form(parts: &Parts) -> Result<(), AuthError> {
    let is_form = parts.headers.get_all(CONTENT_TYPE).iter().any(|value| {
        let start = value.as_bytes().get(..FORM.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(FORM))
    });
    if is_form && parts.method == Method::POST {
        return Err(AuthError::FormUpload);
    }
    Ok(())
}

impl<'a> Claim<'a> {
    /// Finds the signature of a request.
    pub(super) fn from_request(headers: &'a HeaderMap, query: &Query) -> Result<Self, AuthError> {
        query.check_names()?;
        match Mechanism::find(headers, query)? {
            Mechanism::Header(fields) => Self::from_header(HeaderFields::parse(fields)?, headers),
            Mechanism::Query => Self::from_query(query),
            Mechanism::None => Err(AuthError::Anonymous),
            Mechanism::Foreign => Err(AuthError::UnknownScheme),
            Mechanism::OtherHeader(_) | Mechanism::Version2Header(_) | Mechanism::Version2Query => {
                Err(AuthError::UnsupportedVersion)
            }
        }
    }

    fn from_header(fields: HeaderFields<'a>, headers: &'a HeaderMap) -> Result<Self, AuthError> {
        let mut dates = headers.get_all(DATE).iter();
        let (Some(date), None) = (dates.next(), dates.next()) else {
            return Err(AuthError::MissingDate);
        };
        let timestamp = date.to_str().map_err(|_| AuthError::MissingDate)?;
        Ok(Self {
            carrier: Carrier::Header,
            credential: Cow::Borrowed(fields.credential),
            signed_headers: Cow::Borrowed(fields.signed_headers),
            signature: Cow::Borrowed(fields.signature),
            timestamp: Cow::Borrowed(timestamp),
            time: clock::parse(timestamp).ok_or(AuthError::MissingDate)?,
            expires_seconds: None,
        })
    }

    fn from_query(query: &Query) -> Result<Self, AuthError> {
        let parameter = |name| {
            query
                .decoded(name)
                .ok_or_else(|| malformed(Carrier::Query, MISSING_PARAMETERS))
        };
        let algorithm = parameter(presign::ALGORITHM)?;
        if algorithm != ALGORITHM {
            return Err(if algorithm.starts_with("AWS4-ECDSA") {
                AuthError::UnsupportedVersion
            } else {
                malformed(
                    Carrier::Query,
                    "X-Amz-Algorithm only supports \"AWS4-HMAC-SHA256\"",
                )
            });
        }
        let timestamp = parameter(presign::DATE)?;
        let time = clock::parse(&timestamp).ok_or_else(|| {
            malformed(
                Carrier::Query,
                "X-Amz-Date must be in the ISO8601 Long Format \"yyyyMMdd'T'HHmmss'Z'\"",
            )
        })?;
        Ok(Self {
            carrier: Carrier::Query,
            credential: parameter(presign::CREDENTIAL)?.into(),
            signed_headers: parameter(presign::SIGNED_HEADERS)?.into(),
            signature: parameter(presign::SIGNATURE)?.into(),
            expires_seconds: Some(expires_seconds(&parameter(presign::EXPIRES)?)?),
            timestamp: timestamp.into(),
            time,
        })
    }

    /// Checks the time of the signature.
    pub(super) fn check_time(&self, now: SystemTime) -> Result<(), AuthError> {
        match self.expires_seconds {
            None => clock::check_header(self.time, &self.timestamp, now),
            Some(seconds) => clock::check_presigned(self.time, seconds, now),
        }
    }

    /// The bytes of the signature: 64 lower-case hex digits.
    pub(super) fn signature_bytes(&self) -> Result<[u8; 32], AuthError> {
        let mut bytes = [0; 32];
        let is_lower_case = !self.signature.bytes().any(|byte| byte.is_ascii_uppercase());
        if is_lower_case && hex::decode_to_slice(self.signature.as_bytes(), &mut bytes).is_ok() {
            return Ok(bytes);
        }
        Err(malformed(
            self.carrier,
            "the Signature is mal-formed; expecting 64 lower-case hexadecimal digits.",
        ))
    }
}

fn expires_seconds(text: &str) -> Result<u64, AuthError> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number {
        return Err(malformed(Carrier::Query, "X-Amz-Expires should be a number"));
    }
    // A number that does not fit is too large.
    match text.parse().unwrap_or(u64::MAX) {
        seconds if seconds > clock::MAX_EXPIRES_SECONDS => Err(malformed(
            Carrier::Query,
            "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be less than 604800 \
             seconds",
        )),
        seconds => Ok(seconds),
    }
}
