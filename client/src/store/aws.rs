//! All that the AWS SDK does: sources of settings and credentials, and the requests that are no GETs of objects: listings, uploads and the ETag
//! of an object. They are retried like any other request.

mod names;
mod pages;
mod settings;
mod small_object;
mod upload;

use std::time::Duration;

use aws_config::{BehaviorVersion, Region};
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_s3::{
    config::{
        IdentityCache, RequestChecksumCalculation, SharedHttpClient, http::HttpResponse, retry::RetryConfig,
        timeout::TimeoutConfig,
    },
    error::{ProvideErrorMetadata, SdkError},
};
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use http::StatusCode;
use pushdown_s3::{ErrorDocument, is_transient, parse_retry_after};

pub use self::upload::Upload;
pub(super) use self::{names::Names, pages::BucketPages, settings::Sources};
use super::{
    Store,
    bucket_endpoints::{AwsEndpoints, BucketEndpoint},
    failure::FailedAttempt,
};
use crate::{
    error::{Error, ErrorKind, Result},
    transport::{BUCKET_REGION, DnsResolver, Endpoint, Timeouts, root_cause},
};

/// Makes clients for listings and uploads. They share connections and credentials, and do not retry: retries follow the same policy as for
/// all other requests.
#[derive(Debug, Clone)]
pub(super) struct SdkClients {
    http: SharedHttpClient,
    provider: SharedCredentialsProvider,
    timeouts: Timeouts,
}

impl SdkClients {
    pub(super) fn new(
        provider: SharedCredentialsProvider,
        timeouts: Timeouts,
        resolver: DnsResolver,
    ) -> Self {
        Self {
            http: http(resolver),
            provider,
            timeouts,
        }
    }

    /// A client for buckets of a region, at a configured endpoint or those of AWS.
    pub(super) fn client(
        &self,
        configured: Option<&Endpoint>,
        is_path_style: bool,
        region: &str,
        aws: AwsEndpoints,
    ) -> aws_sdk_s3::Client {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(self.timeouts.connect)
            .read_timeout(self.timeouts.first_byte)
            .build();
        let mut config = aws_sdk_s3::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .http_client(self.http.clone())
            .region(Region::new(region.to_owned()))
            .force_path_style(is_path_style)
            .credentials_provider(self.provider.clone())
            // The provider caches, for all requests.
            .identity_cache(IdentityCache::no_cache())
            .retry_config(RetryConfig::disabled())
            // The signature covers the body, and not every store knows checksums in trailers.
            .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
            .timeout_config(timeouts);
        config = match configured {
            Some(endpoint) => config.endpoint_url(endpoint.to_string()),
            None => config.use_fips(aws.use_fips).use_dual_stack(aws.use_dual_stack),
        };
        aws_sdk_s3::Client::from_conf(config.build())
    }
}

fn http(resolver: DnsResolver) -> SharedHttpClient {
    aws_smithy_http_client::Builder::new()
        .tls_provider(Provider::Rustls(CryptoMode::Ring))
        .build_with_resolver(resolver)
}

impl Store {
    /// Sends a request of the SDK about a bucket, with retries; once more if the answer names another region of the bucket. `action` is what an
    /// error says that cannot be done.
    pub(super) async fn with_sdk_retries<T, E, F>(
        &self,
        bucket: &str,
        action: &str,
        send: impl Fn(aws_sdk_s3::Client) -> F + Sync,
    ) -> Result<T>
    where
        E: ProvideErrorMetadata + std::error::Error + Send + 'static,
        F: Future<Output = Result<T, SdkError<E, HttpResponse>>> + Send,
        T: Send,
    {
        let mut attempt = || async {
            let sent = self.send_by_sdk(bucket, &send).await?;
            sent.map_err(|error| FailedAttempt {
                error: sdk_error(action, &error),
                retry_after: retry_after(&error),
            })
        };
        let sent = self.retries().complete(&mut attempt).await;
        sent.map_err(|failed| failed.error)
    }

    /// Sends a request of the SDK about a bucket once; once more if the answer names another region of the bucket.
    async fn send_by_sdk<T, E, F>(
        &self,
        bucket: &str,
        send: &(impl Fn(aws_sdk_s3::Client) -> F + Sync),
    ) -> Result<Result<T, SdkError<E, HttpResponse>>>
    where
        F: Future<Output = Result<T, SdkError<E, HttpResponse>>> + Send,
    {
        let first = self.bucket_endpoint(bucket)?;
        // The SDK reports missing credentials as a request that was not sent, which would be retried.
        self.current_credentials(Some(bucket)).await?;
        let sent = send(first.sdk().clone()).await;
        if !self.has_moved(&first, &sent)? {
            return Ok(sent);
        }
        let second = self.bucket_endpoint(bucket)?;
        Ok(send(second.sdk().clone()).await)
    }

