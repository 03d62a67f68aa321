//! Settings of a reader.

mod applies;
mod build;
mod open;
mod samples;
mod settings;
mod shards;
mod share;
#[cfg(feature = "tables")]
mod table;

#[cfg(feature = "models")]
use std::path::PathBuf;
use std::{fmt, sync::Arc};

use arrow_array::LargeStringArray;
use pushdown::{BytesKind, Limits, Pipeline, wire::Split};

pub use self::settings::ReaderSpec;
#[cfg(feature = "tables")]
use crate::units::rows::Footers;
use crate::{
    epoch::{Rank, Worker, order::CheckedRank},
    error::{Error, Result},
    objects::{Objects, key_column},
    planning::Observations,
    retry::RetryPolicy,
    store::{Credentials, HiddenObjects, StoreBuilder},
    transport::Timeouts,
    units::objects::PushdownReader,
};

/// Settings of a [`PushdownReader`]. Required are the pipeline, and the objects or their bucket; everything else has a default.
#[derive(Debug, Clone)]
#[must_use]
pub struct PushdownReaderBuilder {
    spec: ReaderSpec,
    credentials: Option<Credentials>,
    bucket: Option<String>,
    keys: DataSetKeys,
    hidden: HiddenObjects,
    listing: Option<ListingCallback>,
    observations: Option<Box<Observations>>,
    #[cfg(feature = "tables")]
    footers: Option<Footers>,
    limits: Limits,
}

#[derive(Debug, Clone)]
enum DataSetKeys {
    Prefix(String),
    Keys(LargeStringArray),
    Objects(Objects),
}

/// Called while a prefix is listed.
#[derive(Clone)]
struct ListingCallback(Arc<dyn Fn(usize) + Send + Sync>);

impl fmt::Debug for ListingCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListingCallback").finish_non_exhaustive()
    }
}

impl Default for PushdownReaderBuilder {
    fn default() -> Self {
        Self {
            spec: ReaderSpec::default(),
            credentials: None,
            bucket: None,
            keys: DataSetKeys::Prefix(String::new()),
            hidden: HiddenObjects::LeftOut,
            listing: None,
            observations: None,
            #[cfg(feature = "tables")]
            footers: None,
            limits: Limits::default(),
        }
    }
}

impl From<ReaderSpec> for PushdownReaderBuilder {
    fn from(spec: ReaderSpec) -> Self {
        Self {
            spec,
            ..Self::default()
        }
    }
}

/// Setters that only store their argument.
macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident($argument:ident: $type:ty) => |$this:ident| $value:expr;)+) => {$(
        $(#[$doc])*
        pub fn $name(self, $argument: $type) -> Self {
            let mut $this = self;
            $value;
            $this
        }
    )+};
}

impl PushdownReader {
    /// Settings with their defaults.
    pub fn builder() -> PushdownReaderBuilder {
        PushdownReaderBuilder::default()
    }
}

