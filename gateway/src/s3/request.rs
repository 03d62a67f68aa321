//! Refuses requests that must not be forwarded, and those that cannot be parsed.

use http::header::{CONNECTION, HOST, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, Method, StatusCode, Version};
use pushdown::wire::header;

use super::framing;
use super::sign::ClaimedHeaders;
use crate::error::{Error, ErrorKind, Result};

/// Refuses what must not be forwarded: destinations other than the store, other protocols, and headers that the next
/// hop could interpret differently. `has_ambiguous_framing` is what the connection saw: the headers have at most one length.
pub fn check(head: &Parts, has_ambiguous_framing: bool) -> Result<()> {
    let (target, headers) = (&head.uri, &head.headers);
    if head.method == Method::CONNECT {
        return Err(Error::new(
            ErrorKind::MethodNotAllowed,
            "CONNECT is not served: the store is the only destination",
        ));
    }
    if headers.contains_key(UPGRADE) {
        return Err(Error::new(
            ErrorKind::MethodNotAllowed,
            "protocol upgrades are not served",
        ));
    }
    if target.scheme().is_some() || target.authority().is_some() {
        return Err(invalid(
            "invalid request target: expected a path, found a URL; the store is the only destination",
        ));
    }
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(_), None) => {}
        (None, _) if head.version < Version::HTTP_11 => {}
        (None, _) => return Err(invalid("invalid Host header: expected one, found none")),
        (Some(_), Some(_)) => return Err(invalid("invalid Host header: expected one, found several")),
    }
    if headers.contains_key(CONNECTION) {
        let signed = ClaimedHeaders::read(headers, target.query());
        if let Some(name) = connection_names(headers).find(|name| signed.contains(name)) {
            return Err(invalid(format!(
                "the header {name} is signed, but Connection names it as one to drop: expected one or the other"
            )));
        }
    }
    framing::check(headers, has_ambiguous_framing)
}

/// The error for a request head that hyper rejected with `status`.
pub fn unreadable_head(status: StatusCode, max_header_bytes: u64) -> Error {
    match status {
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => Error::new(
            ErrorKind::HeadTooLarge,
            format!(
                "the request's headers are too large: expected at most {} bytes and {} headers",
                max_header_bytes,
                header::MAX_COUNT
            ),
        ),
        StatusCode::URI_TOO_LONG => Error::new(
            ErrorKind::UriTooLong,
            "the request's target is too long: expected at most 65534 bytes",
        ),
        _ => Error::new(
            ErrorKind::InvalidRequest,
            "invalid request: expected a method, a path, HTTP/1.1 and headers",
        ),
    }
}

/// The headers that `Connection` names: they apply to this hop only.
fn connection_names(headers: &HeaderMap) -> impl Iterator<Item = HeaderName> {
    headers
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

    fn get(uri: &str) -> Builder {
        Request::get(uri).header(HOST, "gateway")
    }

    fn kind(builder: Builder) -> Option<ErrorKind> {
        check(&builder.body(()).unwrap().into_parts().0, false)
            .err()
            .map(|error| error.kind())
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
