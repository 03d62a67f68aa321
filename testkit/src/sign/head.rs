//! Heads of requests whose bodies are not at hand: signs them, and verifies their signatures.

use std::time::SystemTime;

use anyhow::{Context as _, Result};
use aws_sigv4::http_request::{SignableBody, SignatureLocation, sign};
use chrono::NaiveDateTime;

use super::{Keys, signable_of};
use crate::raw::Request;

/// The header that says how the body is signed.
pub(crate) const CONTENT_SHA256: &str = "x-amz-content-sha256";
/// The header with the time of a signature.
pub(crate) const DATE: &str = "x-amz-date";
/// The header with the token of temporary credentials.
pub(crate) const SECURITY_TOKEN: &str = "x-amz-security-token";

/// What an `Authorization` header claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Authorization {
    pub(crate) access_key: String,
    pub(crate) region: String,
    /// Names in lower case.
    pub(crate) signed_headers: Vec<String>,
    signature: String,
}

impl Authorization {
    /// Reads the header of a request. `None` without one of version 4 for S3.
    pub(crate) fn parse(request: &Request) -> Option<Self> {
        let fields = request
            .header_value("authorization")?
            .strip_prefix("AWS4-HMAC-SHA256 ")?;
        let field = |name: &str| {
            let mut pairs = fields.split(',').filter_map(|field| field.trim().split_once('='));
            pairs.find_map(|(key, value)| (key == name).then_some(value))
        };
        let scope: Vec<&str> = field("Credential")?.split('/').collect();
        let [access_key, _date, region, "s3", "aws4_request"] = scope[..] else {
            return None;
        };
        Some(Self {
            access_key: access_key.to_owned(),
            region: region.to_owned(),
            signed_headers: field("SignedHeaders")?.split(';').map(str::to_owned).collect(),
            signature: field("Signature")?.to_owned(),
        })
    }

    /// Whether the signature covers this header, whose name is in lower case.
    pub(crate) fn has_signed(&self, name: &str) -> bool {
        self.signed_headers.iter().any(|signed| signed == name)
    }
}

/// The time of a request's signature, from its header.
pub(crate) fn signing_time(request: &Request) -> Option<SystemTime> {
    let text = request.header_value(DATE)?;
    let time = NaiveDateTime::parse_from_str(text, "%Y%m%dT%H%M%SZ").ok()?;
    Some(time.and_utc().into())
}

impl Keys {
    /// Signs a head in the `Authorization` header. `content_sha256` says how its body is signed: a digest or a placeholder.
    pub(crate) fn sign_head(&self, request: Request, content_sha256: &str) -> Result<Request> {
        let mut request = request;
        for (name, value) in self.signed_headers(&request, content_sha256)?.0 {
            request.headers.push((name, value));
        }
        Ok(request)
    }

    /// Whether a request has the signature in its header that these keys compute for it.
    ///
    /// # Errors
    /// For a request without the headers of a signature.
    pub(crate) fn has_signed(&self, request: &Request) -> Result<bool> {
        let claimed = Authorization::parse(request).context("no signature")?;
        let content_sha256 = request
            .header_value(CONTENT_SHA256)
            .context("no x-amz-content-sha256")?;
        // The token that is signed is that of the keys, whatever the request has.
        if request.header_value(SECURITY_TOKEN) != self.token.as_deref() {
            return Ok(false);
        }
        let keys = Self {
            region: claimed.region.clone(),
            time: Some(signing_time(request).context("no time")?),
            ..self.clone()
        };
        let mut signed = request.clone();
        signed
            .headers
            .retain(|(name, _)| claimed.has_signed(&name.to_ascii_lowercase()));
        let (_, signature) = keys.signed_headers(&signed, content_sha256)?;
        Ok(signature == claimed.signature)
    }

    /// The headers of a signature that covers all headers of a request, and the signature.
    fn signed_headers(
        &self,
        request: &Request,
        content_sha256: &str,
    ) -> Result<(Vec<(String, String)>, String)> {
        let identity = self.identity();
        let params = self.params(&identity, SignatureLocation::Headers, None)?;
        let body = SignableBody::Precomputed(content_sha256.to_owned());
        let (instructions, signature) = sign(signable_of(request, body)?, &params.into())?.into_parts();
        let headers = instructions
            .headers()
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        Ok((headers.collect(), signature))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn keys() -> Keys {
        Keys {
            token: Some("token//of+session==".to_owned()),
            ..Keys::new("ASIATEST", "secret")
        }
    }

    fn signed() -> Request {
        let request = Request::new("PUT", "/a%20key/b%2Bc?partNumber=2&uploadId=x%2Fy")
            .header("Host", "photos.s3.us-east-1.localhost:80")
            .header("X-Amz-Meta-Lens", "none  at all");
        keys().sign_head(request, "UNSIGNED-PAYLOAD").unwrap()
    }

    #[test]
    fn a_signature_is_that_of_its_own_request() {
        let signed = signed();
        assert!(keys().has_signed(&signed).unwrap());
        // Headers that are not signed may be added.
        let other = signed.clone().header("Range", "bytes=0-1");
        assert!(keys().has_signed(&other).unwrap());
        let authorization = Authorization::parse(&signed).unwrap();
        assert_eq!(
            (authorization.access_key.as_str(), authorization.region.as_str()),
            ("ASIATEST", "us-east-1")
        );
        for name in ["host", "x-amz-date", "x-amz-meta-lens", "x-amz-security-token"] {
            assert!(authorization.has_signed(name), "{name}");
        }
        let age = SystemTime::now()
            .duration_since(signing_time(&signed).unwrap())
            .unwrap();
        assert!(age < Duration::from_mins(1), "{age:?}");
    }

    #[test]
    fn no_other_request_has_the_signature() {
        let signed = signed();
        let mut others = vec![
            Request {
                method: "GET".to_owned(),
                ..signed.clone()
            },
            Request {
                target: signed.target.replace("%2B", "%2C"),
                ..signed.clone()
            },
            Request {
                target: signed.target.replace("partNumber=2", "partNumber=3"),
                ..signed.clone()
            },
        ];
        for index in 0..signed.headers.len() {
            let mut other = signed.clone();
            let (name, value) = &mut other.headers[index];
            if name.eq_ignore_ascii_case("x-amz-date") {
                "20200101T000000Z".clone_into(value);
            } else {
                value.push('1');
            }
            others.push(other);
        }
        for other in others {
            let has_signed = keys().has_signed(&other);
            assert!(!has_signed.is_ok_and(|has_signed| has_signed), "{other:?}");
        }
        let stranger = Keys::new("ASIATEST", "another secret");
        assert!(!stranger.has_signed(&signed).unwrap());
    }

    #[test]
    fn a_request_without_a_signature_is_an_error() {
        let request = Request::new("GET", "/").header("Host", "store");
        assert_eq!(Authorization::parse(&request), None);
        assert!(keys().has_signed(&request).is_err());
        let presigned = keys().presign(request, Duration::from_mins(1)).unwrap();
        assert!(keys().has_signed(&presigned).is_err());
    }
}