impl PushdownReaderBuilder {
    setters! {
        /// Endpoint, credentials, timeouts and retries at once, instead of by the setters after this one.
        store(store: StoreBuilder) => |builder|
            (builder.spec.store, builder.credentials) = (store.spec, store.credentials);
        /// URL of the store, or of a gateway in its place. Default: as [`StoreBuilder::endpoint`].
        endpoint(url: impl Into<String>) => |builder| builder.spec.store.endpoint = Some(url.into());
        /// URL of the gateway that runs steps for samples that are signed for the store. Default: as [`StoreBuilder::gateway`].
        gateway(url: impl Into<String>) => |builder| builder.spec.store.gateway = Some(url.into());
        /// Region to sign for. Default: the environment's, the profile's, then `us-east-1`.
        region(region: impl Into<String>) => |builder| builder.spec.store.region = Some(region.into());
        /// Profile of the AWS configuration files. Default: `AWS_PROFILE`, then `default`.
        profile(profile: impl Into<String>) => |builder| builder.spec.store.profile = Some(profile.into());
        /// Explicit credentials. Default: the usual AWS chain.
        credentials(credentials: Credentials) => |builder| builder.credentials = Some(credentials);
        /// Timeouts of every request.
        timeouts(timeouts: Timeouts) => |builder| builder.spec.store.timeouts = timeouts;
        /// When to retry.
        retry(retry: RetryPolicy) => |builder| builder.spec.store.retry = retry;
        /// Cache folder for the weights of models. Default: `pushdown/models` in the user's cache.
        #[cfg(feature = "models")]
        model_cache(folder: impl Into<PathBuf>) => |builder| builder.spec.store.model_cache = Some(folder.into());
        /// Bucket of all samples. Default: that of [`objects`](Self::objects).
        bucket(bucket: impl Into<String>) => |builder| builder.bucket = Some(bucket.into());
        /// All objects under this prefix are the data set, in the order of their keys, but for
        /// [hidden ones](Self::include_hidden). Default: the whole bucket.
        prefix(prefix: impl Into<String>) => |builder| builder.keys = DataSetKeys::Prefix(prefix.into());
        /// Whether the listing of a [`prefix`](Self::prefix) has [hidden objects](HiddenObjects), such as `.DS_Store` and the empty
        /// objects that stand for folders. Default: no; a warning in the log counts them.
        include_hidden(include: bool) => |builder|
            builder.hidden = if include { HiddenObjects::Listed } else { HiddenObjects::LeftOut };
        /// These objects are the data set, in this order, without a listing.
        keys(keys: impl IntoIterator<Item: AsRef<str>>) => |builder|
            builder.keys = DataSetKeys::Keys(key_column(keys));
        /// These objects are the data set, in this order, with their known sizes and ETags, without a listing: those of an earlier
        /// [`list_objects`](crate::store::Store::list_objects), a [loaded](Objects::load) list, or some of them.
        objects(objects: Objects) => |builder| builder.keys = DataSetKeys::Objects(objects);
        /// In [`Mode::Auto`](crate::reader::Mode::Auto): what the planner of an earlier reader
        /// [observed](crate::reader::ReaderMonitor::observations), so that reading begins with its plan. Without effect if the pipeline or the
        /// number of threads is another, and for rows if the world size is. Default: none.
        observations(known: Observations) => |builder| builder.observations = Some(Box::new(known));
        /// The rank of this reader among those that share the data set. Default: 0 of 1.
        rank(rank: Rank) => |builder| (builder.spec.rank, builder.spec.world) = (rank.index, rank.world);
        /// The worker that this reader is among those that share the batches of a rank: worker w of k reads the batches w, w + k,
        /// and so on. Default: 0 of 1.
        worker(worker: Worker) => |builder|
            (builder.spec.worker, builder.spec.workers) = (worker.index, worker.count);
        /// Number of the first batch, to resume: earlier batches are not read. Default: 0.
        start_at(batch: usize) => |builder| builder.spec.start_batch = batch;
        /// Called after each page of the listing of [`prefix`](Self::prefix), with the number of objects so far. Default:
        /// none.
        on_listing(progress: impl Fn(usize) + Send + Sync + 'static) => |builder|
            builder.listing = Some(ListingCallback(Arc::new(progress)));
        /// Limits on a sample's values.
        limits(limits: Limits) => |builder| builder.limits = limits;
    }

    /// The settings without the data set and explicit credentials. `PushdownReaderBuilder::from(spec)` is their inverse.
    pub const fn spec(&self) -> &ReaderSpec {
        &self.spec
    }

    /// Checks everything but models before the endpoint is contacted.
    fn check(&self) -> Result<CheckedRank> {
        let text = self
            .spec
            .pipeline
            .as_deref()
            .ok_or_else(|| Error::config("no pipeline is set"))?;
        match Pipeline::parse(text) {
            Err(error) if error.kind() == pushdown::ErrorKind::ModelRuntime => {}
            parsed => check_pipeline(&parsed?, self.spec.split, self.spec.seed, self.spec.epoch)?,
        }
        for (name, value) in [
            ("batch size", self.spec.batch_size),
            ("number of workers", self.spec.workers),
            ("number of requests", self.spec.requests),
            ("number of gets", self.spec.gets),
        ] {
            if value == 0 {
                return Err(Error::config(format!("the {name} is 0, expected at least 1")));
            }
        }
        let (worker, workers) = (self.spec.worker, self.spec.workers);
        if worker >= workers {
            return Err(Error::config(format!(
                "invalid worker: expected a number below {workers}, found {worker}"
            )));
        }
        if !(self.spec.max_expand.is_finite() && self.spec.max_expand >= 0.0) {
            return Err(Error::config(format!(
                "invalid max_expand: expected a number of at least 0, found {}",
                self.spec.max_expand
            )));
        }
        let (rank, world) = (self.spec.rank, self.spec.world);
        let checked = CheckedRank::new(rank, world).ok_or_else(|| {
            Error::config(format!(
                "invalid rank: expected a number below {world}, found {rank}"
            ))
        })?;
        if u32::try_from(world.saturating_mul(self.spec.batch_size)).is_err() {
            return Err(Error::config(format!(
                "invalid batch size: expected at most {} samples over all ranks, found {world} ranks of {}",
                u32::MAX,
                self.spec.batch_size
            )));
        }
        Ok(checked)
    }
}

fn check_pipeline(pipeline: &Pipeline, split: Split, seed: Option<u64>, epoch: u32) -> Result<()> {
    if let Err(error) = pipeline.stage_of(split, &BytesKind::default()) {
        return Err(Error::config(error.to_string()));
    }
    Ok(pipeline.check_randomness(pipeline.len(), seed, Some(epoch))?)
}

#[cfg(test)]
mod tests;
