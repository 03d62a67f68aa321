//! Reads samples through a pushdown gateway, or plainly, and runs the rest of the pipeline here.
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
//!     .on_error(OnError::SkipAndReport)
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
//! Every sample of an epoch is delivered exactly once, in an order that seed and epoch fix, whatever fails on the
//! way: what has arrived is kept, what is missing is asked for again, and a sample that cannot be had keeps its
//! position and is reported by name. An outage that outlasts the retries is an error; a reader that starts at
//! the batch after the last one goes on with the same epoch.
//!
//! While an endpoint fails and is retried, the library says so by [`tracing`]: what failed and for how long it goes on, as a
//! warning, once per outage, and an event of level *info* when it answers again.
//!
//! In [`Mode::Plain`] the same reader reads objects directly and runs the whole pipeline here, with the same
//! result bit for bit.

mod adapt;
mod batch;
mod budget;
mod cpu;
mod engine;
mod error;
mod keep;
mod meter;
mod models;
mod oldest_first;
mod order;
mod outage;
mod profile;
mod reader;
mod retry;
mod session;
mod sign;
mod stats;
mod store;
mod table;
mod transport;

pub use adapt::Planned;
pub use batch::{Batch, Row, Stacked};
pub use error::{Error, ErrorKind, Result};
pub use keep::NotKept;
pub use models::pipeline_of_folder;
pub use profile::{Profile, SampleProfile};
pub use pushdown::wire::{Compression, RowError, Split};
pub use reader::{PushdownReader, PushdownReaderBuilder};
pub use retry::RetryPolicy;
pub use session::{Mode, OnError};
pub use stats::Stats;
pub use store::{
    Credentials, GetValue, Object, Store, StoreBuilder, StoredTable, StoredTables, TableRows, TablesScan,
    Value, ValueStream,
};
pub use table::{RowId, TableBatch, TableReader};
pub use transport::Timeouts;
