//! Settings of a reader.

mod build;
mod open;
mod table;

use std::{fmt, num::NonZeroUsize, path::PathBuf, sync::Arc};

use pushdown::{
    BytesKind, Limits, Pipeline,
    plan::simulate::ReadAhead,
    wire::{Compression, Split},
};

use super::{PushdownReader, State};
use crate::{
    error::{Error, Result},
    order::Shard,
    retry::RetryPolicy,
    session::{Mode, OnError},
    store::{Credentials, Object, Store, StoreBuilder},
    transport::Timeouts,
};

/// Settings of a [`PushdownReader`]. Bucket, pipeline, and either a prefix or keys are needed; everything else
/// has a default.
#[derive(Debug, Clone)]
#[must_use]
pub struct PushdownReaderBuilder {
    store: StoreBuilder,
    bucket: Option<String>,
    keys: Keys,
    pipeline: Option<String>,
    split: Split,
    compression: Compression,
    mode: Mode,
    on_error: OnError,
    batch_size: usize,
    seed: Option<u64>,
    shuffle: bool,
    epoch: u32,
    shard: (usize, usize),
    start: usize,
    limit: Option<usize>,
    listing: Option<Listing>,
    prefetch_bytes: u64,
    requests: usize,
    gets: usize,
    threads: Option<NonZeroUsize>,
    limits: Limits,
    models: Option<PathBuf>,
    keep: Option<PathBuf>,
    keep_bytes: u64,
    max_expand: f64,
}

#[derive(Debug, Clone)]
enum Keys {
    Prefix(String),
    These(Vec<Object>),
}

/// What is called while a prefix is listed.
#[derive(Clone)]
struct Listing(Arc<dyn Fn(usize) + Send + Sync>);

impl fmt::Debug for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listing").finish_non_exhaustive()
    }
}

