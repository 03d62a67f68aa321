//! The endpoints of a store's buckets: where their requests go, how these name the bucket, and the region that they are signed for.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use aws_sdk_s3::config::endpoint::{DefaultResolver, Params, ParamsBuilder, ResolveEndpoint as _};
use futures::FutureExt as _;
use http::StatusCode;
use pushdown::wire::StoreEndpoint;
use pushdown_exec::sync::Mutex;
use serde::{Deserialize, Serialize};

use super::aws::SdkClients;
use crate::{
    error::{Error, Result},
    sign::ObjectPaths,
    transport::Endpoint,
};

/// Longest region that the answer of a store may name.
const MAX_REGION_BYTES: usize = 64;

/// How requests name their bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AddressingStyle {
    /// In the host at AWS's own endpoints, and in the path at a configured one.
    #[default]
    Auto,
    /// In the path: `/bucket/key`.
    Path,
    /// In the host, `bucket.host`, if the host is no IP address.
    Virtual,
}

/// Which of AWS's endpoints are used, if none is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct AwsEndpoints {
    pub(super) use_fips: bool,
    pub(super) use_dual_stack: bool,
}

/// The endpoints of the buckets of a store: all at a configured endpoint, or those of AWS.
#[derive(Debug)]
pub(super) struct BucketEndpoints {
    /// `None` for the endpoints of AWS.
    configured: Option<Endpoint>,
    style: AddressingStyle,
    /// The region of buckets until an answer names another one.
    region: String,
    aws: AwsEndpoints,
    resolver: DefaultResolver,
    clients: SdkClients,
    buckets: Mutex<HashMap<String, Arc<BucketEndpoint>>>,
    /// The URL without a bucket.
    url: String,
}

/// Where the requests for one bucket go.
#[derive(Debug)]
pub(crate) struct BucketEndpoint {
    endpoint: Endpoint,
    paths: ObjectPaths,
    name: String,
    /// Whether the host names the bucket.
    is_in_host: bool,
    region: String,
    /// Whether an answer of the store has confirmed the region.
    is_confirmed: AtomicBool,
    /// For listings and uploads.
    sdk: aws_sdk_s3::Client,
}

impl BucketEndpoint {
    /// The name of the bucket.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The region of signatures.
    pub(crate) fn region(&self) -> &str {
        &self.region
    }

    /// The paths of its objects.
    pub(crate) const fn paths(&self) -> &ObjectPaths {
        &self.paths
    }

    /// The path of an object.
    pub(crate) fn path(&self, key: &str) -> String {
        self.paths.path(key)
    }

    /// Whether an answer of the store has confirmed the region.
    pub(super) fn has_confirmed_region(&self) -> bool {
        self.is_confirmed.load(Relaxed)
    }

    /// Notes that the region is certain.
    pub(super) fn confirm_region(&self) {
        self.is_confirmed.store(true, Relaxed);
    }

    /// Takes the status of an answer that names no other region, and the region that it names. The region is certain if the store named it, or
    /// answered about an object or a bucket: a refusal or a failure may come from another place.
    pub(super) fn observe_answer(&self, status: StatusCode, named: Option<&str>) {
        let is_about_content = status.is_success()
            || matches!(
                status,
                StatusCode::NOT_MODIFIED
                    | StatusCode::NOT_FOUND
                    | StatusCode::PRECONDITION_FAILED
                    | StatusCode::RANGE_NOT_SATISFIABLE
            );
        if named.map_or(is_about_content, |named| named == self.region) {
            self.confirm_region();
        }
    }

    /// The store as requests to a gateway state it.
    ///
    /// # Errors
    /// For a host that is written in a way that a gateway does not accept.
    pub(super) fn stated(&self) -> Result<StoreEndpoint> {
        let url = self.endpoint.to_string().parse();
        let host_bucket = self.is_in_host.then(|| self.name.clone());
        let stated = url.and_then(|url| StoreEndpoint::new(url, host_bucket));
        stated.map_err(|error| Error::config(error.to_string()))
    }

    /// The client for listings and uploads.
    pub(super) const fn sdk(&self) -> &aws_sdk_s3::Client {
        &self.sdk
    }
}

