//! A store and its gateway: [`Store`], its credentials, and what single requests return.
//!
//! # Two addresses
//! A store has an endpoint, and its gateway may have another address: [`StoreBuilder::gateway`]. Lists, plain reads and uploads go to the store;
//! batches, single values and tables with a pipeline go to the gateway, signed for the store, from which the gateway fetches exactly that.
//! Without such an address the endpoint itself may be a gateway, which forwards what it does not compute.
//!
//! A gateway beside the store is probed when a request to it fails, or when it is silent for long. While it does not answer, readers in
//! [`Mode::Auto`](crate::reader::Mode::Auto) and tables read from the store plainly; single values, and readers in
//! [`Mode::Pushdown`](crate::reader::Mode::Pushdown), need it.
//!
//! # Replicas
//! A gateway may consist of several replicas: all addresses of its name, looked up every 10 s and after a failed connect, and of further URLs.
//! A reader places samples on them by rendezvous hashing of bucket and key, so that each result cache has its part of the objects. A replica
//! that is lost, drains or computes other values is replaced by the others.
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
mod bucket_endpoints;
mod conditional;
mod credentials;
mod failure;
mod gateway;
mod get;
mod inventory;
mod list;
mod multi_object;
mod object_get;
mod object_stream;
mod part;
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
use std::path::Path;
use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use aws_credential_types::provider::ProvideCredentials;
use http::StatusCode;
use pushdown::wire::StoreEndpoint;

pub use crate::{
    objects::{MemberRef, Object, Objects},
    retry::RetryPolicy,
    transport::Timeouts,
};
pub use aws::Upload;
pub(crate) use batch::BatchAnswer;
pub use bucket_endpoints::AddressingStyle;
pub(crate) use bucket_endpoints::BucketEndpoint;
pub use conditional::{ConditionalAnswer, ConditionalGet, Signature};
pub(crate) use failure::{Failure, NamedFailure, object_too_large};
pub use gateway::ReplicaReport;
pub(crate) use gateway::{
    GatewayHealth, GatewayRoute, GatewayState, InFlightSamples, Replica, ReplicaList, ReplicaVersion,
};
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

use self::{bucket_endpoints::BucketEndpoints, credentials::RenewedCredentials, gateway::Gateway};
use crate::{
    error::{Error, ErrorKind, Result},
    outage_log::Outages,
    retry::{ClientEnvironment, Retries},
    sign::{Presigner, Validity},
    stats::{Counters, Traffic},
    transport::{DnsResolver, Endpoint, Transport},
};

/// How much earlier the clock of a store may see the end of a signature.
const CLOCK_DIFFERENCE: Duration = Duration::from_secs(5);

