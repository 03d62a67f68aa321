//! Reads samples through a pushdown gateway, or directly from the store, and runs the rest of the pipeline on this host.
//!
//! ```no_run
//! use futures::TryStreamExt as _;
//! use pushdown_client::{OnError, PushdownReader};
//!
//! # async fn read() -> Result<(), pushdown_client::Error> {
//! let mut reader = PushdownReader::builder()
//!     .endpoint("http://127.0.0.1:9900")
//!     .bucket("photos")
//!     .prefix("train/")
//!     .pipeline("decode | random_resized_crop(224) | flip_h | to_float | normalize(imagenet)")
//!     .seed(7)
//!     .on_error(OnError::Report)
//!     .build()
//!     .await?;
//! while let Some(batch) = reader.try_next().await? {
//!     for (row, error) in batch.errors() {
//!         eprintln!("{}: {error}", row.key);
//!     }
//!     let images = batch.stack()?;
//! }
//! println!("{:?}", reader.stats());
//! # Ok(())
//! # }
//! ```
//!
//! Every sample of an epoch is delivered exactly once, in an order fixed by seed and epoch, even when requests fail:
//! the reader keeps what has arrived, requests what is missing again, and reports a sample that cannot be read by name,
//! at its position. An outage that outlasts the retries is an error. A reader that starts at the batch after the last
//! one resumes the same epoch.
//!
//! While an endpoint fails and is retried, the library logs it with [`tracing`]: one warning per outage, with the error and
//! the retries left, and one *info* event when the endpoint answers again.
//!
//! In [`Mode::Plain`] the same reader reads objects directly and runs the whole pipeline on this host. The result is
//! the same bit for bit.

mod atomic_write;
mod batch;
mod batch_queue;
mod budget;
mod cpu;
mod engine;
mod error;
mod error_policy;
mod models;
mod objects;
mod order;
mod outage_log;
mod planning;
mod reader;
mod retry;
mod sample_name;
mod session;
mod shard_reader;
mod shards;
mod sign;
mod stats;
mod store;
#[cfg(feature = "tables")]
mod table;
mod transport;
mod value_cache;

pub use atomic_write::{Draft, remove_drafts};
pub use batch::{Batch, Row, StackLayout, Stacked};
pub use error::{Error, ErrorKind, Result};
pub use error_policy::{ErrorPolicy, FailedRows, MaxErrors, OnError, SampleFailure};
pub use models::parse_with_model_folder;
pub use objects::{MemberRef, Object, Objects};
pub use order::{ReaderShare, SampleOrder, Share, Tail, TailCounts};
pub use planning::{Observations, PlanReport, Profile, SampleProfile};
pub use pushdown::wire::{Compression, RowError, Split};
pub use pushdown_s3::{Escaped, is_control};
pub use reader::{PushdownReader, PushdownReaderBuilder, Rank, ReaderMonitor, ReaderSpec, Worker};
pub use retry::RetryPolicy;
pub use sample_name::draw_id;
pub use session::Mode;
pub use shard_reader::{ShardMonitor, ShardReader, ShardsRead};
pub use shards::{ColumnSelection, ShardIndex};
pub use stats::Stats;
pub use store::{
    ConditionalAnswer, ConditionalGet, Credentials, HiddenObjects, IndexProgress, Signature, Store,
    StoreBuilder, StoreSpec, StoredTable, StoredTables, TableRows, TablesScan, Upload, Value, ValueRequest,
    ValueStream,
};
#[cfg(feature = "tables")]
pub use table::{RowId, RowObservations, RowsRead, TableBatch, TableMonitor, TableReader};
pub use transport::Timeouts;
pub use value_cache::NotCached;