    /// Whether an answer names another region of the bucket, which is adopted.
    fn has_moved<T, E>(
        &self,
        used: &BucketEndpoint,
        sent: &Result<T, SdkError<E, HttpResponse>>,
    ) -> Result<bool> {
        let Err(error) = sent else {
            used.observe_answer(StatusCode::OK, None);
            return Ok(false);
        };
        let Some(answer) = error.raw_response() else {
            return Ok(false);
        };
        let header = answer.headers().get(BUCKET_REGION).map(str::to_owned);
        let document = answer.body().bytes().unwrap_or_default();
        let region = header.or_else(|| ErrorDocument::parse(document).region);
        let Ok(status) = StatusCode::from_u16(answer.status().as_u16()) else {
            return Ok(false);
        };
        used.observe_answer(status, region.as_deref());
        self.learn_region(used, status, region.as_deref())
    }

    /// Learns the region of a bucket by one request, unless it is known already.
    ///
    /// # Errors
    /// Without credentials; if a store does not answer whose hosts name regions. A refusal is no error: it names the region, too, or the requests that
    /// follow are refused as well.
    pub(crate) async fn locate(&self, bucket: &str) -> Result<()> {
        let used = self.bucket_endpoint(bucket)?;
        if self.is_located(&used) {
            return Ok(());
        }
        if !self.shared.endpoints.is_regional() {
            return self.ask_for_region(bucket).await;
        }
        let action = format!("find the region of the bucket {bucket} at {}", self.endpoint());
        let head = |sdk: aws_sdk_s3::Client| {
            let request = sdk.head_bucket().bucket(bucket);
            async move { request.send().await }
        };
        // The SDK's futures are deeply nested.
        match Box::pin(self.with_sdk_retries(bucket, &action, head)).await {
            Ok(_) => Ok(()),
            // The region is known if the refusal names it, or is about a bucket that does not exist.
            Err(error) if error.kind() == ErrorKind::Refused => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Asks a store whose hosts name no region, by a page of one key: not every such store names it in a header, and the answer to a HEAD has no
    /// document. Most accept any region, so that it is asked once, and goes without an answer.
    async fn ask_for_region(&self, bucket: &str) -> Result<()> {
        let page = |sdk: aws_sdk_s3::Client| {
            let request = sdk.list_objects_v2().bucket(bucket).max_keys(1);
            async move { request.send().await }
        };
        if let Err(error) = Box::pin(self.send_by_sdk(bucket, &page)).await? {
            tracing::debug!(
                bucket,
                error = root_cause(&error),
                "the store did not confirm the region"
            );
        }
        self.bucket_endpoint(bucket)?.confirm_region();
        Ok(())
    }

    /// The ETag of an object, if the store has one. Asked once, without retries.
    ///
    /// # Errors
    /// Without credentials; if the store does not answer, or refuses.
    pub(crate) async fn etag(&self, bucket: &str, key: &str) -> Result<Option<String>> {
        let head = |sdk: aws_sdk_s3::Client| {
            let request = sdk.head_object().bucket(bucket).key(key);
            async move { request.send().await }
        };
        let head = self.send_by_sdk(bucket, &head).await?;
        let action = || format!("read the ETag of s3://{bucket}/{key}");
        Ok(head.map_err(|error| sdk_error(&action(), &error))?.e_tag)
    }
}

/// Converts an error of the SDK, with the store's own code and message if it answered.
fn sdk_error<E: ProvideErrorMetadata + std::error::Error + 'static>(
    action: &str,
    error: &SdkError<E, HttpResponse>,
) -> Error {
    let kind = match error {
        SdkError::ServiceError(answer) => match StatusCode::from_u16(answer.raw().status().as_u16()) {
            Ok(status) if is_transient(status) => ErrorKind::Unavailable,
            _ => ErrorKind::Refused,
        },
        SdkError::ConstructionFailure(_) => ErrorKind::Refused,
        _ => ErrorKind::Unreachable,
    };
    let cause = match (error.code(), error.message()) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        _ => root_cause(error),
    };
    let text = match error.code().and_then(remedy) {
        Some(remedy) => format!("cannot {action}: {}; {remedy}", cause.trim_end_matches('.')),
        None => format!("cannot {action}: {cause}"),
    };
    Error::new(kind, text)
}

/// What to do about an error with this code, of which stores say little.
fn remedy(code: &str) -> Option<&'static str> {
    match code {
        "SignatureDoesNotMatch" => {
            Some("check the secret access key, and that no proxy before the endpoint changes `Host`")
        }
        "NoSuchBucket" | "NotFound" => Some("check the name of the bucket, and the endpoint"),
        _ => None,
    }
}

/// The pause that the store asks for.
fn retry_after<E>(error: &SdkError<E, HttpResponse>) -> Option<Duration> {
    parse_retry_after(error.raw_response()?.headers().get("retry-after")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_mistakes_have_a_remedy() {
        for code in ["SignatureDoesNotMatch", "NoSuchBucket", "NotFound"] {
            assert!(
                remedy(code).is_some_and(|text| text.starts_with("check the ")),
                "{code}"
            );
        }
        for code in ["SlowDown", "AccessDenied", "InternalError"] {
            assert_eq!(remedy(code), None, "{code}");
        }
    }
}