/// A store with credentials, and its gateway if there is one. Clones share connections.
#[derive(Debug, Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    transport: Transport,
    endpoints: BucketEndpoints,
    /// The gateway, or the configured endpoint, which may be one. `None` for the endpoints of AWS, and for virtual hosts.
    gateway: Option<Gateway>,
    credentials: Arc<RenewedCredentials>,
    /// Cache folder for the weights of models, if any.
    #[cfg(feature = "models")]
    model_cache: Option<PathBuf>,
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
    /// `ignore_configured_endpoint_urls` of the profile. Then those of AWS: of the region, and as `AWS_USE_FIPS_ENDPOINT` and
    /// `AWS_USE_DUALSTACK_ENDPOINT` say.
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.spec.endpoint = Some(url.into());
        self
    }

    /// URL of the gateway that runs steps for samples that are signed for the store: [two addresses](crate::store#two-addresses). Several URLs,
    /// separated by commas, are [replicas](crate::store#replicas), and so are all addresses of a name. Default: `PUSHDOWN_GATEWAY_URL`; without
    /// one the endpoint, which may be a gateway. An empty URL means no gateway, even if the environment has one.
    pub fn gateway(mut self, url: impl Into<String>) -> Self {
        self.spec.gateway = Some(url.into());
        self
    }

    /// A file like `/etc/hosts`, with addresses of gateways and stores that no name server has. It is read at each look-up; names that it lacks
    /// are looked up by the system. Default: `PUSHDOWN_HOSTS_FILE`, or none.
    pub fn hosts_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.spec.hosts_file = Some(path.into());
        self
    }

    /// How requests name their bucket. Default: `addressing_style` in the profile's section `s3`, then [`AddressingStyle::Auto`]; at a
    /// configured endpoint without a [`gateway`](Self::gateway) beside it, which may be a gateway itself, the latter at once. Buckets with dots
    /// are always named in the path.
    pub fn addressing_style(mut self, style: AddressingStyle) -> Self {
        self.spec.addressing_style = Some(style);
        self
    }

    /// Region to sign for. Default: `AWS_REGION`, the profile's, then `us-east-1`. If the store's answers name another one of a bucket, that is
    /// signed for.
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
    /// [`ErrorKind::Config`] if a setting is invalid; [`ErrorKind::Credentials`] if there is no source of credentials.
    pub async fn build(self) -> Result<Store> {
        let stated_gateway = stated_gateway(self.spec.gateway.clone())?;
        let resolver = DnsResolver::with_hosts_file(hosts_file(self.spec.hosts_file.clone()));
        let sources = aws::Sources::load(&self, &stated_gateway).await?;
        let provider = sources.provider.ok_or_else(|| {
            Error::new(
                ErrorKind::Credentials,
                "no credentials are set: set an access key and its secret",
            )
        })?;
        let credentials = Arc::new(RenewedCredentials::new(provider));
        let provider: Arc<dyn ProvideCredentials> = Arc::<RenewedCredentials>::clone(&credentials);
        let clients = aws::SdkClients::new(provider.into(), self.spec.timeouts, resolver.clone());
        let endpoints = BucketEndpoints::new(
            sources.endpoint,
            sources.style,
            sources.region,
            sources.aws,
            clients,
        )?;
        let address = gateway_address(stated_gateway, &endpoints);
        let url = endpoints.url();
        let (outages, has_tls) = match &address {
            Some(GatewayAddress::BesideStore(gateway)) => {
                let urls: Vec<String> = gateway.iter().map(Endpoint::to_string).collect();
                let outages = Outages::new(format!("{url}, or the gateway {},", urls.join(",")));
                (outages, gateway.iter().any(Endpoint::is_tls))
            }
            Some(GatewayAddress::InPlaceOfStore(_)) | None => (Outages::new(url.to_owned()), false),
        };
        let has_tls = has_tls || endpoints.has_tls();
        let transport = Transport::new(has_tls, self.spec.timeouts, resolver)?;
        let gateway = address.map(|address| match address {
            GatewayAddress::InPlaceOfStore(endpoint) => Gateway::in_place_of_store(endpoint, &transport),
            GatewayAddress::BesideStore(endpoints) => Gateway::beside_store(endpoints, &transport),
        });
        Ok(Store {
            shared: Arc::new(Shared {
                outages,
                transport,
                gateway,
                endpoints,
                credentials,
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

    /// URL of the store endpoint, without a bucket.
    pub fn endpoint(&self) -> String {
        self.shared.endpoints.url().to_owned()
    }

    /// Where the requests for a bucket go, as far as it is known.
    pub(crate) fn bucket_endpoint(&self, bucket: &str) -> Result<Arc<BucketEndpoint>> {
        self.shared.endpoints.bucket(bucket)
    }

    /// Whether requests for a bucket need not wait until its region is known: it is certain, or the host names none, so that each request learns
    /// another one from its own answer. Samples that a gateway fetches cannot, since the errors of rows name no region.
    fn is_located(&self, bucket: &BucketEndpoint) -> bool {
        let is_beside = |gateway: &Gateway| !gateway.is_store();
        let has_gateway = self.shared.gateway.as_ref().is_some_and(is_beside);
        bucket.has_confirmed_region() || !has_gateway && self.shared.endpoints.is_confirmed(bucket)
    }

    /// Adopts the region of the bucket of `used` that an answer with this status to a request there names, if it names one. Returns whether
    /// another request may succeed. At a host that names no region, only a refusal of the signature is about the region: there is no other place.
    fn learn_region(&self, used: &BucketEndpoint, status: StatusCode, region: Option<&str>) -> Result<bool> {
        let endpoints = &self.shared.endpoints;
        let is_about_region = endpoints.is_regional() || status == StatusCode::BAD_REQUEST;
        match region.filter(|_| is_about_region) {
            Some(region) => endpoints.learn_region(used.name(), used, region),
            None => Ok(false),
        }
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
        self.gateway_retries(None, None)
    }

    /// The retry budget of a request of a reader, which counts its retries.
    pub(crate) fn counted_retries<'a>(&self, counters: &'a Counters) -> Retries<'a> {
        self.gateway_retries(Some(counters), None)
    }

    /// The same of a request to a replica of the gateway. Its pauses end once the replica does, if it is `replaceable`.
    pub(crate) fn gateway_retries<'a>(
        &self,
        counters: Option<&'a Counters>,
        replaceable: Option<&GatewayHealth>,
    ) -> Retries<'a> {
        let environment = ClientEnvironment {
            outages: Arc::clone(&self.shared.outages),
            counters,
            serves: replaceable.map(GatewayHealth::serving),
        };
        Retries::new(self.shared.retry, environment)
    }

    /// A presigner for GETs of a bucket's objects, with the current credentials and time.
    pub(crate) async fn presigner(&self, bucket: &BucketEndpoint) -> Result<Presigner> {
        self.presigner_at(bucket, SystemTime::now()).await
    }

    /// The same at another time.
    async fn presigner_at(&self, bucket: &BucketEndpoint, time: SystemTime) -> Result<Presigner> {
        let credentials = self.current_credentials(Some(bucket.name())).await?;
        Presigner::new(&credentials, bucket.region(), bucket.endpoint().host(), time)
    }

    /// Whether a request may succeed with a new signature, after one with this `validity` was answered by this error code. Forgets credentials
    /// that have ended, if they can be renewed.
    pub(crate) fn may_sign_again(&self, validity: &Validity, code: &str) -> bool {
        match code {
            "ExpiredToken" | "TokenRefreshRequired" => self.shared.credentials.forget(&validity.access_key),
            // Stores do not distinguish a signature that has ended.
            "AccessDenied" | "InvalidToken" => has_ended(validity),
            _ => false,
        }
    }

    /// A presigner for GETs of the gateway's own routes, with the current credentials and time. `None` for a gateway beside the store, which
    /// does not verify signatures for itself.
    #[cfg(feature = "models")]
    pub(crate) async fn gateway_presigner(&self) -> Result<Option<Presigner>> {
        let gateway = self.gateway()?;
        if !gateway.is_store() {
            return Ok(None);
        }
        let credentials = self.current_credentials(None).await?;
        let (region, host) = (self.shared.endpoints.region(), gateway.endpoint().host());
        Presigner::new(&credentials, region, host, SystemTime::now()).map(Some)
    }

    /// A presigner for GETs of a bucket's objects through the gateway, and the store that they are for if they have to state it.
    async fn stated_presigner(&self, bucket: &BucketEndpoint) -> Result<(Presigner, Option<StoreEndpoint>)> {
        if self.gateway()?.is_store() {
            return Ok((self.presigner(bucket).await?, None));
        }
        let stated = bucket.stated()?;
        let credentials = self.current_credentials(Some(bucket.name())).await?;
        // The gateway makes the Host header from the URL.
        let host = stated.url().authority();
        let presigner = Presigner::new(&credentials, bucket.region(), &host, SystemTime::now())?;
        Ok((presigner, Some(stated)))
    }

    /// The credentials, renewed if they end soon. An error names the bucket that they are for, if they are for one.
    async fn current_credentials(&self, bucket: Option<&str>) -> Result<aws_credential_types::Credentials> {
        self.shared.credentials.current().await.map_err(|error| {
            let bucket = bucket.map_or_else(String::new, |bucket| format!(" for s3://{bucket}"));
            let text = format!(
                "no credentials found{bucket}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile; buckets cannot be read without \
                 credentials, public ones included"
            );
            Error::new(ErrorKind::Credentials, text).with_source(error)
        })
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

/// Whether signatures with this validity have ended by the clock of the store.
fn has_ended(validity: &Validity) -> bool {
    SystemTime::now() + CLOCK_DIFFERENCE >= validity.end
}

/// The variable with the URL of the gateway.
const GATEWAY_VARIABLE: &str = "PUSHDOWN_GATEWAY_URL";

/// The variable with the path of the hosts file.
const HOSTS_FILE_VARIABLE: &str = "PUSHDOWN_HOSTS_FILE";

/// Where a gateway is.
enum GatewayAddress {
    /// At the endpoint of the store, which may be one.
    InPlaceOfStore(Endpoint),
    /// Never without an endpoint.
    BesideStore(Vec<Endpoint>),
}

/// The gateways at these URLs, or else at those of the environment. An empty text means no gateway, even if the environment has one.
fn stated_gateway(urls: Option<String>) -> Result<Vec<Endpoint>> {
    let of_environment = || std::env::var(GATEWAY_VARIABLE).ok();
    let urls = urls.or_else(of_environment).unwrap_or_default();
    let urls = urls.split(',').map(str::trim).filter(|url| !url.is_empty());
    let mut endpoints: Vec<Endpoint> = Vec::new();
    for url in urls {
        let endpoint = Endpoint::parse("gateway", url)?;
        if !endpoints.iter().any(|known| known.is_same_address(&endpoint)) {
            endpoints.push(endpoint);
        }
    }
    Ok(endpoints)
}

/// The file with addresses of names, or else that of the environment.
fn hosts_file(path: Option<PathBuf>) -> Option<PathBuf> {
    let of_environment = || std::env::var_os(HOSTS_FILE_VARIABLE).map(PathBuf::from);
    path.or_else(of_environment)
        .filter(|path| !path.as_os_str().is_empty())
}

/// Where the stated gateways are, or else the configured endpoint, which may be one.
fn gateway_address(stated: Vec<Endpoint>, endpoints: &BucketEndpoints) -> Option<GatewayAddress> {
    let in_place = endpoints.configured().filter(|_| endpoints.is_path_style());
    let is_store = |gateway: &Endpoint| in_place.is_some_and(|store| store.is_same_address(gateway));
    match stated.as_slice() {
        [] => in_place.cloned().map(GatewayAddress::InPlaceOfStore),
        [gateway] if is_store(gateway) => in_place.cloned().map(GatewayAddress::InPlaceOfStore),
        _ => Some(GatewayAddress::BesideStore(stated)),
    }
}

/// Default folder of weights: `pushdown/models` in the user's cache.
#[cfg(feature = "models")]
fn default_model_cache() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    Some(cache.join("pushdown/models"))
}

#[cfg(test)]
mod tests;
