//! The parameters of a query, decoded.

use std::collections::BTreeMap;

use pushdown::wire::header;

use super::headers;
use crate::s3::escapes;
use crate::s3::query::Query;

/// The parameters of a query, each with one value.
#[derive(Default)]
pub(super) struct Parameters {
    /// Those of the operation.
    operation: BTreeMap<String, Vec<u8>>,
    /// `x-amz-*`: the signature of a presigned URL, and headers that are sent as parameters. Names are in lower case.
    headers: BTreeMap<String, Vec<u8>>,
}

impl Parameters {
    /// Decodes a query. `None` if a name is not UTF-8 or a parameter is repeated: servers disagree about their meaning.
    pub(super) fn from_query(query: &Query) -> Option<Self> {
        let mut parameters = Self::default();
        for (name, value) in query.pairs() {
            let (name, value) = (String::from_utf8(decode(name)?).ok()?, decode(value)?);
            let lower = name.to_ascii_lowercase();
            let previous = if lower.starts_with(headers::PREFIX) {
                parameters.headers.insert(lower, value)
            } else if lower.starts_with(header::PREFIX) || name == "x-id" {
                // Those of the gateway, and the name of the operation that SDKs add for people.
                None
            } else {
                parameters.operation.insert(name, value)
            };
            if previous.is_some() {
                return None;
            }
        }
        Some(parameters)
    }

    /// Names of the parameters that select or refine the operation.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.operation.keys().map(String::as_str)
    }

    /// The value of a parameter of the operation.
    pub(super) fn get(&self, name: &str) -> Option<&[u8]> {
        self.operation.get(name).map(Vec::as_slice)
    }

    /// The `x-amz-*` parameters.
    pub(super) fn headers(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_slice()))
    }
}

fn decode(text: &str) -> Option<Vec<u8>> {
    escapes::decode(text.as_bytes()).map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> Option<Parameters> {
        Parameters::from_query(&Query::parse(query).unwrap())
    }

    #[test]
    fn parameters_are_decoded() {
        let query =
            "prefix=a%2Fb+%2B%ff&uploads&&X-Amz-Acl=private&x-id=GetObject&x-pushdown-pipeline=decode";
        let parameters = parse(query).unwrap();
        assert_eq!(parameters.names().collect::<Vec<_>>(), ["prefix", "uploads"]);
        assert_eq!(parameters.get("prefix"), Some(&b"a/b +\xff"[..]));
        assert_eq!(parameters.get("uploads"), Some(&b""[..]));
        let headers: Vec<_> = parameters.headers().collect();
        assert_eq!(headers, [("x-amz-acl", &b"private"[..])]);
    }

    #[test]
    fn ambiguous_queries_are_refused() {
        for query in [
            "%ff=1",
            "prefix=a&prefix=a",
            "acl&%61cl",
            "X-Amz-Acl=a&x-amz-acl=a",
        ] {
            assert!(parse(query).is_none(), "{query}");
        }
    }
}
