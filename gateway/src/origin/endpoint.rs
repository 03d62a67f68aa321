//! The address of the store: where requests for a bucket go, and how they name it.

use std::io;
use std::net::IpAddr;

use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Uri, Version};
use pushdown::wire::StoreUrl;
use pushdown_s3::{authority_in_region, is_aws_host, is_label};

use crate::error::{Error, ErrorKind, Result};
use crate::s3::AddressStyle;

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

    /// The address, if requests could state it.
    pub(super) fn url(&self) -> Option<StoreUrl> {
        format!("{}://{}", self.scheme, self.authority).parse().ok()
    }

    /// Addresses a request to the store. The target's bytes and the caller's Host header stay unchanged.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidRequest`] for a target that is no path.
    pub(super) fn address(&self, parts: &mut Parts) -> Result<()> {
        let target = target(parts);
        self.set_uri(parts, self.authority.clone(), target)
    }

    /// Addresses a request with a canonical path-style target, which begins with `bucket`, to the store's host for it in `region`.
    /// Returns the Host header.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] for a bucket or region that makes no host.
    pub(super) fn address_signed(
        &self,
        parts: &mut Parts,
        bucket: Option<&str>,
        region: &str,
    ) -> Result<HeaderValue> {
        let target = target(parts);
        let regional = self.regional(region)?;
        let (host, target) = match bucket {
            Some(bucket) if self.style == AddressStyle::VirtualHost && is_label(bucket) => {
                (format!("{bucket}.{regional}"), without_bucket(&target, bucket)?)
            }
            _ => (regional.to_string(), target),
        };
        let host = HeaderValue::from_str(&host)
            .map_err(|error| internal("invalid host of the store").with_source(error))?;
        // Connections are to the host of the region: callers choose buckets, and would choose the number of connections.
        self.set_uri(parts, regional, target)?;
        Ok(host)
    }

    /// The authority for a region. With virtual hosts, `region` replaces the configured region after `s3.` in the host.
    fn regional(&self, region: &str) -> Result<Authority> {
        if region == self.region || self.style == AddressStyle::Path {
            return Ok(self.authority.clone());
        }
        match authority_in_region(self.authority.as_str(), &self.region, region) {
            Some(authority) => parse_authority(&authority),
            None => Ok(self.authority.clone()),
        }
    }

    fn set_uri(&self, parts: &mut Parts, authority: Authority, target: PathAndQuery) -> Result<()> {
        set_uri(parts, self.scheme.clone(), authority, target)
    }
}

/// Addresses a request to a store that it states. The target's bytes and the Host header stay unchanged.
///
/// # Errors
/// [`ErrorKind::InvalidRequest`] for a target that is no path.
pub(super) fn address_stated(url: &StoreUrl, parts: &mut Parts) -> Result<()> {
    let scheme = if url.is_tls() { Scheme::HTTPS } else { Scheme::HTTP };
    let target = target(parts);
    set_uri(parts, scheme, parse_authority(&url.authority())?, target)
}

fn set_uri(parts: &mut Parts, scheme: Scheme, authority: Authority, target: PathAndQuery) -> Result<()> {
    let uri = Uri::builder()
        .scheme(scheme)
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
    if is_aws_host(host) {
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
mod tests;
