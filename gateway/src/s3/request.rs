//! What a request is: which face answers it, and whether it may be passed on at all.

use http::header::{CONNECTION, HOST, UPGRADE};
use http::request::Parts;
use http::{HeaderName, Method, Version};

use super::query;
use super::sign::Signature;
use crate::error::{Error, ErrorKind, Result};

/// The header, and the query parameter, that turn a plain GET into a pushed-down one.
pub const PIPELINE: &str = "x-pushdown-pipeline";

/// The path of batch requests. No bucket can have this name: buckets begin with a letter or a digit.
pub const BATCH_PATH: &str = "/_pushdown/v1/batch";

/// The path of the models that pipelines may name; behind it and a slash, a digest's weights.
pub const MODELS_PATH: &str = "/_pushdown/v1/models";

/// Which of the gateway's faces answers a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Face {
    /// Plain S3: forwarded as it came.
    Forward,
    /// A pipeline on one object, in a header or in the query.
    Pipeline,
    /// A pipeline on many objects.
    Batch,
    /// The models that pipelines may name.
    Models,
}

impl Face {
    /// The face that answers this request.
    pub fn of(parts: &Parts) -> Self {
        if parts.uri.path() == BATCH_PATH {
            Self::Batch
        } else if parts
            .uri
            .path()
            .strip_prefix(MODELS_PATH)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        {
            Self::Models
        } else if parts.headers.contains_key(PIPELINE)
            || parts
                .uri
                .query()
                .is_some_and(|query| query::values(query, PIPELINE).next().is_some())
        {
            Self::Pipeline
        } else {
            Self::Forward
        }
    }

    /// The face's name in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Pipeline => "pipeline",
            Self::Batch => "batch",
            Self::Models => "models",
        }
    }
}

/// Refuses what a gateway must not pass on: other destinations than the store, other protocols, and headers
/// that the next hop could read differently.
pub fn check(parts: &Parts) -> Result<()> {
    if parts.method == Method::CONNECT {
        return Err(Error::new(
            ErrorKind::MethodNotAllowed,
            "CONNECT is not served: the store is the only destination",
        ));
    }
    if parts.headers.contains_key(UPGRADE) {
        return Err(Error::new(
            ErrorKind::MethodNotAllowed,
            "protocol upgrades are not served",
        ));
    }
    if parts.uri.scheme().is_some() || parts.uri.authority().is_some() {
        return Err(invalid(
            "the request target must be a path: the store is the only destination",
        ));
    }
    let mut hosts = parts.headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(_), None) => {}
        (None, _) if parts.version < Version::HTTP_11 => {}
        (None, _) => return Err(invalid("the Host header is missing")),
        (Some(_), Some(_)) => return Err(invalid("the Host header occurs more than once")),
    }
    if parts.headers.contains_key(CONNECTION) {
        let signature = Signature::of(parts);
        if let Some(name) = connection_names(parts).find(|name| signature.signs(name)) {
            return Err(invalid(format!(
                "the header {name} is signed, and named in Connection as one to be dropped"
            )));
        }
    }
    Ok(())
}

/// Refuses a body, also one that is only declared: it would have to be read, or the connection closed, before the next
/// request is understood.
pub fn check_bodiless(body: &impl http_body::Body) -> Result<()> {
    if body.is_end_stream() {
        Ok(())
    } else {
        Err(invalid(
            "invalid request: expected no body with a pipeline, found one",
        ))
    }
}

/// The headers that `Connection` declares to be for this hop only.
fn connection_names(parts: &Parts) -> impl Iterator<Item = HeaderName> {
    parts
        .headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
}

fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidRequest, message)
}

#[cfg(test)]
mod tests {
    use http::Request;
    use http::request::Builder;

    use super::*;

    fn parts(builder: Builder) -> Parts {
        builder.body(()).unwrap().into_parts().0
    }

    fn get(uri: &str) -> Builder {
        Request::get(uri).header(HOST, "gateway")
    }

    fn kind(builder: Builder) -> Option<ErrorKind> {
        check(&parts(builder)).err().map(|error| error.kind())
    }

    #[test]
    fn faces() {
        assert_eq!(
            Face::of(&parts(get("/bucket/key?x-pushdown-split=1"))),
            Face::Forward
        );
        assert_eq!(
            Face::of(&parts(get("/bucket/key?a=b&x-pushdown-pipeline=decode"))),
            Face::Pipeline
        );
        assert_eq!(
            Face::of(&parts(get("/bucket/key").header(PIPELINE, "decode"))),
            Face::Pipeline
        );
        assert_eq!(Face::of(&parts(get("/_pushdown/v1/batch"))), Face::Batch);
        assert_eq!(Face::of(&parts(get("/_pushdown/v1/batches"))), Face::Forward);
        assert_eq!(Face::of(&parts(get("/_pushdown/v1/models/0a"))), Face::Models);
        assert_eq!(Face::of(&parts(get("/_pushdown/v1/modelss"))), Face::Forward);
    }

    #[test]
    fn other_destinations_and_protocols_are_refused() {
        assert_eq!(kind(get("/b/k")), None);
        assert_eq!(kind(get("http://elsewhere/b/k")), Some(ErrorKind::InvalidRequest));
        assert_eq!(
            kind(Request::builder().method(Method::CONNECT).uri("store:443")),
            Some(ErrorKind::MethodNotAllowed)
        );
        assert_eq!(
            kind(get("/b/k").header(UPGRADE, "h2c")),
            Some(ErrorKind::MethodNotAllowed)
        );
    }

    #[test]
    fn exactly_one_host() {
        assert_eq!(
            kind(get("/b/k").header(HOST, "other")),
            Some(ErrorKind::InvalidRequest)
        );
        assert_eq!(kind(Request::get("/b/k")), Some(ErrorKind::InvalidRequest));
        assert_eq!(kind(Request::get("/b/k").version(Version::HTTP_10)), None);
    }

    #[test]
    fn a_signed_header_cannot_be_for_this_hop_only() {
        let signed = |connection: &str| {
            get("/b/k").header(CONNECTION, connection).header(
                "authorization",
                "AWS4-HMAC-SHA256 Credential=A/d/r/s3/aws4_request, SignedHeaders=host;range, Signature=0",
            )
        };
        assert_eq!(kind(signed("keep-alive")), None);
        assert_eq!(kind(signed("close, Range")), Some(ErrorKind::InvalidRequest));
    }
}
