//! The canonical request: what a signature of version 4 covers.

use std::collections::BTreeSet;
use std::fmt;

use http::HeaderMap;
use pushdown_s3::presign;

use super::error::{AuthError, malformed};
use super::signed_headers::SignedHeaders;
use crate::s3::escapes;
use crate::s3::sign::Carrier;

/// The parameters that carry a signature.
const SIGNATURE_PARAMETERS: [&str; 6] = [
    presign::ALGORITHM,
    presign::CREDENTIAL,
    presign::DATE,
    presign::EXPIRES,
    presign::SIGNED_HEADERS,
    presign::SIGNATURE,
];

/// The parameters that the gateway reads, besides those that carry a signature.
const OTHER_PARAMETERS: [&str; 2] = [presign::CONTENT_SHA256, presign::SECURITY_TOKEN];

/// The parameters of a query in canonical form: percent-encoded, sorted by name and value.
#[derive(Clone, PartialEq, Eq)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

/// The parts of a canonical request that its readings share. They differ in path and host.
pub(super) struct CanonicalRequest<'a> {
    pub(super) method: &'a str,
    pub(super) query: &'a Query,
    pub(super) headers: &'a HeaderMap,
    pub(super) signed_headers: &'a SignedHeaders<'a>,
    /// `x-amz-content-sha256`, or the keyword that stands for it.
    pub(super) payload: &'a str,
}

// === impl Query ===

impl Query {
    /// Parses a query. A `+` is a space, as in all implementations known.
    ///
    /// # Errors
    /// [`AuthError::InvalidUri`] for an incomplete escape.
    pub fn parse(query: &str) -> Result<Self, AuthError> {
        let mut pairs = query
            .split('&')
            .filter(|pair| !pair.is_empty())
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
                Ok((canonical_component(name)?, canonical_component(value)?))
            })
            .collect::<Result<Vec<_>, AuthError>>()?;
        // Pairs, not joined texts: `select&select-type=2` sorts wrongly as `select=` and `select-type=`.
        pairs.sort_unstable();
        Ok(Self { pairs })
    }

    /// Names and values, percent-encoded.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The first value of a parameter, percent-encoded.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs()
            .find_map(|(found, value)| (found == name).then_some(value))
    }

    /// The first value of a parameter, decoded. Bytes that are not UTF-8 are replaced.
    pub fn decoded(&self, name: &str) -> Option<String> {
        let value = escapes::decode(self.get(name)?.as_bytes())?;
        Some(String::from_utf8_lossy(&value).into_owned())
    }

    /// Whether any parameter belongs to a signature of version 4.
    pub(super) fn has_signature(&self) -> bool {
        SIGNATURE_PARAMETERS.iter().any(|name| self.get(name).is_some())
    }

    /// Refuses repeated `X-Amz-*` parameters, and those of a signature in another case: the store could read another one.
    pub(super) fn check_names(&self) -> Result<(), AuthError> {
        let mut names = BTreeSet::new();
        for (name, _) in self.pairs() {
            let lower_case = name.to_ascii_lowercase();
            if !lower_case.starts_with("x-amz-") {
                continue;
            }
            let mut known = SIGNATURE_PARAMETERS.iter().chain(&OTHER_PARAMETERS);
            if known.any(|known| *known != name && known.eq_ignore_ascii_case(name)) {
                return Err(malformed(
                    Carrier::Query,
                    format!("The parameter {name:?} is mal-formed; expecting another case."),
                ));
            }
            if !names.insert(lower_case) {
                return Err(malformed(
                    Carrier::Query,
                    format!("The parameter {name:?} occurs more than once."),
                ));
            }
        }
        Ok(())
    }

    /// Removes the parameters of the signature and of the body's hash, which are for the gateway only.
    #[must_use]
    pub(super) fn without_signature(mut self) -> Self {
        self.pairs.retain(|(name, _)| {
            let is_signature = SIGNATURE_PARAMETERS.contains(&name.as_str());
            !is_signature && name != presign::CONTENT_SHA256
        });
        self
    }
}