impl Default for PushdownReaderBuilder {
    fn default() -> Self {
        Self {
            store: Store::builder(),
            bucket: None,
            keys: Keys::Prefix(String::new()),
            pipeline: None,
            split: Split::Smallest,
            compression: Compression::None,
            mode: Mode::default(),
            on_error: OnError::default(),
            batch_size: 64,
            seed: None,
            shuffle: true,
            epoch: 0,
            shard: (0, 1),
            start: 0,
            limit: None,
            listing: None,
            prefetch_bytes: 256 << 20,
            requests: ReadAhead::DEFAULT_BATCHES_IN_FLIGHT.get(),
            gets: ReadAhead::DEFAULT_CONCURRENT_GETS.get(),
            threads: None,
            limits: Limits::default(),
            models: None,
            keep: None,
            keep_bytes: 10 << 30,
            max_expand: 1.0,
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
        /// Endpoint, credentials, timeouts and retries all at once, instead of by the setters after this one.
        store(store: StoreBuilder) => |builder| builder.store = store;
        /// URL of the gateway, or in plain mode of any store. Default: `AWS_ENDPOINT_URL`, or `endpoint_url` of
        /// the profile.
        endpoint(url: impl Into<String>) => |builder| builder.store = builder.store.endpoint(url);
        /// Region to sign for. Default: the environment's, the profile's, then `us-east-1`.
        region(region: impl Into<String>) => |builder| builder.store = builder.store.region(region);
        /// Profile of the AWS configuration files. Default: `AWS_PROFILE`, then `default`.
        profile(profile: impl Into<String>) => |builder| builder.store = builder.store.profile(profile);
        /// Explicit credentials. Default: the usual AWS chain.
        credentials(credentials: Credentials) => |builder| builder.store = builder.store.credentials(credentials);
        /// Timeouts of every request.
        timeouts(timeouts: Timeouts) => |builder| builder.store = builder.store.timeouts(timeouts);
        /// When to try again.
        retry(retry: RetryPolicy) => |builder| builder.store = builder.store.retry(retry);
        /// Folder where the weights of models are kept. Default: `pushdown/models` in the user's cache.
        cache(folder: impl Into<PathBuf>) => |builder| builder.store = builder.store.cache(folder);
        /// Bucket of all samples.
        bucket(bucket: impl Into<String>) => |builder| builder.bucket = Some(bucket.into());
        /// All objects under this prefix are the data set, in the order of the listing. Default: the whole
        /// bucket.
        prefix(prefix: impl Into<String>) => |builder| builder.keys = Keys::Prefix(prefix.into());
        /// These objects are the data set, in this order; nothing is listed.
        keys(keys: impl IntoIterator<Item = impl Into<Arc<str>>>) => |builder|
            builder.keys = Keys::These(keys.into_iter().map(|key| Object::of_key(key.into())).collect());
        /// Objects of an earlier [`list`](Store::list), or some of them, are the data set, in this order, with what is
        /// known of them.
        objects(objects: Vec<Object>) => |builder| builder.keys = Keys::These(objects);
        /// What to make of every sample, as text or as a JSON array.
        pipeline(pipeline: impl Into<String>) => |builder| builder.pipeline = Some(pipeline.into());
        /// Where the gateway stops and this host goes on. Default: where a sample has the fewest bytes.
        split(split: Split) => |builder| builder.split = split;
        /// Whether values are compressed on their way. Default: not at all. Features behind a rectifier are half zeros
        /// and shrink; photos do not.
        compression(compression: Compression) => |builder| builder.compression = compression;
        /// Whether anything is left to the gateway at all. Default: pushdown.
        mode(mode: Mode) => |builder| builder.mode = mode;
        /// In [`Mode::Auto`]: a value has at most so many times the bytes of its object. Default: 1, so that no sample
        /// takes more of the link than it does plainly.
        max_expand(factor: f64) => |builder| builder.max_expand = factor;
        /// What becomes of a sample that cannot be delivered. Default: it ends the stream.
        on_error(on_error: OnError) => |builder| builder.on_error = on_error;
        /// Samples in a batch. Default: 64.
        batch_size(samples: usize) => |builder| builder.batch_size = samples;
        /// Seed of the epoch's order and of random steps without a seed of their own. Default: none, so samples
        /// come in the order of the data set.
        seed(seed: u64) => |builder| builder.seed = Some(seed);
        /// Whether the seed shuffles the samples, too. Default: yes.
        shuffle(shuffle: bool) => |builder| builder.shuffle = shuffle;
        /// Epoch, from 0: with another one order and random steps draw anew.
        epoch(epoch: u32) => |builder| builder.epoch = epoch;
        /// This reader is `rank` among `world` readers that share the data set. Default: 0 of 1.
        shard(shard: (usize, usize)) => |builder| builder.shard = shard;
        /// Number of the first batch, to resume: those before it are not read. Default: 0.
        start_at(batch: usize) => |builder| builder.start = batch;
        /// The most samples (rows, of a table reader) of this shard in an epoch: the first ones in the epoch's order. The last
        /// batch is as short as that takes. Default: all.
        limit(samples: usize) => |builder| builder.limit = Some(samples);
        /// Called after each page of the listing of [`prefix`](Self::prefix), with the number of objects so far. Default:
        /// nothing is called.
        on_listing(progress: impl Fn(usize) + Send + Sync + 'static) => |builder|
            builder.listing = Some(Listing(Arc::new(progress)));
        /// Bytes of batches fetched ahead. Default: 256 MiB. At most this and one batch are held beside what the
        /// consumer has.
        prefetch_bytes(bytes: u64) => |builder| builder.prefetch_bytes = bytes;
        /// Batches fetched at a time. Default: 4. Each begins once half of the one before is there, or earlier by what an answer
        /// takes to begin, so that none holds up the one that is waited for.
        requests(requests: usize) => |builder| builder.requests = requests;
        /// Objects read at a time as they are, of all batches together, those of the oldest first. Default: 32.
        gets(gets: usize) => |builder| builder.gets = gets;
        /// Threads that run steps here. Default: the CPUs that this process may use.
        threads(threads: NonZeroUsize) => |builder| builder.threads = Some(threads);
        /// Folder of the models that the pipeline names. Default: those of the gateway, whose weights are fetched
        /// when layers run here. The library that runs them is the one that `ORT_DYLIB_PATH` names.
        models(folder: impl Into<PathBuf>) => |builder| builder.models = Some(folder.into());
        /// Folder where values are kept that are the same in every epoch, in every mode: what is there is not asked for
        /// again, in later epochs and later runs. Default: none.
        ///
        /// Of each object the last value before the first random step is kept, or an earlier one, such that it has no
        /// more bytes than the object; where that is only the object itself, nothing is kept. An object that was
        /// replaced is read anew, as the listing tells by size and ETag; of [`keys`](Self::keys) that are given nothing
        /// is listed, and the key alone stands for the object. A broken file is read anew, too. Nothing is ever removed. Why
        /// values were not kept is counted in [`Stats::not_kept`](crate::Stats::not_kept).
        keep(folder: impl Into<PathBuf>) => |builder| builder.keep = Some(folder.into());
        /// The most bytes in the folder of [`keep`](Self::keep): past them nothing more is kept. Default: 10 GiB.
        keep_bytes(bytes: u64) => |builder| builder.keep_bytes = bytes;
        /// Limits on a sample's values.
        limits(limits: Limits) => |builder| builder.limits = limits;
    }

    /// Checks what can be checked before anything is asked of the endpoint: all but models.
    fn check(&self) -> Result<Shard> {
        let text = self
            .pipeline
            .as_deref()
            .ok_or_else(|| Error::config("no pipeline is set"))?;
        match Pipeline::parse(text) {
            Err(error) if error.kind() == pushdown::ErrorKind::ModelRuntime => {}
            parsed => check_pipeline(&parsed?, self.split, self.seed, self.epoch)?,
        }
        for (name, value) in [
            ("batch size", self.batch_size),
            ("number of requests", self.requests),
            ("number of gets", self.gets),
        ] {
            if value == 0 {
                return Err(Error::config(format!("the {name} is 0, expected at least 1")));
            }
        }
        if !(self.max_expand.is_finite() && self.max_expand >= 0.0) {
            return Err(Error::config(format!(
                "the most that a value may expand is {}, expected a number from 0",
                self.max_expand
            )));
        }
        let (rank, world) = self.shard;
        let shard = Shard::new(rank, world).ok_or_else(|| {
            Error::config(format!(
                "there is no rank {rank} among {world}: ranks count from 0"
            ))
        })?;
        Ok(shard)
    }
}

fn check_pipeline(pipeline: &Pipeline, split: Split, seed: Option<u64>, epoch: u32) -> Result<()> {
    if let Err(error) = split.resolve(pipeline, &BytesKind::default()) {
        return Err(Error::config(error.to_string()));
    }
    Ok(pipeline.check_randomness(pipeline.len(), seed, Some(epoch))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(change: impl FnOnce(PushdownReaderBuilder) -> PushdownReaderBuilder) -> String {
        let builder = PushdownReader::builder()
            .bucket("b")
            .pipeline("decode | flip_h | to_float")
            .seed(1);
        change(builder).check().unwrap_err().to_string()
    }

    #[test]
    fn settings_that_make_no_sense_are_refused_before_anything_is_read() {
        let random = PushdownReader::builder()
            .pipeline("decode | flip_h")
            .check()
            .unwrap_err();
        insta::assert_snapshot!(
            [
                fault(|builder| builder.pipeline("decode | flop")),
                fault(|builder| builder.split(Split::At(4))),
                fault(|builder| builder.batch_size(0)),
                fault(|builder| builder.requests(0)),
                fault(|builder| builder.max_expand(f64::NAN)),
                fault(|builder| builder.shard((2, 2))),
                random.to_string(),
                PushdownReader::builder().check().unwrap_err().to_string(),
            ]
            .join("\n")
        );
    }
}
