//! The settings of a reader as data, for another process.

use std::{
    num::{NonZeroU32, NonZeroUsize},
    path::PathBuf,
};

use pushdown::{
    plan::simulate::ReadAhead,
    wire::{Compression, Split},
};
use serde::{Deserialize, Serialize};

#[cfg(feature = "tables")]
use crate::table::RowsRead;
use crate::{
    order::{SampleOrder, Tail},
    session::{Mode, OnError},
    shard_reader::ShardsRead,
    shards::ColumnSelection,
    store::StoreSpec,
};

/// The settings of a reader that serialize: all but the data set and explicit credentials. A process that receives them finds
/// credentials by itself, and the data set in a [saved list](crate::Objects::save).
///
/// Each member is described at the setter of [`PushdownReaderBuilder`](crate::PushdownReaderBuilder) with its name. Missing
/// members have their defaults, and unknown ones are errors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(missing_docs, reason = "described at the setters of the builder")]
pub struct ReaderSpec {
    pub store: StoreSpec,
    pub pipeline: Option<String>,
    pub split: Split,
    pub compression: Compression,
    pub mode: Mode,
    pub on_error: OnError,
    pub batch_size: usize,
    pub seed: Option<u64>,
    pub shuffle: bool,
    pub order: SampleOrder,
    pub epoch: u32,
    pub epochs: NonZeroU32,
    /// Number of the rank of this reader: [`Rank::index`](crate::Rank).
    pub rank: usize,
    /// Number of all ranks: [`Rank::world`](crate::Rank).
    pub world: usize,
    pub start_position: usize,
    #[cfg(feature = "tables")]
    pub rows_read: Vec<RowsRead>,
    pub columns: ColumnSelection,
    pub shards_read: Vec<ShardsRead>,
    pub tail: Tail,
    /// Number of the first batch: [`start_at`](crate::PushdownReaderBuilder::start_at).
    pub start_batch: usize,
    /// Number of the workers of the rank, in saved settings `every`: [`Worker::count`](crate::Worker).
    #[serde(rename = "every")]
    pub workers: usize,
    /// Number of this worker, in saved settings `turn`: [`Worker::index`](crate::Worker).
    #[serde(rename = "turn")]
    pub worker: usize,
    pub limit: Option<usize>,
    pub prefetch_bytes: u64,
    pub requests: usize,
    pub gets: usize,
    pub threads: Option<NonZeroUsize>,
    pub local_ranks: NonZeroUsize,
    pub models: Option<PathBuf>,
    pub value_cache: Option<PathBuf>,
    pub value_cache_bytes: u64,
    pub max_expand: f64,
}

impl Default for ReaderSpec {
    fn default() -> Self {
        Self {
            store: StoreSpec::default(),
            pipeline: None,
            split: Split::Smallest,
            compression: Compression::None,
            mode: Mode::default(),
            on_error: OnError::default(),
            batch_size: 64,
            seed: None,
            shuffle: true,
            order: SampleOrder::default(),
            epoch: 0,
            epochs: NonZeroU32::MIN,
            rank: 0,
            world: 1,
            start_position: 0,
            #[cfg(feature = "tables")]
            rows_read: Vec::new(),
            columns: ColumnSelection::default(),
            shards_read: Vec::new(),
            tail: Tail::default(),
            start_batch: 0,
            workers: 1,
            worker: 0,
            limit: None,
            prefetch_bytes: 256 << 20,
            requests: ReadAhead::DEFAULT_BATCHES_IN_FLIGHT.get(),
            gets: ReadAhead::DEFAULT_CONCURRENT_GETS.get(),
            threads: None,
            local_ranks: NonZeroUsize::MIN,
            models: None,
            value_cache: None,
            value_cache_bytes: 10 << 30,
            max_expand: 1.0,
        }
    }
}
