//! Finds the one signature of a request, and reads it without verifying it: in forward mode only the store verifies signatures.
//!
//! The account of a request is the key that the store has verified. So a request that the store could read otherwise than the
//! gateway is refused: with several signatures, or with parameters that are ambiguous.

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use pushdown_s3::{escapes, presign};

use super::auth::{AuthError, malformed};
use super::query::{self, Query};

/// The algorithm of symmetric signatures of version 4.
pub(super) const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// The scheme of version 2.
const VERSION_2: &str = "AWS";

/// The access key of a presigned request of version 2.
const VERSION_2_KEY: &str = "AWSAccessKeyId";

const MISSING_FIELDS: &str =
    "the authorization header requires three components: Credential, SignedHeaders, and Signature.";

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

/// The one mechanism by which a request names its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mechanism<'a> {
    None,
    /// An `Authorization` header of another scheme than AWS's, such as `Bearer`.
    Foreign,
    /// Version 4 in a header: its fields.
    Header(&'a str),
    /// Another `AWS4-` scheme in a header, such as version 4A: its fields.
    OtherHeader(&'a str),
    /// Version 2 in a header: `KEY:signature`.
    Version2Header(&'a str),
    /// Version 4 in the query.
    Query,
    /// Version 2 in the query.
    Version2Query,
}

/// The fields of version 4 in a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeaderFields<'a> {
    pub(super) credential: &'a str,
    pub(super) signed_headers: &'a str,
    pub(super) signature: &'a str,
}

/// The signature that a request claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    carrier: Carrier,
    access_key: Option<String>,
    signed_headers: String,
}

impl<'a> Mechanism<'a> {
    /// Finds the mechanism of a request.
    ///
    /// # Errors
    /// [`AuthError::SeveralSignatures`] for more than one, another scheme beside a presigned query included: stores differ in which
    /// one counts.
    pub(super) fn find(headers: &'a HeaderMap, query: &Query) -> Result<Self, AuthError> {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let in_header = values.next().map_or(Self::None, |value| {
            // Bytes that are no text are no signature.
            value.to_str().map_or(Self::Foreign, Self::from_header)
        });
        let is_version_2 = query.get(VERSION_2_KEY).is_some();
        match (in_header, query.has_signature(), is_version_2, values.next()) {
            (mechanism, false, false, None) => Ok(mechanism),
            (Self::None, true, false, None) => Ok(Self::Query),
            (Self::None, false, true, None) => Ok(Self::Version2Query),
            _ => Err(AuthError::SeveralSignatures),
        }
    }

    fn from_header(value: &'a str) -> Self {
        let (scheme, fields) = value.split_once(' ').unwrap_or((value, ""));
        match scheme {
            "" => Self::None,
            ALGORITHM => Self::Header(fields),
            VERSION_2 => Self::Version2Header(fields),
            _ if scheme.starts_with("AWS4-") => Self::OtherHeader(fields),
            _ => Self::Foreign,
        }
    }
}

impl<'a> HeaderFields<'a> {
    /// Parses `Credential=.., SignedHeaders=.., Signature=..`, in any order.
    ///
    /// # Errors
    /// [`AuthError::Malformed`] if a field is missing, repeated or unknown.
    pub(super) fn parse(fields: &'a str) -> Result<Self, AuthError> {
        let missing = || malformed(Carrier::Header, MISSING_FIELDS);
        let (mut credential, mut signed_headers, mut signature) = (None, None, None);
        for field in fields.split(',') {
            let (name, value) = field.trim().split_once('=').ok_or_else(missing)?;
            let slot = match name {
                "Credential" => &mut credential,
                "SignedHeaders" => &mut signed_headers,
                "Signature" => &mut signature,
                _ => return Err(missing()),
            };
            if slot.replace(value).is_some() {
                return Err(missing());
            }
        }
        match (credential, signed_headers, signature) {
            (Some(credential), Some(signed_headers), Some(signature)) => Ok(Self {
                credential,
                signed_headers,
                signature,
            }),
            _ => Err(missing()),
        }
    }
}

impl Signature {
    /// Reads the signature of a request: version 4 and 4A (`AWS4-...`), or the access key of version 2.
    ///
    /// # Errors
    /// [`AuthError::SeveralSignatures`], [`AuthError::Malformed`] and [`AuthError::InvalidUri`] for a request that the store could
    /// read as that of another caller.
    pub fn from_parts(parts: &Parts) -> Result<Self, AuthError> {
        Self::read(&parts.headers, parts.uri.query())
    }

