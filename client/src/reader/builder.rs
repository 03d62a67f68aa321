//! Settings of a reader.

mod build;
mod open;
mod samples;
mod shards;
#[cfg(feature = "tables")]
mod table;

use std::{
    fmt,
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
    sync::Arc,
};

use arrow_array::LargeStringArray;
use pushdown::{
    BytesKind, Limits, Pipeline,
    wire::{Compression, Split},
};

use super::{PushdownReader, Rank, ReaderSpec, State, Worker};
#[cfg(feature = "tables")]
use crate::table::{RowObservations, RowsRead};
use crate::{
    error::{Error, Result},
    objects::{Objects, key_column},
    order::{SampleOrder, Shard, Tail},
    planning::Observations,
    retry::RetryPolicy,
    session::{Mode, OnError},
    shard_reader::ShardsRead,
    shards::ColumnSelection,
    store::{Credentials, HiddenObjects, StoreBuilder},
    transport::Timeouts,
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
    row_observations: Option<RowObservations>,
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
            row_observations: None,
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

impl PushdownReaderBuilder {
    setters! {
        /// Endpoint, credentials, timeouts and retries at once, instead of by the setters after this one.
        store(store: StoreBuilder) => |builder|
            (builder.spec.store, builder.credentials) = (store.spec, store.credentials);
        /// URL of the gateway, or in plain mode of any store. Default: as [`StoreBuilder::endpoint`].
        endpoint(url: impl Into<String>) => |builder| builder.spec.store.endpoint = Some(url.into());
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
        /// [`list_objects`](crate::Store::list_objects), a [loaded](Objects::load) list, or some of them.
        objects(objects: Objects) => |builder| builder.keys = DataSetKeys::Objects(objects);
        /// The pipeline for every sample, as text or as a JSON array.
        pipeline(pipeline: impl Into<String>) => |builder| builder.spec.pipeline = Some(pipeline.into());
        /// The stage at which the gateway stops and this host continues. Default: where a sample has the fewest bytes.
        split(split: Split) => |builder| builder.spec.split = split;
        /// Compression of values in transit. Default: none. Features after a rectifier are half zeros and shrink; photos do
        /// not.
        compression(compression: Compression) => |builder| builder.spec.compression = compression;
        /// Where the steps run. Default: pushdown.
        mode(mode: Mode) => |builder| builder.spec.mode = mode;
        /// In [`Mode::Auto`]: the most bytes of a value, as a multiple of its object's bytes. Default: 1, so that no sample
        /// uses more of the link than a plain read.
        max_expand(factor: f64) => |builder| builder.spec.max_expand = factor;
        /// In [`Mode::Auto`]: what the planner of an earlier reader [observed](crate::ReaderMonitor::observations), so that reading begins
        /// with its plan. Without effect if the pipeline or the number of threads is another. Default: none.
        observations(known: Observations) => |builder| builder.observations = Some(Box::new(known));
        /// How to treat a sample that cannot be delivered. Default: end the stream.
        on_error(on_error: OnError) => |builder| builder.spec.on_error = on_error;
        /// Samples in a batch. Default: 64.
        batch_size(samples: usize) => |builder| builder.spec.batch_size = samples;
        /// Seed of the epoch's order and of random steps without their own seed. Default: none, so samples are in the
        /// order of the data set.
        seed(seed: u64) => |builder| builder.spec.seed = Some(seed);
        /// Whether the seed also shuffles the samples. Default: yes.
        shuffle(shuffle: bool) => |builder| builder.spec.shuffle = shuffle;
        /// How the seed shuffles the samples. Default: [`SampleOrder::Global`].
        order(order: SampleOrder) => |builder| builder.spec.order = order;
        /// Epoch, from 0: determines the order and the draws of random steps.
        epoch(epoch: u32) => |builder| builder.spec.epoch = epoch;
        /// Epochs that will be read, from [`epoch`](Self::epoch) on. In [`Mode::Auto`] the plan minimises the time of all of them:
        /// the first one may take longer than plain reading if the later ones find its values in the result cache of the gateway,
        /// or need no download of weights. The gateway takes it as a hint which values are worth caching. Reading fewer or more
        /// epochs is no error. Default: 1, so that no epoch is slower than plain reading.
        epochs(epochs: NonZeroU32) => |builder| builder.spec.epochs = epochs;
        /// The rank of this reader among those that share the data set. Default: 0 of 1.
        rank(rank: Rank) => |builder| (builder.spec.rank, builder.spec.world) = (rank.index, rank.world);
        /// Position of the first sample in the order of the epoch over all ranks, to resume: earlier ones are not read. It is
        /// the same on every rank. The samples from there on are dealt out to this reader's world, whatever world, batch size and
        /// number of workers read the earlier ones; batches are numbered from 0. After k batches of b samples on w ranks, the
        /// next position is `k * b * w` beyond the start. [`set_epoch`](PushdownReader::set_epoch) starts from 0 again.
        /// Default: 0.
        start_position(position: usize) => |builder| builder.spec.start_position = position;
        /// What earlier worlds have read of the rows of this epoch, to resume a reader of rows: one entry for each change of
        /// world, the same list on every rank. What is left is dealt out to this reader's world as contiguous stretches; batches
        /// are numbered from 0. [`TableReader::rows_read_after`](crate::TableReader::rows_read_after) returns the list. In the
        /// same world, each rank continues its stretch. [`set_epoch`](crate::TableReader::set_epoch) starts with all rows again.
        /// At most 1000 entries. Default: none.
        #[cfg(feature = "tables")]
        rows_read(entries: Vec<RowsRead>) => |builder| builder.spec.rows_read = entries;
        /// Which members of a group are the columns of a sample, for a [reader of shards](Self::build_shards); an index has its own. Default:
        /// the first image, and no further columns.
        columns(selection: ColumnSelection) => |builder| builder.spec.columns = selection;
        /// What readers have read of the shards of this epoch, to resume a [reader of shards](Self::build_shards): in the same world the
        /// state of this reader, in another one the states of all readers of the earlier world.
        /// [`ShardReader::shards_read`](crate::ShardReader::shards_read) returns a state.
        /// [`set_epoch`](crate::ShardReader::set_epoch) starts with all samples again. Default: none.
        shards_read(states: Vec<ShardsRead>) => |builder| builder.spec.shards_read = states;
        /// How an epoch ends if its samples do not divide evenly among ranks and batches. Default: [`Tail::Short`].
        tail(tail: Tail) => |builder| builder.spec.tail = tail;
        /// The worker that this reader is among those that share the batches of a rank: worker w of k reads the batches w, w + k,
        /// and so on. Default: 0 of 1.
        worker(worker: Worker) => |builder|
            (builder.spec.worker, builder.spec.workers) = (worker.index, worker.count);
        /// Number of the first batch, to resume: earlier batches are not read. Default: 0.
        start_at(batch: usize) => |builder| builder.spec.start_batch = batch;
        /// The most samples (or rows, of a table reader) of this rank in an epoch: the first ones in its order. The last
        /// batch may be short. Default: all.
        limit(samples: usize) => |builder| builder.spec.limit = Some(samples);
        /// Called after each page of the listing of [`prefix`](Self::prefix), with the number of objects so far. Default:
        /// none.
        on_listing(progress: impl Fn(usize) + Send + Sync + 'static) => |builder|
            builder.listing = Some(ListingCallback(Arc::new(progress)));
        /// Bytes of prefetched batches. Default: 256 MiB. In addition to the consumer's batch, at most this and one batch
        /// are in memory. In shard order, members that arrived before their batches take up to four times as much, at most 1 GiB.
        prefetch_bytes(bytes: u64) => |builder| builder.spec.prefetch_bytes = bytes;
        /// Batches fetched concurrently. Default: 4. Each begins once half of the previous one has arrived, or earlier by
        /// the latency of an answer, so that it does not delay the batch that the consumer waits for.
        requests(requests: usize) => |builder| builder.spec.requests = requests;
        /// Concurrent plain object reads, over all batches, the oldest batch first, and in shard order the most shards that are
        /// streamed beside them. Default: 32.
        gets(gets: usize) => |builder| builder.spec.gets = gets;
        /// Readers that share this host, such as one per accelerator: the default of [`threads`](Self::threads) is divided by
        /// it. Default: 1.
        local_ranks(ranks: NonZeroUsize) => |builder| builder.spec.local_ranks = ranks;
        /// Threads that run steps on this host. Default: the CPUs that this process may use, divided by
        /// [`local_ranks`](Self::local_ranks), at least one.
        threads(threads: NonZeroUsize) => |builder| builder.spec.threads = Some(threads);
        /// Folder of the models that the pipeline names. Default: those of the gateway, whose weights are downloaded when
        /// layers run on this host. `ORT_DYLIB_PATH` names the library that runs them.
        models(folder: impl Into<PathBuf>) => |builder| builder.spec.models = Some(folder.into());
        /// Folder of the value cache: values that are the same in every epoch. In every mode, a cached value is not
        /// requested again, in later epochs and later runs. Default: none.
        ///
        /// The cached value of an object is the last one before the first random step, or an earlier one, that has no more
        /// bytes than the object. If that is only the object itself, nothing is cached. A replaced object is read again,
        /// as detected by its listed size and ETag. If the list has no ETag of an object, such as for [`keys`](Self::keys) without a
        /// listing, the reader asks the store for it once, by a HEAD; without an answer, nothing is cached. A corrupt file is read
        /// again, too. Nothing is ever removed.
        /// [`Stats::not_cached`](crate::Stats::not_cached) counts the values that were not cached, by reason.
        ///
        /// Processes of a host may share the folder: one of them fetches each value, and the others wait for it, at most 30 s.
        value_cache(folder: impl Into<PathBuf>) => |builder| builder.spec.value_cache = Some(folder.into());
        /// The most bytes of the [`value_cache`](Self::value_cache), for all processes together. Nothing is added beyond it.
        /// Default: 10 GiB.
        value_cache_bytes(bytes: u64) => |builder| builder.spec.value_cache_bytes = bytes;
        /// Limits on a sample's values.
        limits(limits: Limits) => |builder| builder.limits = limits;
    }

    /// The settings without the data set and explicit credentials. `PushdownReaderBuilder::from(spec)` is their inverse.
    pub const fn spec(&self) -> &ReaderSpec {
        &self.spec
    }

    /// Checks everything but models before the endpoint is contacted.
    fn check(&self) -> Result<Shard> {
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
        let shard = Shard::new(rank, world).ok_or_else(|| {
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
        Ok(shard)
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