impl BucketEndpoints {
    /// # Errors
    /// For a region that makes no host.
    pub(super) fn new(
        configured: Option<Endpoint>,
        style: AddressingStyle,
        region: String,
        aws: AwsEndpoints,
        clients: SdkClients,
    ) -> Result<Self> {
        let mut new = Self {
            configured,
            style,
            region,
            aws,
            resolver: DefaultResolver::new(),
            clients,
            buckets: Mutex::default(),
            url: String::new(),
        };
        new.url = match &new.configured {
            Some(endpoint) => endpoint.to_string(),
            None => new.resolve_url(Params::builder(), &new.region)?,
        };
        Ok(new)
    }

    /// The configured endpoint. `None` for those of AWS.
    pub(super) const fn configured(&self) -> Option<&Endpoint> {
        self.configured.as_ref()
    }

    /// Its URL without a bucket.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The region of signatures that are for no bucket.
    pub(super) fn region(&self) -> &str {
        &self.region
    }

    /// Whether requests name every bucket in the path. Without it, those that cannot be in a host.
    pub(super) fn is_path_style(&self) -> bool {
        match self.style {
            AddressingStyle::Auto => self.configured.is_some(),
            AddressingStyle::Path => true,
            AddressingStyle::Virtual => self.configured.as_ref().is_some_and(Endpoint::is_ip_address),
        }
    }

    /// Whether connections have TLS.
    pub(super) fn has_tls(&self) -> bool {
        self.configured.as_ref().is_none_or(Endpoint::is_tls)
    }

    /// Whether hosts name the region of their buckets, so that an answer can name another one.
    pub(super) fn is_regional(&self) -> bool {
        let names_region = |endpoint: &Endpoint| endpoint.in_region(&self.region, &self.region).is_some();
        self.configured.as_ref().is_none_or(names_region)
    }

    /// Where the requests for a bucket go, as far as it is known.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) for a bucket that cannot be read.
    pub(super) fn bucket(&self, bucket: &str) -> Result<Arc<BucketEndpoint>> {
        if let Some(known) = self.buckets.lock().get(bucket) {
            return Ok(Arc::clone(known));
        }
        let resolved = Arc::new(self.resolve(bucket, &self.region)?);
        let mut buckets = self.buckets.lock();
        let known = buckets.entry(bucket.to_owned()).or_insert(resolved);
        Ok(Arc::clone(known))
    }

    /// Adopts the region that the answer to a request to `used` names, which is then certain. Returns whether another request may succeed: the region is another
    /// one than that of `used`.
    ///
    /// # Errors
    /// For a region that makes no host, or no part of a signature.
    pub(super) fn learn_region(&self, bucket: &str, used: &BucketEndpoint, region: &str) -> Result<bool> {
        if used.region == region {
            used.confirm_region();
            return Ok(false);
        }
        check_region(bucket, region)?;
        let is_known = |known: &Arc<BucketEndpoint>| known.region == region;
        if !self.buckets.lock().get(bucket).is_some_and(is_known) {
            let resolved = self.resolve(bucket, region)?;
            resolved.confirm_region();
            self.buckets.lock().insert(bucket.to_owned(), Arc::new(resolved));
            tracing::info!(bucket, region, "the bucket is in another region");
        }
        Ok(true)
    }

    /// Whether the region of a bucket is certain, or has no part in its address.
    pub(super) fn is_confirmed(&self, bucket: &BucketEndpoint) -> bool {
        !self.is_regional() || bucket.has_confirmed_region()
    }

    fn resolve(&self, bucket: &str, region: &str) -> Result<BucketEndpoint> {
        check_supported(bucket)?;
        let configured = self.configured.as_ref().map(|endpoint| {
            let in_region = endpoint.in_region(&self.region, region);
            in_region.unwrap_or_else(|| endpoint.clone())
        });
        // No certificate of AWS covers a host with two labels of a bucket.
        let is_path_style = self.is_path_style() || bucket.contains('.');
        let params = Params::builder().bucket(bucket).force_path_style(is_path_style);
        let (endpoint, is_in_path) = match &configured {
            Some(endpoint) if is_path_style => (endpoint.clone(), true),
            Some(endpoint) => self.resolve_bucket(params.endpoint(endpoint.to_string()), region)?,
            None => self.resolve_bucket(params, region)?,
        };
        let paths = if is_in_path {
            ObjectPaths::with_bucket(bucket)
        } else {
            ObjectPaths::of_virtual_host()
        };
        Ok(BucketEndpoint {
            sdk: self
                .clients
                .client(configured.as_ref(), is_path_style, region, self.aws),
            endpoint,
            paths,
            name: bucket.to_owned(),
            is_in_host: !is_in_path,
            region: region.to_owned(),
            is_confirmed: AtomicBool::new(false),
        })
    }