    /// Reads the signature from headers and the query as sent.
    ///
    /// # Errors
    /// As [`from_parts`](Self::from_parts).
    pub fn read(headers: &HeaderMap, query: Option<&str>) -> Result<Self, AuthError> {
        let raw = query.unwrap_or_default();
        query::check_separators(raw)?;
        let query = Query::parse(raw)?;
        query.check_names()?;
        match Mechanism::find(headers, &query)? {
            Mechanism::None | Mechanism::Foreign => Ok(Self::none()),
            Mechanism::Header(fields) => {
                let fields = HeaderFields::parse(fields)?;
                Self::new(Carrier::Header, Some(fields.credential), fields.signed_headers, 4)
            }
            Mechanism::OtherHeader(fields) => {
                let fields = HeaderFields::parse(fields)?;
                // The scope of version 4A has no region.
                Self::new(Carrier::Header, Some(fields.credential), fields.signed_headers, 3)
            }
            Mechanism::Version2Header(fields) => {
                let key = fields.split(':').next().filter(|key| !key.is_empty());
                Self::new(Carrier::Header, key, "", 0)
            }
            Mechanism::Query => {
                let credential = query.decoded(presign::CREDENTIAL);
                let signed = query.decoded(presign::SIGNED_HEADERS).unwrap_or_default();
                let is_regional = query.get(presign::ALGORITHM).is_none_or(|name| name == ALGORITHM);
                let scope = if is_regional { 4 } else { 3 };
                Self::new(Carrier::Query, credential.as_deref(), &signed, scope)
            }
            Mechanism::Version2Query => {
                Self::new(Carrier::Query, query.decoded(VERSION_2_KEY).as_deref(), "", 0)
            }
        }
    }

    /// The signature of an anonymous request.
    const fn none() -> Self {
        Self {
            carrier: Carrier::None,
            access_key: None,
            signed_headers: String::new(),
        }
    }

    /// A signature with a credential whose last `scope` parts are no part of the key.
    fn new(
        carrier: Carrier,
        credential: Option<&str>,
        signed_headers: &str,
        scope: usize,
    ) -> Result<Self, AuthError> {
        let access_key = credential.map(|credential| access_key(credential, scope));
        // Some stores ignore white space in a credential: one key would have many accounts.
        if access_key.is_some_and(|key| !key.bytes().all(|byte| byte.is_ascii_graphic())) {
            return Err(malformed(
                carrier,
                "the Credential is mal-formed; expecting an access key of visible ASCII characters.",
            ));
        }
        Ok(Self {
            carrier,
            access_key: access_key.map(str::to_owned),
            signed_headers: signed_headers.to_owned(),
        })
    }

    /// Where the signature is.
    pub const fn carrier(&self) -> Carrier {
        self.carrier
    }

    /// The claimed access key, unverified.
    pub fn access_key(&self) -> Option<&str> {
        self.access_key.as_deref()
    }

    /// Whether this header was signed, and so must reach the store unchanged.
    pub fn has_signed(&self, name: &HeaderName) -> bool {
        is_in_list(&self.signed_headers, name)
    }
}

/// The headers that any signature of a request claims to cover. Unlike a [`Signature`], it is also there for a request with several
/// ones, on which the store decides in forward mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedHeaders(Vec<String>);

impl ClaimedHeaders {
    /// Reads them from headers and the query as sent.
    pub fn read(headers: &HeaderMap, query: Option<&str>) -> Self {
        let authorizations = headers.get_all(AUTHORIZATION).iter();
        let in_headers = authorizations
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| {
                let fields = value.split([',', ' ']);
                fields.filter_map(|field| field.strip_prefix("SignedHeaders="))
            });
        let in_query = query::values(query.unwrap_or_default(), presign::SIGNED_HEADERS);
        let in_query =
            in_query.map(|value| String::from_utf8_lossy(&escapes::decode_lenient(value)).into_owned());
        Self(in_headers.map(str::to_owned).chain(in_query).collect())
    }

    /// Whether this header is one of them.
    pub fn contains(&self, name: &HeaderName) -> bool {
        self.0.iter().any(|list| is_in_list(list, name))
    }
}

/// Whether a list of signed headers, `a;b`, has this name.
fn is_in_list(list: &str, name: &HeaderName) -> bool {
    list.split(';')
        .any(|signed| signed.eq_ignore_ascii_case(name.as_str()))
}

