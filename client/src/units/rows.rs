//! Rows of Parquet objects as samples: row groups are read, and batches assembled from their rows.

mod arrived_rows;
mod batches;
mod build;
mod columns;
mod compute;
mod epoch;
mod fallback;
mod footers;
mod order;
mod read;
mod row_groups;
mod rows_left;
mod rows_read;
mod samples;
mod source;
mod splits;

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use futures::{Stream, stream::BoxStream};
use pushdown::pipeline::RowStage;
use tokio::runtime::Handle;

use crate::{
    epoch::{EpochStream, Promises, ReadPlan, SavedState, order::TailCounts},
    error::Result,
    monitor::ReaderMonitor,
    objects::Objects,
    planning::{Mode, Observations, PlanReport},
    stats::{Stats, add},
    weights::WeightDownload,
};
pub(crate) use build::TableSettings;
pub use footers::Footers;
use read::RowReader;
use rows_left::RowsLeft;
pub use rows_read::RowsRead;
pub(crate) use source::TableSource;

/// A row group with samples: rows that satisfy the condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowGroupSamples {
    /// Index of its object.
    pub object: usize,
    /// Number in the data set of the first row of its object.
    pub first_row: u64,
    /// Its samples.
    pub samples: u64,
}

/// What a reader of rows promises.
pub(crate) const PROMISES: Promises = Promises {
    is_counted: true,
    state: SavedState::RowsRead,
};

/// Reads rows of Parquet objects in the order of an epoch, each exactly once, as Arrow record batches.
///
/// The samples are the rows of all objects that satisfy the condition of the pipeline's `select`. The condition is evaluated
/// once, when the reader is built, so every rank has the same counts. With a seed, the order of row groups is shuffled, and so
/// are the rows within each. Each rank has a contiguous stretch of that order, and stretches differ by at most one row. So a row
/// group is read by one rank, or by two at the ends of stretches. Only one that is longer than a stretch may be read by more.
///
/// Another world may continue an epoch: what is left is dealt out anew as stretches of the same order. See [`RowsRead`]. Each
/// row is read once, but unlike objects, rows do not keep one order across worlds.
///
/// The columns after the pipeline are those of all objects: they have the same names, in any order, and types that one type holds, such
/// as integers of several widths. Columns that the pipeline does not read may differ in any way.
///
/// It is a [`Stream`] of batches. Row groups are prefetched, within the prefetch budget, and computed a few rows at a time, on all
/// threads. After an error it ends; a reader built with [`start_at`](crate::reader::PushdownReaderBuilder::start_at) resumes where it ended.
#[derive(Debug)]
pub struct TableReader {
    rows: Arc<RowReader>,
    plan: ReadPlan,
    /// What earlier worlds have read of this epoch.
    rows_read: Vec<RowsRead>,
    left: RowsLeft,
    runtime: Handle,
    stream: EpochStream<BoxStream<'static, Result<TableBatch>>>,
    /// Set in [`Mode::Auto`], if weights were missing that this host needs without the gateway.
    _weight_download: Option<WeightDownload>,
}

/// Rows that are consecutive in the stretch of a rank.
#[derive(Debug, Clone, PartialEq)]
pub struct TableBatch {
    /// Number of the batch for this rank, from 0: pass it to `start_at` to resume.
    pub number: usize,
    /// The rows, after the whole pipeline.
    pub rows: RecordBatch,
    /// The source of each row.
    pub ids: Vec<RowId>,
    /// Position of each row in the order of the epoch over all ranks.
    pub positions: Vec<u64>,
}

/// The source of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowId {
    /// Index of the object in the data set: [`TableReader::objects`] has its key.
    pub object: usize,
    /// The row's number in the object, from 0.
    pub row: u64,
}

/// Observes a [`TableReader`] while it reads, and after it is closed.
#[derive(Debug, Clone)]
pub struct TableMonitor {
    shared: ReaderMonitor,
    rows: Arc<RowReader>,
}

impl TableMonitor {
    /// Counts so far.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// The mode in force: plain as well after all steps had to run on this host.
    pub fn mode(&self) -> Mode {
        self.shared.mode()
    }

    /// The plan in force and what it was made from, in [`Mode::Auto`]. `None` before the first plan, and once
    /// all rows are computed on this host because the gateway does not compute them, or computes rows that are too large.
    pub fn plan(&self) -> Option<PlanReport> {
        self.shared.plan()
    }

    /// What the planner has observed, for [another reader](crate::reader::PushdownReaderBuilder::observations) of the same data; `None`
    /// before the first plan, and in other modes than [`Mode::Auto`].
    pub fn observations(&self) -> Option<Observations> {
        self.shared.observations()
    }

