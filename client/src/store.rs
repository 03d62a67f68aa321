//! One S3 endpoint, a gateway or a plain store: [`Store`], its credentials, and what single requests return.
//!
//! ```no_run
//! use pushdown_client::store::{Store, ValueRequest};
//!
//! # async fn read() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Store::builder()
//!     .endpoint("http://127.0.0.1:9900")
//!     .build()
//!     .await?;
//! let photos = store.list_objects("photos", "train/").await?;
//! let pipeline = pushdown::Pipeline::parse("decode | resize(64, 64)")?;
//! let request = ValueRequest {
//!     pipeline: &pipeline,
//!     split: pushdown::wire::Split::Full,
//!     seed: None,
//!     epoch: None,
//!     accept: Some("image/png"),
//! };
//! let value = store
//!     .get_value("photos", photos.key(0), &request, &pushdown::Limits::default())
//!     .await?;
//! println!("{} bytes of {}", value.body.len(), value.content_type);
//! # Ok(())
//! # }
//! ```

mod aws;
mod batch;
mod conditional;
mod failure;
mod get;
mod list;
mod multi_object;
mod object_get;
mod object_stream;
mod placement;
mod profile;
mod rows;
mod shard;
mod shard_index;
mod spec;
mod table;
mod value;
mod versioned_object;

#[cfg(feature = "models")]
use std::path::{Path, PathBuf};
use std::{sync::Arc, time::SystemTime};

use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use pushdown_exec::sync::Mutex;

pub use crate::{
    objects::{MemberRef, Object, Objects},
    retry::RetryPolicy,
    transport::Timeouts,
};
pub use aws::Upload;
pub use conditional::{ConditionalAnswer, ConditionalGet, Signature};
pub(crate) use failure::{Failure, NamedFailure, object_too_large};
pub use list::HiddenObjects;
pub use multi_object::{StoredTables, TablesScan};
use placement::Placement;
pub use profile::{Profile, SampleProfile};
pub(crate) use profile::{ProfileRequest, refined};
pub use rows::TableRows;
pub(crate) use shard::{FoundEntry, ShardBody};
pub use shard_index::IndexProgress;
pub use spec::StoreSpec;
#[cfg(feature = "tables")]
pub(crate) use table::RangePart;
pub use table::StoredTable;
pub use value::{Value, ValueRequest, ValueStream};
#[cfg(feature = "tables")]
pub(crate) use versioned_object::ObjectEnd;

use crate::{
    error::{Error, ErrorKind, Result},
    outage_log::Outages,
    retry::{ClientEnvironment, Retries},
    sign::Presigner,
    stats::{Counters, Traffic},
    transport::{Endpoint, Transport},
};

/// An S3 endpoint (a gateway or a plain store, path style) with credentials. Clones share connections.
#[derive(Debug, Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    transport: Transport,
    /// For what is no GET: listings and uploads.
    sdk: aws_sdk_s3::Client,
    region: String,
    provider: SharedCredentialsProvider,
    /// Cache folder for the weights of models, if any.
    #[cfg(feature = "models")]
    model_cache: Option<PathBuf>,
    /// The last credentials: not every provider caches its own.
    credentials: Mutex<Option<aws_credential_types::Credentials>>,
    retry: RetryPolicy,
    outages: Arc<Outages>,
}

/// Settings of a [`Store`]. Missing settings are taken from the same sources as by the AWS tools: environment, profile and
/// the rest of the usual chain.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct StoreBuilder {
    pub(crate) spec: StoreSpec,
    pub(crate) credentials: Option<Credentials>,
}

/// An access key and its secret.
#[derive(Clone)]
pub struct Credentials {
    access_key: String,
    secret_key: String,
    session_token: Option<String>,
}

impl From<StoreSpec> for StoreBuilder {
    fn from(spec: StoreSpec) -> Self {
        Self {
            spec,
            credentials: None,
        }
    }
}