/// The key of a credential `KEY/date/region/service/aws4_request`, whose last `scope` parts follow the key. A key can contain slashes.
fn access_key(credential: &str, scope: usize) -> &str {
    let end = scope
        .checked_sub(1)
        .and_then(|last| credential.rmatch_indices('/').nth(last));
    &credential[..end.map_or(credential.len(), |(at, _)| at)]
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
        let signature = Signature::from_parts(&parts).unwrap();
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
        let signature = Signature::from_parts(&parts).unwrap();
        assert_eq!(signature.carrier(), Carrier::Query);
        assert_eq!(signature.access_key(), Some("AK"));
        assert!(signature.has_signed(&header::RANGE) && signature.has_signed(&header::HOST));
    }

    #[test]
    fn version_2_and_none() {
        let v2 = parts("/b/k", Some("AWS AK:c2ln"));
        let key = |parts| {
            Signature::from_parts(parts)
                .unwrap()
                .access_key()
                .map(str::to_owned)
        };
        assert_eq!(key(&v2).as_deref(), Some("AK"));
        let presigned = parts("/b/k?AWSAccessKeyId=AK&Signature=x", None);
        assert_eq!(key(&presigned).as_deref(), Some("AK"));
        assert_eq!(
            Signature::from_parts(&parts("/b/k?versions", None))
                .unwrap()
                .carrier(),
            Carrier::None
        );
        assert_eq!(key(&parts("/b/k", Some("garbage"))), None);
    }

    #[test]
    fn another_scheme_claims_no_account() {
        for value in [
            "Foo Credential=VICTIM/d/r/s3/aws4_request, SignedHeaders=host, Signature=0",
            "Bearer AK",
        ] {
            assert_eq!(
                Signature::from_parts(&parts("/b/k", Some(value))),
                Ok(Signature::none()),
                "{value}"
            );
        }
    }

    #[test]
    fn the_scope_of_version_4a_has_no_region() {
        let fields = "Credential=A/K/20260101/s3/aws4_request, SignedHeaders=host, Signature=0";
        let parts = parts("/b/k", Some(&format!("AWS4-ECDSA-P256-SHA256 {fields}")));
        assert_eq!(Signature::from_parts(&parts).unwrap().access_key(), Some("A/K"));
    }

    #[test]
    fn the_headers_of_all_signatures_are_claimed() {
        let parts = parts(
            "/b/k?X-Amz-SignedHeaders=host%3Bx-a&a;b&%zz",
            Some("AWS4-HMAC-SHA256 Credential=A/d/r/s3/aws4_request,SignedHeaders=range;X-B, Signature=0"),
        );
        let claimed = ClaimedHeaders::read(&parts.headers, parts.uri.query());
        for (name, is_claimed) in [
            ("host", true),
            ("x-a", true),
            ("x-b", true),
            ("range", true),
            ("x-c", false),
        ] {
            assert_eq!(
                claimed.contains(&HeaderName::from_static(name)),
                is_claimed,
                "{name}"
            );
        }
    }

    #[test]
    fn several_signatures_are_refused() {
        const PRESIGNED: &str = "/b/k?X-Amz-Credential=A%2Fd%2Fr%2Fs3%2Faws4_request&X-Amz-Signature=0";
        const SIGNED: &str =
            "AWS4-HMAC-SHA256 Credential=B/d/r/s3/aws4_request, SignedHeaders=host, Signature=0";
        for (target, authorization) in [
            (PRESIGNED, SIGNED),
            (PRESIGNED, "AWS B:0"),
            (PRESIGNED, "Foo Credential=B/d/r/s3/aws4_request"),
            (PRESIGNED, "Bearer token"),
            ("/b/k?AWSAccessKeyId=A&Signature=0", "Bearer token"),
            ("/b/k?AWSAccessKeyId=A&Signature=0", SIGNED),
        ] {
            let found = Signature::from_parts(&parts(target, Some(authorization)));
            assert_eq!(
                found,
                Err(AuthError::SeveralSignatures),
                "{target} {authorization}"
            );
        }
        let both = format!("{PRESIGNED}&AWSAccessKeyId=B");
        assert_eq!(
            Signature::from_parts(&parts(&both, None)),
            Err(AuthError::SeveralSignatures)
        );
    }

    #[test]
    fn a_signature_that_can_be_read_twice_is_refused() {
        const CREDENTIAL: &str = "X-Amz-Credential=A%2Fd%2Fr%2Fs3%2Faws4_request";
        for query in [
            format!("{CREDENTIAL}&X-Amz-Credential=B"),
            format!("%58-Amz-Credential=B&{CREDENTIAL}"),
            format!("x-amz-credential=B&{CREDENTIAL}"),
            format!("{CREDENTIAL}&a=1;X-Amz-Credential=B"),
            format!("{CREDENTIAL}&AWSAccessKeyId=B&%41WSAccessKeyId=C"),
            "X-Amz-Credential=A%20A%2Fd%2Fr%2Fs3%2Faws4_request".to_owned(),
        ] {
            assert!(
                Signature::read(&HeaderMap::new(), Some(&query)).is_err(),
                "{query}"
            );
        }
        for value in [
            "AWS4-HMAC-SHA256 Credential=A/d/r/s3/aws4_request, Credential=B/d/r/s3/aws4_request, SignedHeaders=host, Signature=0",
            "AWS4-HMAC-SHA256 Credential=A A/d/r/s3/aws4_request, SignedHeaders=host, Signature=0",
            "AWS4-HMAC-SHA256Credential=A/d/r/s3/aws4_request, SignedHeaders=host, Signature=0",
            "AWS4-HMAC-SHA256\tCredential=A/d/r/s3/aws4_request,SignedHeaders=host,Signature=0",
        ] {
            assert!(
                Signature::from_parts(&parts("/b/k", Some(value))).is_err(),
                "{value}"
            );
        }
    }
}