    /// The endpoint of a bucket by the rules of the SDK, and whether requests name the bucket in the path.
    fn resolve_bucket(&self, params: ParamsBuilder, region: &str) -> Result<(Endpoint, bool)> {
        let url = self.resolve_url(params, region)?;
        let host_at = url.find("://").map_or(0, |at| at + "://".len());
        let (base, path) = match url[host_at..].find('/') {
            Some(at) => url.split_at(host_at + at),
            None => (url.as_str(), ""),
        };
        Ok((Endpoint::parse("endpoint", base)?, !matches!(path, "" | "/")))
    }

    fn resolve_url(&self, params: ParamsBuilder, region: &str) -> Result<String> {
        let AwsEndpoints {
            use_fips,
            use_dual_stack,
        } = self.aws;
        // A configured endpoint says itself where requests go.
        let is_aws = self.configured.is_none();
        let params = params
            .region(region)
            .use_fips(use_fips && is_aws)
            .use_dual_stack(use_dual_stack && is_aws)
            .build();
        let params =
            params.map_err(|error| Error::internal("cannot resolve the endpoint").with_source(error))?;
        let resolving = self.resolver.resolve_endpoint(&params).now_or_never();
        let resolved = resolving.ok_or_else(|| Error::internal("the endpoint took time to resolve"))?;
        let resolved = resolved.map_err(|error| {
            let text = format!("cannot resolve the endpoint of S3 in the region `{region}`: {error}");
            Error::config(text)
        })?;
        let schemes = resolved.auth_schemes();
        let is_signable = schemes.iter().any(|scheme| {
            let service = scheme.get("signingName").and_then(|name| name.as_string());
            scheme.name() == "sigv4" && service == Some("s3")
        });
        if !is_signable {
            let found: Vec<String> = schemes
                .iter()
                .map(|scheme| format!("`{}`", scheme.name()))
                .collect();
            return Err(Error::config(format!(
                "cannot sign for {}: expected an endpoint with AWS Signature Version 4 for S3, found {}",
                resolved.url(),
                found.join(", ")
            )));
        }
        Ok(resolved.url().to_owned())
    }
}

/// Checks a region that an answer names, which is untrusted input.
fn check_region(bucket: &str, region: &str) -> Result<()> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if (1..=MAX_REGION_BYTES).contains(&region.len()) && region.bytes().all(is_part) {
        return Ok(());
    }
    Err(Error::config(format!(
        "cannot resolve the endpoint of S3 in the region {region:?} of the bucket `{bucket}`, which the answer of the store names: expected 1 to \
         {MAX_REGION_BYTES} letters, digits, `-`, `_` and `.`; check that the endpoint is a store"
    )))
}

/// Refuses what needs other requests than those of a bucket, by its name.
fn check_supported(bucket: &str) -> Result<()> {
    let is_alias = bucket.rsplit_once('.').is_some_and(|(_, last)| last == "mrap");
    let names_no_region = bucket.starts_with("arn:") && bucket.split(':').nth(3) == Some("");
    let (found, remedy) = if bucket.ends_with("--x-s3") {
        (
            "a directory bucket of S3 Express, whose requests are signed by sessions of their own",
            "copy the data set to a general purpose bucket",
        )
    } else if is_alias || names_no_region {
        (
            "a multi-region access point, whose requests are signed for all regions at once",
            "use the bucket of one region",
        )
    } else if bucket.starts_with("arn:") {
        (
            "the ARN of an access point",
            "use the alias of the access point, or its bucket",
        )
    } else {
        return Ok(());
    };
    Err(Error::config(format!(
        "cannot read from `{bucket}`: expected the name of a bucket, found {found}: {remedy}"
    )))
}

#[cfg(test)]
mod tests;
