//! All that the AWS SDK does: sources of settings and credentials, and the requests that are no GETs of objects: listings, uploads and the ETag
//! of an object. They are retried like any other request.

mod names;
mod pages;
mod settings;
mod upload;

use std::time::Duration;

use aws_config::{BehaviorVersion, Region};
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_sdk_s3::{
    config::{
        RequestChecksumCalculation, SharedHttpClient, http::HttpResponse, retry::RetryConfig,
        timeout::TimeoutConfig,
    },
    error::{ProvideErrorMetadata, SdkError},
};
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use http::StatusCode;
use pushdown_s3::{is_transient, parse_retry_after};

pub use self::upload::Upload;
pub(super) use self::{
    pages::BucketPages,
    settings::{RENEW_BEFORE, Sources},
};
use super::{Store, failure::FailedAttempt};
use crate::{
    error::{Error, ErrorKind, Result},
    transport::{Endpoint, Timeouts, root_cause},
};

/// A client for listings and uploads, in path style. It does not retry: retries follow the same policy as for all other requests.
pub(super) fn client(
    endpoint: &Endpoint,
    region: &str,
    provider: SharedCredentialsProvider,
    timeouts: Timeouts,
) -> aws_sdk_s3::Client {
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(timeouts.connect)
        .read_timeout(timeouts.first_byte)
        .build();
    let config = aws_sdk_s3::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .http_client(http())
        .region(Region::new(region.to_owned()))
        .endpoint_url(endpoint.to_string())
        .force_path_style(true)
        .credentials_provider(provider)
        .retry_config(RetryConfig::disabled())
        // The signature covers the body, and not every store knows checksums in trailers.
        .request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
        .timeout_config(timeouts)
        .build();
    aws_sdk_s3::Client::from_conf(config)
}

fn http() -> SharedHttpClient {
    aws_smithy_http_client::Builder::new()
        .tls_provider(Provider::Rustls(CryptoMode::Ring))
        .build_https()
}

impl Store {
    /// Sends a request of the SDK, with retries. `action` is what an error says that cannot be done.
    pub(super) async fn with_sdk_retries<T, E, F>(
        &self,
        action: &str,
        send: impl Fn() -> F + Sync,
    ) -> Result<T>
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
        F: Future<Output = Result<T, SdkError<E, HttpResponse>>> + Send,
    {
        let failed = |error: SdkError<E, HttpResponse>| FailedAttempt {
            error: sdk_error(action, &error),
            retry_after: retry_after(&error),
        };
        let mut attempt = || async { send().await.map_err(failed) };
        let sent = self.retries().complete(&mut attempt).await;
        sent.map_err(|failed| failed.error)
    }

    /// The ETag of an object, if the store has one. Asked once, without retries.
    ///
    /// # Errors
    /// If the store does not answer, or refuses.
    pub(crate) async fn etag(&self, bucket: &str, key: &str) -> Result<Option<String>> {
        let head = self.shared.sdk.head_object().bucket(bucket).key(key).send().await;
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
