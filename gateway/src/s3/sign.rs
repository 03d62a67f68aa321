//! Reads the signature of a request without verifying it: only the store verifies signatures.

use std::borrow::Cow;

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use percent_encoding::percent_decode_str;
use pushdown_s3::presign;

use super::query;

/// Where a request carries its signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// No signature: the caller is anonymous.
    None,
    /// The `Authorization` header.
    Header,
    /// The query (a presigned URL).
    Query,
}

/// The signature that a request claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature<'a> {
    carrier: Carrier,
    access_key: Option<Cow<'a, str>>,
    signed: Cow<'a, str>,
}

impl<'a> Signature<'a> {
    /// Reads the signature of a request: version 4 and 4A (`AWS4-...`), or the access key of version 2.
    pub fn from_parts(parts: &'a Parts) -> Self {
        Self::read(&parts.headers, parts.uri.query())
    }

    /// Reads the signature from headers and the query as sent.
    pub fn read(headers: &'a HeaderMap, query: Option<&'a str>) -> Self {
        if let Some(authorization) = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()) {
            return Self::header(authorization);
        }
        let query = query.unwrap_or_default();
        if let Some(credential) = parameter(query, presign::CREDENTIAL) {
            return Self {
                carrier: Carrier::Query,
                access_key: Some(access_key(credential)),
                signed: parameter(query, presign::SIGNED_HEADERS).unwrap_or_default(),
            };
        }
        match parameter(query, "AWSAccessKeyId") {
            Some(key) => Self {
                carrier: Carrier::Query,
                access_key: Some(key),
                signed: Cow::Borrowed(""),
            },
            None => Self {
                carrier: Carrier::None,
                access_key: None,
                signed: Cow::Borrowed(""),
            },
        }
    }

    fn header(authorization: &'a str) -> Self {
        let (scheme, fields) = authorization.split_once(' ').unwrap_or((authorization, ""));
        if scheme == "AWS" {
            let key = fields.split(':').next().filter(|key| !key.is_empty());
            return Self {
                carrier: Carrier::Header,
                access_key: key.map(Cow::Borrowed),
                signed: Cow::Borrowed(""),
            };
        }
        let field = |name: &str| {
            fields
                .split(',')
                .filter_map(|field| field.trim().split_once('='))
                .find_map(|(key, value)| (key == name).then_some(value))
        };
        Self {
            carrier: Carrier::Header,
            access_key: field("Credential").map(|credential| access_key(Cow::Borrowed(credential))),
            signed: Cow::Borrowed(field("SignedHeaders").unwrap_or_default()),
        }
    }

    /// Where the signature is.
    pub fn carrier(&self) -> Carrier {
        self.carrier
    }

    /// The claimed access key, unverified.
    pub fn access_key(&self) -> Option<&str> {
        self.access_key.as_deref()
    }

    /// Whether this header was signed, and so must reach the store unchanged.
    pub fn has_signed(&self, name: &HeaderName) -> bool {
        self.signed
            .split(';')
            .any(|signed| signed.eq_ignore_ascii_case(name.as_str()))
    }
}

/// The key of a credential `KEY/date/region/service/aws4_request`. A key can contain slashes.
fn access_key(credential: Cow<'_, str>) -> Cow<'_, str> {
    let end = credential
        .rmatch_indices('/')
        .nth(3)
        .map_or(credential.len(), |(at, _)| at);
    match credential {
        Cow::Borrowed(credential) => Cow::Borrowed(&credential[..end]),
        Cow::Owned(mut credential) => {
            credential.truncate(end);
            Cow::Owned(credential)
        }
    }
}

fn parameter<'a>(query: &'a str, name: &'a str) -> Option<Cow<'a, str>> {
    query::values(query, name)
        .next()
        .map(|value| percent_decode_str(value).decode_utf8_lossy())
}

#[cfg(test)]
mod tests {
    use http::{Request, header};

    use super::*;

    fn parts(uri: &str, authorization: Option<&str>) -> Parts {
        let mut request = Request::builder().uri(uri);
        if let Some(value) = authorization {
            request = request.header(AUTHORIZATION, value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_signature_in_a_header() {
        let parts = parts(
            "/bucket/key",
            Some(
                "AWS4-HMAC-SHA256 Credential=AK/ID/20260101/us-east-1/s3/aws4_request,SignedHeaders=host;Range, Signature=00",
            ),
        );
        let signature = Signature::from_parts(&parts);
        assert_eq!(signature.carrier(), Carrier::Header);
        assert_eq!(signature.access_key(), Some("AK/ID"));
        assert!(signature.has_signed(&header::RANGE));
        assert!(!signature.has_signed(&header::ACCEPT));
    }

    #[test]
    fn a_signature_in_the_query() {
        let parts = parts(
            "/b/k?X-Amz-Credential=AK%2F20260101%2Fr%2Fs3%2Faws4_request&X-Amz-SignedHeaders=host%3Brange&x",
            None,
        );
        let signature = Signature::from_parts(&parts);
        assert_eq!(signature.carrier(), Carrier::Query);
        assert_eq!(signature.access_key(), Some("AK"));
        assert!(signature.has_signed(&header::RANGE) && signature.has_signed(&header::HOST));
    }

    #[test]
    fn version_2_and_none() {
        let v2 = parts("/b/k", Some("AWS AK:c2ln"));
        assert_eq!(Signature::from_parts(&v2).access_key(), Some("AK"));
        let presigned = parts("/b/k?AWSAccessKeyId=AK&Signature=x", None);
        assert_eq!(Signature::from_parts(&presigned).access_key(), Some("AK"));
        assert_eq!(
            Signature::from_parts(&parts("/b/k?versions", None)).carrier(),
            Carrier::None
        );
        assert_eq!(
            Signature::from_parts(&parts("/b/k", Some("garbage"))).access_key(),
            None
        );
    }
}
