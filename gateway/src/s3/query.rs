//! The query of a request: its parameters by decoded name, as stores read them.

use std::{borrow::Cow, collections::BTreeSet, fmt};

use pushdown_s3::presign;

use super::auth::{AuthError, malformed};
use super::escapes;
use super::sign::Carrier;

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

/// The values of a query parameter, still percent-encoded. Names are compared decoded. A parameter without `=` has the empty value.
pub fn values<'a>(query: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    query.split('&').filter_map(move |pair| {
        let (found, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded_name(found) == name.as_bytes()).then_some(value)
    })
}

/// The names and values of all parameters, percent-decoded.
pub fn decoded(query: &str) -> impl Iterator<Item = (Cow<'_, [u8]>, Cow<'_, [u8]>)> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded_name(name), escapes::decode_lenient(value))
    })
}

fn decoded_name(name: &str) -> Cow<'_, [u8]> {
    escapes::decode_lenient(name)
}

/// Refuses a `;` that some stores read as a separator of parameters, and others as a part of a value. It may separate the names of
/// signed headers.
///
/// # Errors
/// [`AuthError::Malformed`].
pub fn check_separators(query: &str) -> Result<(), AuthError> {
    let mut pairs = query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let is_clear = pairs.all(|(name, value)| {
        let is_list = name == presign::SIGNED_HEADERS && !value.contains('=');
        !name.contains(';') && (is_list || !value.contains(';'))
    });
    if is_clear {
        Ok(())
    } else {
        Err(malformed(
            Carrier::Query,
            "The query contains \";\"; expecting \"&\" between parameters, and \"%3B\" within them.",
        ))
    }
}

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
    pub fn has_signature(&self) -> bool {
        SIGNATURE_PARAMETERS.iter().any(|name| self.get(name).is_some())
    }

    /// Refuses parameters of which a store could read another one than the gateway: repeated ones, those of a signature in another
    /// case, and names with control characters.
    ///
    /// # Errors
    /// [`AuthError::Malformed`] for the first of them.
    pub fn check_names(&self) -> Result<(), AuthError> {
        let mut names = BTreeSet::new();
        for (name, _) in self.pairs() {
            let lower_case = name.to_ascii_lowercase();
            let is_amazon = lower_case.starts_with("x-amz-");
            if decoded_name(name).iter().any(u8::is_ascii_control) {
                return Err(malformed(
                    Carrier::Query,
                    format!(
                        "The parameter {name:?} is mal-formed; expecting a name without control characters."
                    ),
                ));
            }
            let unique = if is_amazon { lower_case } else { name.to_owned() };
            if !names.insert(unique) {
                return Err(malformed(
                    Carrier::Query,
                    format!("The parameter {name:?} occurs more than once."),
                ));
            }
            if !is_amazon {
                continue;
            }
            let mut known = SIGNATURE_PARAMETERS.iter().chain(&OTHER_PARAMETERS);
            if known.any(|known| *known != name && known.eq_ignore_ascii_case(name)) {
                return Err(malformed(
                    Carrier::Query,
                    format!("The parameter {name:?} is mal-formed; expecting another case."),
                ));
            }
        }
        Ok(())
    }

    /// Removes the parameters of the signature and of the body's hash, which are for the gateway only.
    #[must_use]
    pub fn without_signature(mut self) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_decoded_name() {
        let found: Vec<_> = values("a=1&ba=2&a&%61=x%3Dy&A=3&a%00=4", "a").collect();
        assert_eq!(found, ["1", "", "x%3Dy"]);
    }

    #[test]
    fn a_semicolon_separates_nothing_but_signed_headers() {
        for query in ["", "a=1&b", "X-Amz-SignedHeaders=host;range&a", "a=1%3Bb=2"] {
            assert_eq!(check_separators(query), Ok(()), "{query}");
        }
        for query in [
            "a;b=1",
            "a=1;b=2",
            "X-Amz-SignedHeaders=host;X-Amz-Credential=k",
            ";",
        ] {
            assert!(check_separators(query).is_err(), "{query}");
        }
    }

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
        assert_eq!(check("X-Amz-Date=1&x-amz-acl=private&a=1&A=2&b"), Ok(()));
        for query in [
            "a=1&a=2",
            "a&%61",
            "versionId=1&version%49d=2",
            "partNumber%00=1",
            "X-Amz-Date=1&X-Amz-Date=1",
            "x-amz-acl=private&X-Amz-Acl=private",
            "x-amz-signature=1",
            "X-Amz-Security-token=1",
            "X%2DAmz-DATE=1",
        ] {
            assert!(check(query).is_err(), "{query}");
        }
    }
}
