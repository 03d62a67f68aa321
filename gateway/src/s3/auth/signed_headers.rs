//! Which headers a signature covers.

use http::header::HOST;
use http::{HeaderMap, HeaderName};

use super::error::{AuthError, malformed};
use super::payload::CONTENT_SHA256;
use crate::s3::sign::Carrier;

/// The names of the signed headers, sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SignedHeaders<'a> {
    names: Vec<&'a str>,
}

impl<'a> SignedHeaders<'a> {
    /// Parses names in lower case, separated by semicolons, each once.
    pub(super) fn parse(text: &'a str, carrier: Carrier) -> Result<Self, AuthError> {
        let mut names: Vec<_> = text.split(';').collect();
        names.sort_unstable();
        let is_repeated = names.windows(2).any(|pair| pair[0] == pair[1]);
        let is_name = |name: &str| !name.is_empty() && !name.bytes().any(|byte| byte.is_ascii_uppercase());
        if is_repeated || !names.iter().all(|name| is_name(name)) {
            return Err(malformed(
                carrier,
                "the SignedHeaders are mal-formed; expecting each name once, in lower case.",
            ));
        }
        Ok(Self { names })
    }

    /// The names, sorted.
    pub(super) fn names(&self) -> &[&'a str] {
        &self.names
    }

    /// The names, sorted, for the time after the request.
    pub(super) fn to_strings(&self) -> Vec<String> {
        self.names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// Whether a header is signed. `name` is in lower case.
    pub(super) fn contains(&self, name: &str) -> bool {
        self.names.binary_search(&name).is_ok()
    }

    /// Checks that all signed headers are present, and that `host` and all `x-amz-*` headers are signed.
    ///
    /// `x-amz-content-sha256` need not be: the canonical request covers it anyway.
    pub(super) fn check(&self, headers: &HeaderMap, carrier: Carrier) -> Result<(), AuthError> {
        let mut unsigned: Vec<_> = headers
            .keys()
            .map(HeaderName::as_str)
            .filter(|name| name.starts_with("x-amz-") && *name != CONTENT_SHA256)
            .chain(["host"])
            .filter(|name| !self.contains(name))
            .collect();
        if !unsigned.is_empty() {
            unsigned.sort_unstable();
            return Err(AuthError::UnsignedHeaders {
                names: unsigned.join(", "),
            });
        }
        match self.names.iter().find(|name| !headers.contains_key(**name)) {
            Some(name) => Err(malformed(
                carrier,
                format!("the signed header {name:?} is not present in the request."),
            )),
            None => Ok(()),
        }
    }
}

/// The one `Host` header of a request.
pub(super) fn host(headers: &HeaderMap, carrier: Carrier) -> Result<&[u8], AuthError> {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(host), None) => Ok(host.as_bytes()),
        _ => Err(malformed(carrier, "expecting exactly one Host header.")),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn check(signed: &str, present: &[&'static str]) -> Result<(), AuthError> {
        let headers = present
            .iter()
            .map(|&name| (HeaderName::from_static(name), HeaderValue::from_static("1")))
            .collect();
        SignedHeaders::parse(signed, Carrier::Header)?.check(&headers, Carrier::Header)
    }

    fn unsigned(names: &str) -> Result<(), AuthError> {
        Err(AuthError::UnsignedHeaders {
            names: names.to_owned(),
        })
    }

    #[test]
    fn host_and_all_amz_headers_must_be_signed() {
        assert_eq!(check("range;host", &["host", "range", "accept"]), Ok(()));
        assert_eq!(check("host", &["host", "x-amz-content-sha256"]), Ok(()));
        assert_eq!(check("range", &["host", "range"]), unsigned("host"));
        assert_eq!(
            check(
                "host;x-amz-date",
                &["host", "x-amz-date", "x-amz-tagging", "x-amz-acl"]
            ),
            unsigned("x-amz-acl, x-amz-tagging")
        );
    }

    #[test]
    fn signed_headers_must_be_present_once_in_lower_case() {
        let malformed: [(&str, &[&'static str]); 5] = [
            ("host;range", &["host"]),
            ("host;Range", &["host", "range"]),
            ("host;host", &["host"]),
            ("host;", &["host"]),
            ("", &["host"]),
        ];
        for (signed, present) in malformed {
            let found = check(signed, present);
            assert!(matches!(found, Err(AuthError::Malformed { .. })), "{signed}");
        }
    }

    #[test]
    fn a_request_has_one_host() {
        let mut headers = HeaderMap::new();
        assert!(host(&headers, Carrier::Header).is_err());
        headers.append(HOST, HeaderValue::from_static("a"));
        assert_eq!(host(&headers, Carrier::Header).unwrap(), b"a");
        headers.append(HOST, HeaderValue::from_static("b"));
        assert!(host(&headers, Carrier::Header).is_err());
    }
}
