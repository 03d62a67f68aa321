//! The address of the store: where requests for a bucket go, and how they name it.

use std::io;
use std::net::IpAddr;

use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Uri, Version};

use crate::error::{Error, ErrorKind, Result};
use crate::s3::address::AddressStyle;

/// The domain of AWS. In China it has another suffix.
const AWS_DOMAINS: [&str; 2] = ["amazonaws.com", "amazonaws.com.cn"];

/// The store's address.
#[derive(Debug, Clone)]
pub(super) struct Endpoint {
    scheme: Scheme,
    authority: Authority,
    style: AddressStyle,
    /// The region that the authority may name.
    region: String,
}

impl Endpoint {
    /// The address of a store in a region. The default style is virtual hosts for AWS, and paths for other stores.
    ///
    /// # Errors
    /// A URL without scheme or host; virtual hosts below an IP address.
    pub(super) fn new(url: Uri, style: Option<AddressStyle>, region: &str) -> io::Result<Self> {
        let parts = url.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(invalid("the store's URL requires a scheme and a host"));
        };
        let style = style.unwrap_or_else(|| default_style(authority.host()));
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        if style == AddressStyle::VirtualHost && host.parse::<IpAddr>().is_ok() {
            return Err(invalid(
                "resign-upstream-style: virtual requires an upstream with a host name, found an IP address",
            ));
        }
        Ok(Self {
            scheme,
            authority,
            style,
            region: region.to_owned(),
        })
    }

    /// Whether connections have TLS.
    pub(super) fn is_tls(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// Addresses a request to the store. The target's bytes and the caller's Host header stay unchanged.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] for a target that is no path.
    pub(super) fn address(&self, parts: &mut Parts) -> Result<()> {
        let target = target(parts);
        self.set_uri(parts, self.authority.clone(), target)
    }

    /// Addresses a request with a canonical path-style target to the store's host for its bucket in `region`. Returns the Host
    /// header.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] for a bucket or region that makes no host.
    pub(super) fn address_signed(&self, parts: &mut Parts, region: &str) -> Result<HeaderValue> {
        let target = target(parts);
        let regional = self.regional(region)?;
        let (authority, target) = match bucket_in(target.path()) {
            Some(bucket) if self.style == AddressStyle::VirtualHost && is_label(bucket) => {
                let authority = parse_authority(&format!("{bucket}.{regional}"))?;
                (authority, without_bucket(&target, bucket)?)
            }
            _ => (regional, target),
        };
        let host = HeaderValue::from_str(authority.as_str())
            .map_err(|error| internal("invalid host of the store").with_source(error))?;
        self.set_uri(parts, authority, target)?;
        Ok(host)
    }

    /// The authority for a region: the configured one, with the other region in place of its own.
    fn regional(&self, region: &str) -> Result<Authority> {
        if region == self.region || !is_label(region) {
            return Ok(self.authority.clone());
        }
        let text = self.authority.as_str();
        let global = format!("s3.{}", AWS_DOMAINS[0]);
        if text.eq_ignore_ascii_case(&global) {
            return parse_authority(&format!("s3.{region}.{}", AWS_DOMAINS[0]));
        }
        let replace = |label| if label == self.region { region } else { label };
        let labels: Vec<&str> = text.split('.').map(replace).collect();
        parse_authority(&labels.join("."))
    }

    fn set_uri(&self, parts: &mut Parts, authority: Authority, target: PathAndQuery) -> Result<()> {
        let uri = Uri::builder()
            .scheme(self.scheme.clone())
            .authority(authority)
            .path_and_query(target)
            .build();
        parts.uri = uri.map_err(|error| {
            let message = "invalid request target: expected a path";
            Error::new(ErrorKind::InvalidRequest, message).with_source(error)
        })?;
        parts.version = Version::HTTP_11;
        Ok(())
    }
}

/// The bucket of a canonical path-style target. `None` for the list of buckets.
pub(super) fn bucket_in(path: &str) -> Option<&str> {
    let path = path.strip_prefix('/')?;
    let bucket = path.split_once('/').map_or(path, |(bucket, _)| bucket);
    (!bucket.is_empty()).then_some(bucket)
}

