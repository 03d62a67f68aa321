//! Routes requests, and refuses those that must not be forwarded.

use http::header::{CONNECTION, HOST, UPGRADE};
use http::request::Parts;
use http::{HeaderName, Method, Version};

use super::query;
use super::sign::Signature;
use crate::error::{Error, ErrorKind, Result};

/// The header, and query parameter, that selects the pipeline route.
pub const PIPELINE: &str = "x-pushdown-pipeline";

/// The path of batch requests. It cannot name a bucket: bucket names begin with a letter or a digit.
pub const BATCH_PATH: &str = "/_pushdown/v1/batch";

/// The path of the list of models. `MODELS_PATH/DIGEST` is the path of a model's weights.
pub const MODELS_PATH: &str = "/_pushdown/v1/models";

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Route {
    /// Plain S3: forwarded unchanged.
    Forward,
    /// A pipeline on one object, in a header or in the query.
    Pipeline,
    /// A pipeline on many objects.
    Batch,
    /// The models that pipelines can use.
    Models,
}

impl Route {
    /// All routes.
    pub const ALL: [Self; 4] = [Self::Forward, Self::Pipeline, Self::Batch, Self::Models];

    /// The route of a request.
    pub fn for_request(parts: &Parts) -> Self {
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

    /// The name in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Pipeline => "pipeline",
            Self::Batch => "batch",
            Self::Models => "models",
        }
    }
}

/// Refuses what must not be forwarded: destinations other than the store, other protocols, and headers that the next
/// hop could interpret differently.
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
            "invalid request target: expected a path, found a URL; the store is the only destination",
        ));
    }
    let mut hosts = parts.headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(_), None) => {}
        (None, _) if parts.version < Version::HTTP_11 => {}
        (None, _) => return Err(invalid("invalid Host header: expected one, found none")),
        (Some(_), Some(_)) => return Err(invalid("invalid Host header: expected one, found several")),
    }
    if parts.headers.contains_key(CONNECTION) {
        let signature = Signature::from_parts(parts);
        if let Some(name) = connection_names(parts).find(|name| signature.has_signed(name)) {
            return Err(invalid(format!(
                "the header {name} is signed, but Connection names it as one to drop: expected one or the other"
            )));
        }
    }
    Ok(())
}

/// Refuses a request with a body, even an empty declared one. The gateway would have to read the body or close the
/// connection before it could parse the next request.
pub fn check_no_body(body: &impl http_body::Body) -> Result<()> {
    if body.is_end_stream() {
        Ok(())
    } else {
        Err(invalid(
            "invalid request: expected no body with a pipeline, found one",
        ))
    }
}

/// The headers that `Connection` names: they apply to this hop only.
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
    fn requests_are_routed_by_path_header_and_query() {
        assert_eq!(
            Route::for_request(&parts(get("/bucket/key?x-pushdown-split=1"))),
            Route::Forward
        );
        assert_eq!(
            Route::for_request(&parts(get("/bucket/key?a=b&x-pushdown-pipeline=decode"))),
            Route::Pipeline
        );
        assert_eq!(
            Route::for_request(&parts(get("/bucket/key").header(PIPELINE, "decode"))),
            Route::Pipeline
        );
        assert_eq!(
            Route::for_request(&parts(get("/_pushdown/v1/batch"))),
            Route::Batch
        );
        assert_eq!(
            Route::for_request(&parts(get("/_pushdown/v1/batches"))),
            Route::Forward
        );
        assert_eq!(
            Route::for_request(&parts(get("/_pushdown/v1/models/0a"))),
            Route::Models
        );
        assert_eq!(
            Route::for_request(&parts(get("/_pushdown/v1/modelss"))),
            Route::Forward
        );
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
    fn exactly_one_host_header_is_required() {
        assert_eq!(
            kind(get("/b/k").header(HOST, "other")),
            Some(ErrorKind::InvalidRequest)
        );
        assert_eq!(kind(Request::get("/b/k")), Some(ErrorKind::InvalidRequest));
        assert_eq!(kind(Request::get("/b/k").version(Version::HTTP_10)), None);
    }

    #[test]
    fn connection_must_not_name_a_signed_header() {
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