impl StoreBuilder {
    /// URL of the endpoint. Default, as for the AWS tools: `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`, `endpoint_url` of `s3` in the profile's
    /// `services` section, `endpoint_url` of the profile; none of them if `AWS_IGNORE_CONFIGURED_ENDPOINT_URLS` is `true`, or
    /// `ignore_configured_endpoint_urls` of the profile.
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.spec.endpoint = Some(url.into());
        self
    }

    /// Region to sign for. Default: `AWS_REGION`, the profile's, then `us-east-1`.
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.spec.region = Some(region.into());
        self
    }

    /// Profile of the AWS configuration files. Default: `AWS_PROFILE`, then `default`.
    pub fn profile(mut self, profile: impl Into<String>) -> Self {
        self.spec.profile = Some(profile.into());
        self
    }

    /// Explicit credentials, instead of the usual chain.
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.credentials = Some(credentials);
        self
    }

    /// Timeouts of every request.
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.spec.timeouts = timeouts;
        self
    }

    /// When to retry.
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.spec.retry = retry;
        self
    }

    /// Cache folder for the weights of models. Default: `pushdown/models` in the user's cache.
    #[cfg(feature = "models")]
    pub fn model_cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.spec.model_cache = Some(folder.into());
        self
    }

    /// Resolves the settings, without network I/O.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if no endpoint is found, or a setting is invalid.
    pub async fn build(self) -> Result<Store> {
        let sources = aws::Sources::load(&self).await;
        let endpoint = sources.endpoint.ok_or_else(|| {
            Error::config(
                "no endpoint is set: set the gateway's URL, AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or `endpoint_url` in the profile",
            )
        })?;
        let endpoint = Endpoint::parse(&endpoint)?;
        let provider = sources.provider.ok_or_else(|| {
            Error::new(
                ErrorKind::Credentials,
                "no credentials are set: set an access key and its secret",
            )
        })?;
        let sdk = aws::client(&endpoint, &sources.region, provider.clone(), self.spec.timeouts);
        Ok(Store {
            shared: Arc::new(Shared {
                outages: Outages::new(endpoint.to_string()),
                transport: Transport::new(endpoint, self.spec.timeouts)?,
                sdk,
                region: sources.region,
                provider,
                credentials: Mutex::default(),
                retry: self.spec.retry,
                #[cfg(feature = "models")]
                model_cache: self.spec.model_cache.or_else(default_model_cache),
            }),
        })
    }
}

impl Store {
    /// Settings with their defaults.
    pub fn builder() -> StoreBuilder {
        StoreBuilder::default()
    }

    /// URL of the endpoint.
    pub fn endpoint(&self) -> String {
        self.shared.transport.endpoint().to_string()
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.shared.transport
    }

    pub(crate) fn traffic(&self) -> &Arc<Traffic> {
        self.shared.transport.traffic()
    }

    #[cfg(feature = "models")]
    pub(crate) fn model_cache(&self) -> Option<&Path> {
        self.shared.model_cache.as_deref()
    }

    /// The retry budget of a request.
    pub(crate) fn retries(&self) -> Retries<'static> {
        self.retries_in(None)
    }

    /// The retry budget of a request of a reader, which counts its retries.
    pub(crate) fn counted_retries<'a>(&self, counters: &'a Counters) -> Retries<'a> {
        self.retries_in(Some(counters))
    }

    fn retries_in<'a>(&self, counters: Option<&'a Counters>) -> Retries<'a> {
        let outages = Arc::clone(&self.shared.outages);
        Retries::new(self.shared.retry, ClientEnvironment { outages, counters })
    }

    /// A presigner with the current credentials and time.
    pub(crate) async fn presigner(&self) -> Result<Presigner> {
        self.presigner_at(SystemTime::now()).await
    }

    /// A presigner with the current credentials and the given time.
    async fn presigner_at(&self, time: SystemTime) -> Result<Presigner> {
        let credentials = self.current_credentials().await?;
        Presigner::new(
            &credentials,
            &self.shared.region,
            self.shared.transport.endpoint().host(),
            time,
        )
    }

    /// The credentials, renewed if they end soon.
    async fn current_credentials(&self) -> Result<aws_credential_types::Credentials> {
        let now = SystemTime::now();
        let known = self.shared.credentials.lock().clone();
        let fresh = |credentials: &aws_credential_types::Credentials| {
            credentials
                .expiry()
                .is_none_or(|expiry| expiry > now + aws::RENEW_BEFORE)
        };
        if let Some(credentials) = known.filter(fresh) {
            return Ok(credentials);
        }
        let found = self
            .shared
            .provider
            .provide_credentials()
            .await
            .map_err(|error| {
                let text =
                    "no credentials found: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile";
                Error::new(ErrorKind::Credentials, text).with_source(error)
            })?;
        Ok(self.shared.credentials.lock().insert(found).clone())
    }
}

impl Credentials {
    /// A long-lived access key.
    pub fn new(access_key: impl Into<String>, secret_key: impl Into<String>) -> Self {
        Self {
            access_key: access_key.into(),
            secret_key: secret_key.into(),
            session_token: None,
        }
    }

    /// The same, with a session token.
    #[must_use]
    pub fn with_session_token(mut self, token: impl Into<String>) -> Self {
        self.session_token = Some(token.into());
        self
    }
}

/// Without the secrets.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("access_key", &self.access_key)
            .finish_non_exhaustive()
    }
}

/// Default folder of weights: `pushdown/models` in the user's cache.
#[cfg(feature = "models")]
fn default_model_cache() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    Some(cache.join("pushdown/models"))
}