    /// What readers of any kind show.
    pub const fn as_reader_monitor(&self) -> &ReaderMonitor {
        &self.shared
    }
}

impl TableReader {
    /// Rows of an epoch for this reader's rank, without those of [`rows_read`](crate::reader::PushdownReaderBuilder::rows_read); at most
    /// the [limit](crate::reader::PushdownReaderBuilder::limit).
    pub fn len(&self) -> u64 {
        let stretch = self.left.stretch(&self.plan);
        stretch.end - stretch.start
    }

    /// Whether the rank has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Batches of an epoch for this rank; the last one may be short.
    pub fn batches(&self) -> u64 {
        self.len().div_ceil(self.plan.batch_size as u64)
    }

    /// The most batches of an epoch that a rank of the same world has; the same on every rank.
    pub fn most_batches(&self) -> u64 {
        self.left
            .most_rows(&self.plan)
            .div_ceil(self.plan.batch_size as u64)
    }

    /// The row groups with samples, in the order of the data set.
    pub fn row_groups(&self) -> Vec<RowGroupSamples> {
        let groups = self.rows.samples.groups().iter();
        let samples = groups.map(|group| RowGroupSamples {
            object: group.object(),
            first_row: self
                .rows
                .first_rows
                .get(group.object())
                .copied()
                .unwrap_or_default(),
            samples: group.count(),
        });
        samples.collect()
    }

    /// What the [tail policy](crate::reader::PushdownReaderBuilder::tail) drops in an epoch, over all ranks.
    pub fn tail_counts(&self) -> TailCounts {
        self.left.tail_counts(&self.plan)
    }

    /// What has been read of this epoch after each rank's first `batches` batches, for
    /// [`rows_read`](crate::reader::PushdownReaderBuilder::rows_read). It is the same on every rank. With the batch of number `n` in
    /// hand, it is the state after `n + 1` batches.
    pub fn rows_read_after(&self, batches: usize) -> Vec<RowsRead> {
        let rows = (batches as u64).saturating_mul(self.plan.batch_size as u64);
        let read = RowsRead {
            world: self.plan.rank.world(),
            rows_per_rank: rows.min(self.left.most_rows(&self.plan)),
        };
        let mut rows_read = self.rows_read.clone();
        read.append_to(&mut rows_read);
        rows_read
    }

    /// The columns of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.rows.columns.schema
    }

    /// The whole data set, over all shards.
    pub fn objects(&self) -> &Objects {
        &self.rows.source.objects
    }

    /// Number of steps that run at the gateway for most row groups; 0 if stored columns are read and everything runs on this host. A
    /// step of which the gateway runs only a part does not count.
    pub fn stage(&self) -> usize {
        self.row_stage().steps
    }

    /// The stage up to which the gateway computes the rows of most row groups. It may change while rows are read in
    /// [`Mode::Auto`](crate::reader::Mode::Auto).
    pub fn row_stage(&self) -> RowStage {
        self.rows.splits[self.rows.main_split()].stage
    }

    /// Counts so far.
    pub fn stats(&self) -> Stats {
        self.monitor().stats()
    }

    /// The footers of the objects, for [another reader](crate::reader::PushdownReaderBuilder::footers) of them.
    pub fn footers(&self) -> Footers {
        let source = &self.rows.source;
        Footers::new(&source.objects, &source.tables)
    }

    /// As [`TableMonitor::plan`].
    pub fn plan(&self) -> Option<PlanReport> {
        self.monitor().plan()
    }

    /// Observes the reader while it reads, also from other threads.
    pub fn monitor(&self) -> TableMonitor {
        TableMonitor {
            shared: ReaderMonitor::new(Arc::<RowReader>::clone(&self.rows)),
            rows: Arc::clone(&self.rows),
        }
    }

    /// Starts another epoch from its first batch. Drops what was prefetched.
    pub fn set_epoch(&mut self, epoch: u32) {
        self.plan.epoch = epoch;
        self.plan.start = 0;
        self.rows_read.clear();
        self.left = RowsLeft::new(self.rows.samples.len(), &[]);
        self.stream.restart();
    }
}

impl Stream for TableReader {
    type Item = Result<TableBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.stream.is_idle() {
            let batches = this.read_epoch();
            this.stream.begin(batches);
        }
        let counters = &this.rows.source.counters;
        this.stream.poll_next(context, counters, |batch: TableBatch| {
            add(&counters.samples, batch.ids.len() as u64);
            Ok(batch)
        })
    }
}

#[cfg(test)]
mod tests;