/// Whether a text is one label of a host name, in lower case.
pub(super) fn is_label(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len())
        && text.bytes().all(is_inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn target(parts: &Parts) -> PathAndQuery {
    let target = parts.uri.path_and_query().cloned();
    target.unwrap_or_else(|| PathAndQuery::from_static("/"))
}

fn without_bucket(target: &PathAndQuery, bucket: &str) -> Result<PathAndQuery> {
    let rest = &target.as_str()[1 + bucket.len()..];
    let slash = if rest.starts_with('/') { "" } else { "/" };
    let target = format!("{slash}{rest}").parse();
    target.map_err(|error| internal("invalid target").with_source(error))
}

fn default_style(host: &str) -> AddressStyle {
    let host = host.to_ascii_lowercase();
    let is_aws = |domain: &&str| host.strip_suffix(*domain).is_some_and(|rest| rest.ends_with('.'));
    if AWS_DOMAINS.iter().any(is_aws) {
        AddressStyle::VirtualHost
    } else {
        AddressStyle::Path
    }
}

fn parse_authority(text: &str) -> Result<Authority> {
    text.parse()
        .map_err(|error| internal("invalid host of the store").with_source(error))
}

fn invalid(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

fn internal(message: &'static str) -> Error {
    Error::new(ErrorKind::Internal, message)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    const FRANKFURT: &str = "eu-central-1";

    fn endpoint(url: &'static str, style: Option<AddressStyle>) -> Endpoint {
        Endpoint::new(Uri::from_static(url), style, FRANKFURT).unwrap()
    }

    fn addressed(endpoint: &Endpoint, target: &str, region: &str) -> (String, String) {
        let mut parts = Request::get(target).body(()).unwrap().into_parts().0;
        let host = endpoint.address_signed(&mut parts, region).unwrap();
        (parts.uri.to_string(), host.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_bucket_is_the_first_label_of_the_host_at_aws() {
        let aws = endpoint("https://s3.eu-central-1.amazonaws.com", None);
        for (target, region, host, path) in [
            (
                "/photos/a%20b/c?x-id=G",
                FRANKFURT,
                "photos.s3.eu-central-1.amazonaws.com",
                "/a%20b/c?x-id=G",
            ),
            (
                "/photos?list-type=2",
                FRANKFURT,
                "photos.s3.eu-central-1.amazonaws.com",
                "/?list-type=2",
            ),
            (
                "/photos/k",
                "us-west-2",
                "photos.s3.us-west-2.amazonaws.com",
                "/k",
            ),
            (
                "/my.photos/k",
                "us-west-2",
                "s3.us-west-2.amazonaws.com",
                "/my.photos/k",
            ),
            ("/", FRANKFURT, "s3.eu-central-1.amazonaws.com", "/"),
        ] {
            let expected = (format!("https://{host}{path}"), host.to_owned());
            assert_eq!(addressed(&aws, target, region), expected, "{target}");
        }
    }

    #[test]
    fn other_stores_have_the_bucket_in_the_path() {
        let store = endpoint("http://store:8333", None);
        let expected = ("http://store:8333/photos/k".to_owned(), "store:8333".to_owned());
        assert_eq!(addressed(&store, "/photos/k", FRANKFURT), expected);
        // Its host names no region, so another one changes signatures alone.
        assert_eq!(addressed(&store, "/photos/k", "us-west-2"), expected);
        let store = endpoint("http://s3.localhost:8333", Some(AddressStyle::VirtualHost));
        assert_eq!(
            addressed(&store, "/photos/k", FRANKFURT).1,
            "photos.s3.localhost:8333"
        );
    }

    #[test]
    fn a_region_of_an_answer_is_one_label_or_ignored() {
        let aws = endpoint("https://s3.amazonaws.com", None);
        assert_eq!(
            addressed(&aws, "/b-1/k", "us-west-2").1,
            "b-1.s3.us-west-2.amazonaws.com"
        );
        for region in ["evil.example/", "a.b", "", "-a", "A"] {
            assert_eq!(
                addressed(&aws, "/b-1/k", region).1,
                "b-1.s3.amazonaws.com",
                "{region}"
            );
        }
    }

    #[test]
    fn an_ip_address_has_no_virtual_hosts() {
        for url in ["http://127.0.0.1:1", "http://[::1]:1"] {
            let error =
                Endpoint::new(Uri::from_static(url), Some(AddressStyle::VirtualHost), "r").unwrap_err();
            assert!(error.to_string().contains("found an IP address"), "{error}");
        }
    }
}
