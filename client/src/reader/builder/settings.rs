//! The settings of a reader as data, for another process. Each is declared once, here.

use std::{
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
};

use pushdown::{
    plan::simulate::ReadAhead,
    wire::{Compression, Split},
};
use serde::{Deserialize, Serialize};

use super::PushdownReaderBuilder;
#[cfg(feature = "tables")]
use crate::units::rows::RowsRead;
use crate::{
    epoch::order::{SampleOrder, Tail},
    error_policy::OnError,
    planning::Mode,
    shards::ColumnSelection,
    store::StoreSpec,
    units::{objects::WarmUp, shards::ShardsRead},
};

/// Declares settings: first those that have setters of their own, then each with its setter: `name(argument): type = default => value`.
macro_rules! settings {
    (
        members { $($(#[$attribute:meta])* $own:ident: $own_type:ty = $own_default:expr;)+ }
        setters { $(
            $(#[doc = $doc:literal])*
            $(#[cfg($condition:meta)])?
            $name:ident($argument:ident: $argument_type:ty): $type:ty = $default:expr => $value:expr;
        )+ }
    ) => {
        /// The settings of a reader that serialize: all but the data set and explicit credentials. A process that receives them finds
        /// credentials by itself, and the data set in a [saved list](crate::store::Objects::save).
        ///
        /// Each member is described at the setter of [`PushdownReaderBuilder`] with its name. Missing members have their defaults, and
        /// unknown ones are errors.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        #[expect(missing_docs, reason = "described at the setters of the builder")]
        pub struct ReaderSpec {
            $($(#[$attribute])* pub $own: $own_type,)+
            $($(#[cfg($condition)])? pub $name: $type,)+
        }

        impl Default for ReaderSpec {
            fn default() -> Self {
                Self {
                    $($own: $own_default,)+
                    $($(#[cfg($condition)])? $name: $default,)+
                }
            }
        }

        impl PushdownReaderBuilder {
            $(
                $(#[doc = $doc])*
                $(#[cfg($condition)])?
                pub fn $name(mut self, $argument: $argument_type) -> Self {
                    self.spec.$name = $value;
                    self
                }
            )+
        }
    };
}

settings! {
    members {
        store: StoreSpec = StoreSpec::default();
        /// Number of the rank of this reader: [`Rank::index`](crate::reader::Rank).
        rank: usize = 0;
        /// Number of all ranks: [`Rank::world`](crate::reader::Rank).
        world: usize = 1;
        /// Number of this worker, in saved settings `turn`: [`Worker::index`](crate::reader::Worker).
        #[serde(rename = "turn")]
        worker: usize = 0;
        /// Number of the workers of the rank, in saved settings `every`: [`Worker::count`](crate::reader::Worker).
        #[serde(rename = "every")]
        workers: usize = 1;
        /// Number of the first batch: [`start_at`](PushdownReaderBuilder::start_at).
        start_batch: usize = 0;
    }
    setters {
        /// The pipeline for every sample, as text or as a JSON array.
        pipeline(pipeline: impl Into<String>): Option<String> = None => Some(pipeline.into());
        /// Computes the values at the gateway, and keeps them in its result cache: nothing is delivered, and rows have empty values. The steps
        /// are those before the first random step, unless [`split`](Self::split) is a stage. [`Stats`](crate::reader::Stats) count what is
        /// cached. Default: values are delivered.
        warm(warm: WarmUp): Option<WarmUp> = None => Some(warm);
        /// The stage at which the gateway stops and this host continues. Default: where a sample has the fewest bytes.
        split(split: Split): Split = Split::Smallest => split;
        /// Compression of values in transit. Default: none. Features after a rectifier are half zeros and shrink; photos do
        /// not.
        compression(compression: Compression): Compression = Compression::None => compression;
        /// Where the steps run. Default: pushdown.
        mode(mode: Mode): Mode = Mode::default() => mode;
        /// In [`Mode::Auto`]: the most bytes of a value, as a multiple of its object's bytes. Default: 1, so that no sample
        /// uses more of the link than a plain read.
        max_expand(factor: f64): f64 = 1.0 => factor;
        /// How to treat a sample that cannot be delivered. Default: end the stream.
        on_error(on_error: OnError): OnError = OnError::default() => on_error;
        /// Samples in a batch. Default: 64.
        batch_size(samples: usize): usize = 64 => samples;
        /// Seed of the epoch's order and of random steps without their own seed. Default: none, so samples are in the
        /// order of the data set.
        seed(seed: u64): Option<u64> = None => Some(seed);
        /// Whether the seed also shuffles the samples. Default: yes.
        shuffle(shuffle: bool): bool = true => shuffle;
        /// How the seed shuffles the samples. Default: [`SampleOrder::Global`].
        order(order: SampleOrder): SampleOrder = SampleOrder::default() => order;
        /// Epoch, from 0: determines the order and the draws of random steps.
        epoch(epoch: u32): u32 = 0 => epoch;
        /// Epochs that will be read, from [`epoch`](Self::epoch) on. In [`Mode::Auto`] the plan minimises the time of all of them:
        /// the first one may take longer than plain reading if the later ones find its values in the result cache of the gateway,
        /// or need no download of weights. The gateway takes it as a hint which values are worth caching. Reading fewer or more
        /// epochs is no error. Default: 1, so that no epoch is slower than plain reading.
        epochs(epochs: NonZeroU32): NonZeroU32 = NonZeroU32::MIN => epochs;
        /// Position of the first sample in the order of the epoch over all ranks, to resume: earlier ones are not read. It is
        /// the same on every rank. The samples from there on are dealt out to this reader's world, whatever world, batch size and
        /// number of workers read the earlier ones; batches are numbered from 0. After k batches of b samples on w ranks, the
        /// next position is `k * b * w` beyond the start. [`set_epoch`](crate::reader::PushdownReader::set_epoch) starts from 0 again.
        /// Default: 0.
        start_position(position: usize): usize = 0 => position;
        /// What earlier worlds have read of the rows of this epoch, to resume a reader of rows: one entry for each change of
        /// world, the same list on every rank. What is left is dealt out to this reader's world as contiguous stretches; batches
        /// are numbered from 0. [`TableReader::rows_read_after`](crate::table::TableReader::rows_read_after) returns the list. In the
        /// same world, each rank continues its stretch. [`set_epoch`](crate::table::TableReader::set_epoch) starts with all rows again.
        /// At most 1000 entries. Default: none.
        #[cfg(feature = "tables")]
        rows_read(entries: Vec<RowsRead>): Vec<RowsRead> = Vec::new() => entries;
        /// Which members of a group are the columns of a sample, for a [reader of shards](Self::build_shards); an index has its own.
        /// Default: the first image, and no further columns.
        columns(selection: ColumnSelection): ColumnSelection = ColumnSelection::default() => selection;
        /// What readers have read of the shards of this epoch, to resume a [reader of shards](Self::build_shards): in the same world the
        /// state of this reader, in another one the states of all readers of the earlier world.
        /// [`ShardReader::shards_read`](crate::shards::ShardReader::shards_read) returns a state.
        /// [`set_epoch`](crate::shards::ShardReader::set_epoch) starts with all samples again. Default: none.
        shards_read(states: Vec<ShardsRead>): Vec<ShardsRead> = Vec::new() => states;
        /// How an epoch ends if its samples do not divide evenly among ranks and batches. Default: [`Tail::Short`].
        tail(tail: Tail): Tail = Tail::default() => tail;
        /// The most samples (or rows, of a table reader) of this rank in an epoch: the first ones in its order. The last
        /// batch may be short. Default: all.
        limit(samples: usize): Option<usize> = None => Some(samples);
        /// Bytes of prefetched batches. Default: 256 MiB. In addition to the consumer's batch, at most this and one batch
        /// are in memory. In shard order, members that arrived before their batches take up to four times as much, at most 1 GiB.
        prefetch_bytes(bytes: u64): u64 = 256 << 20 => bytes;
        /// Batches fetched concurrently. Default: 4. Each begins once half of the previous one has arrived, or earlier by
        /// the latency of an answer, so that it does not delay the batch that the consumer waits for.
        requests(requests: usize): usize = ReadAhead::DEFAULT_BATCHES_IN_FLIGHT.get() => requests;
        /// Concurrent plain object reads, over all batches, the oldest batch first, and in shard order the most shards that are
        /// streamed beside them. Default: 32.
        gets(gets: usize): usize = ReadAhead::DEFAULT_CONCURRENT_GETS.get() => gets;
        /// Readers that share this host, such as one per accelerator: the default of [`threads`](Self::threads) is divided by
        /// it. Default: 1.
        local_ranks(ranks: NonZeroUsize): NonZeroUsize = NonZeroUsize::MIN => ranks;
        /// Threads that run steps on this host. Default: the CPUs that this process may use, divided by
        /// [`local_ranks`](Self::local_ranks), at least one.
        threads(threads: NonZeroUsize): Option<NonZeroUsize> = None => Some(threads);
        /// Folder of the models that the pipeline names. Default: those of the gateway, whose weights are downloaded when
        /// layers run on this host. `ORT_DYLIB_PATH` names the library that runs them.
        models(folder: impl Into<PathBuf>): Option<PathBuf> = None => Some(folder.into());
        /// Folder of the value cache: values that are the same in every epoch. In every mode, a cached value is not
        /// requested again, in later epochs and later runs. Default: none.
        ///
        /// The cached value of an object is the last one before the first random step, or an earlier one, that has no more
        /// bytes than the object. If that is only the object itself, nothing is cached. A replaced object is read again,
        /// as detected by its listed size and ETag. If the list has no ETag of an object, such as for [`keys`](Self::keys) without a
        /// listing, the reader asks the store for it once, by a HEAD; without an answer, nothing is cached. A corrupt file is read
        /// again, too. Nothing is ever removed.
        /// [`Stats::not_cached`](crate::reader::Stats::not_cached) counts the values that were not cached, by reason.
        ///
        /// Processes of a host may share the folder: one of them fetches each value, and the others wait for it, at most 30 s.
        value_cache(folder: impl Into<PathBuf>): Option<PathBuf> = None => Some(folder.into());
        /// The most bytes of the [`value_cache`](Self::value_cache), for all processes together. Nothing is added beyond it.
        /// Default: 10 GiB.
        value_cache_bytes(bytes: u64): u64 = 10 << 30 => bytes;
    }
}