/// The canonical query, without the signature itself.
impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.pairs().filter(|(name, _)| *name != presign::SIGNATURE);
        for (index, (name, value)) in pairs.enumerate() {
            let separator = if index == 0 { "" } else { "&" };
            write!(f, "{separator}{name}={value}")?;
        }
        Ok(())
    }
}

/// Names only: values can be signatures or tokens.
impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.pairs().map(|(name, _)| name))
            .finish()
    }
}

fn canonical_component(text: &str) -> Result<String, AuthError> {
    let text = text.replace('+', " ");
    let decoded = escapes::decode(text.as_bytes()).ok_or(AuthError::InvalidUri)?;
    Ok(escapes::encode_component(&decoded))
}

// === impl CanonicalRequest ===

impl CanonicalRequest<'_> {
    /// The canonical request of a path and a host. Header values are bytes: they need not be UTF-8.
    pub(super) fn render(&self, path: &str, host: &[u8]) -> Vec<u8> {
        let mut text = format!("{}\n{path}\n{}\n", self.method, self.query).into_bytes();
        for name in self.signed_headers.names() {
            text.extend_from_slice(name.as_bytes());
            text.push(b':');
            if *name == "host" {
                append_value(&mut text, host);
            } else {
                for (index, value) in self.headers.get_all(*name).iter().enumerate() {
                    if index > 0 {
                        text.push(b',');
                    }
                    append_value(&mut text, value.as_bytes());
                }
            }
            text.push(b'\n');
        }
        text.push(b'\n');
        text.extend_from_slice(self.signed_headers.names().join(";").as_bytes());
        text.push(b'\n');
        text.extend_from_slice(self.payload.as_bytes());
        text
    }
}

/// Appends a value without surrounding spaces, and with single spaces within. S3 leaves other white space as it is.
fn append_value(text: &mut Vec<u8>, value: &[u8]) {
    let words = value.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    for (index, word) in words.enumerate() {
        if index > 0 {
            text.push(b' ');
        }
        text.extend_from_slice(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(query: &str) -> String {
        Query::parse(query).unwrap().to_string()
    }

    #[test]
    fn queries_are_sorted_by_name_and_value() {
        assert_eq!(canonical("select-type=2&select"), "select=&select-type=2");
        assert_eq!(canonical("b=2&b=10&a&&B==x"), "B=%3Dx&a=&b=10&b=2");
        assert_eq!(
            canonical("prefix=a+b%2fc%20d&x=%c3%a9"),
            "prefix=a%20b%2Fc%20d&x=%C3%A9"
        );
        assert_eq!(
            canonical("a%5B=1&a0=2"),
            "a%5B=1&a0=2",
            "encoded names are sorted"
        );
        assert_eq!(Query::parse("a=%4"), Err(AuthError::InvalidUri));
    }

    #[test]
    fn parameters_of_a_signature_are_for_the_gateway() {
        let query = Query::parse("X-Amz-Signature=00ff&X-Amz-Date=d&versionId=a%2Fb").unwrap();
        assert_eq!(query.to_string(), "X-Amz-Date=d&versionId=a%2Fb");
        assert_eq!(
            format!("{query:?}"),
            r#"["X-Amz-Date", "X-Amz-Signature", "versionId"]"#
        );
        assert_eq!(query.decoded("versionId").as_deref(), Some("a/b"));
        assert!(query.has_signature());
        let others = query.without_signature();
        assert_eq!(others.pairs().collect::<Vec<_>>(), [("versionId", "a%2Fb")]);
    }

    #[test]
    fn ambiguous_parameters_are_refused() {
        let check = |query: &str| Query::parse(query).unwrap().check_names();
        assert_eq!(check("X-Amz-Date=1&x-amz-acl=private&a=1&a=2"), Ok(()));
        for query in [
            "X-Amz-Date=1&X-Amz-Date=1",
            "x-amz-acl=private&X-Amz-Acl=private",
            "x-amz-signature=1",
            "X-Amz-Security-token=1",
            "X%2DAmz-DATE=1",
        ] {
            assert!(check(query).is_err(), "{query}");
        }
    }

    #[test]
    fn header_values_have_single_spaces() {
        let mut text = Vec::new();
        append_value(&mut text, b"  a  b\t c\xff ");
        assert_eq!(text, b"a b\t c\xff");
    }
}
