//! The samples of an epoch, in batches: [`PushdownReader`], its settings, and what it reports.
//!
//! ```no_run
//! use futures::TryStreamExt as _;
//! use pushdown_client::reader::{Mode, PushdownReader, Tail};
//!
//! # async fn read() -> pushdown_client::Result<()> {
//! let mut reader = PushdownReader::builder()
//!     .endpoint("http://127.0.0.1:9900")
//!     .bucket("photos")
//!     .prefix("train/")
//!     .pipeline("decode | resize(short=256) | center_crop(224) | to_float")
//!     .mode(Mode::Auto)
//!     .batch_size(64)
//!     .tail(Tail::Drop)
//!     .build()
//!     .await?;
//! println!("{} samples in {} batches", reader.len(), reader.batches());
//! while let Some(batch) = reader.try_next().await? {
//!     let images = batch.stack()?;
//! }
//! if let Some(plan) = reader.plan() {
//!     println!("{plan}");
//! }
//! # Ok(())
//! # }
//! ```

mod builder;

pub use crate::{
    batch::{Batch, Row, StackLayout, Stacked},
    epoch::{
        Rank, Worker,
        order::{ReaderShare, SampleOrder, Share, Tail, TailCounts},
    },
    error_policy::OnError,
    monitor::ReaderMonitor,
    planning::{Mode, Observations, PlanReport, PlannedSamples},
    stats::Stats,
    units::objects::{PushdownReader, WarmUp},
    value_cache::NotCached,
};
pub use builder::{PushdownReaderBuilder, ReaderSpec};
pub use pushdown::wire::{Compression, RowError, Split};
