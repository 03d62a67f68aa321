//! Refuses requests that must not be forwarded.

use http::header::{CONNECTION, HOST, UPGRADE};
use http::request::Parts;
use http::{HeaderName, Method, Version};

use super::sign::Signature;
use crate::error::{Error, ErrorKind, Result};

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
